//! What the log shows to those who do not trust us: checkpoints, tiles, receipts.

use crate::archive::ArchiveError;
use conclave_core::AuditId;
use conclave_ledger::{Hash, Receipt, TileId};
use futures_util::future::BoxFuture;

/// How far the receipt of a decision is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ReceiptState {
    /// There is no such decision of this tenant.
    Unknown,
    /// It is recorded, but no checkpoint covers it yet; one will within two seconds.
    Pending,
    /// Here it is.
    Ready(Box<Receipt>),
}

/// Entries of one tenant, each with what proves that it is in the log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TenantEntries {
    /// In the order of the log.
    pub receipts: Vec<Receipt>,
    /// From where on to look further; absent where the last checkpoint is reached.
    pub next: Option<u64>,
    /// How many entries of all tenants the last checkpoint covers.
    pub size: u64,
}

/// A proof that a later log begins with an earlier one, and the roots of both.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Consistency {
    /// The root over the earlier log.
    pub from_root: Hash,
    /// The root over the later log.
    pub to_root: Hash,
    /// The path.
    pub proof: Vec<Hash>,
}

type Answer<'a, T> = BoxFuture<'a, Result<T, ArchiveError>>;

/// The public side of the ledger. Nothing beyond the last signed checkpoint is shown.
pub trait Proofs: Send + Sync {
    /// The last signed checkpoint.
    fn checkpoint(&self) -> Answer<'_, Option<String>>;
    /// Every key that signed, the one in force first.
    fn vkeys(&self) -> Answer<'_, Vec<String>>;
    /// The bytes of a tile; `None` beyond the last checkpoint.
    fn tile(&self, id: TileId) -> Answer<'_, Option<Vec<u8>>>;
    /// The bytes of an entry bundle; `None` beyond the last checkpoint.
    fn bundle(&self, index: u64, width: u16) -> Answer<'_, Option<Vec<u8>>>;
    /// The receipt of a decision of this tenant.
    fn receipt(&self, tenant: u64, id: AuditId) -> Answer<'_, ReceiptState>;
    /// Entries of a tenant from a place in the log on, so many at most.
    fn entries(&self, tenant: u64, from: u64, at_most: usize) -> Answer<'_, TenantEntries>;
    /// The proof between two sizes; `None` when a checkpoint does not reach that far.
    fn consistency(&self, from: u64, to: u64) -> Answer<'_, Option<Consistency>>;
    /// Whether checkpoints are signed; the sentence says what keeps them from it.
    ///
    /// # Errors
    /// When the last attempt failed or was refused.
    fn health(&self) -> Result<(), String>;
}
