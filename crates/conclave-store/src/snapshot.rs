//! The committed log as proofs, checkpoints and exports read it, whichever database holds it.
//!
//! **Invariant:** what one piece of work reads belongs together: it is one snapshot, whatever replicas
//! write meanwhile.

use crate::error::StoreError;
use crate::publish::{Handover, Published};
use crate::reader::LedgerRow;
use conclave_core::AuditId;
use conclave_ledger::{Hash, TILE_WIDTH, TileId, TileSource, write_bundle};

/// Takes a position and a leaf.
pub(crate) type TakeLeaf<'a> = dyn FnMut(u64, &[u8]) -> Result<(), StoreError> + 'a;
/// Takes a row with its body.
pub(crate) type TakeRow<'a> = dyn FnMut(LedgerRow<'_>) -> Result<(), StoreError> + 'a;
/// Takes a checkpoint.
pub(crate) type TakeCheckpoint<'a> = dyn FnMut(Published) -> Result<(), StoreError> + 'a;
/// Something to do within one snapshot.
pub(crate) type Work<'a> = dyn FnMut(&mut dyn Snapshot) -> Result<(), StoreError> + 'a;

/// The log at one moment.
pub(crate) trait Snapshot {
    /// Size and root; absent for a log without entries.
    fn head(&mut self) -> Result<Option<(u64, Hash)>, StoreError>;
    /// The hashes of a tile.
    fn tile(&mut self, id: TileId) -> Result<Vec<Hash>, StoreError>;
    /// The leaves of a range, in order.
    fn leaves(&mut self, first: u64, end: u64, take: &mut TakeLeaf<'_>) -> Result<(), StoreError>;
    /// The first entries, with their bodies, in order.
    fn rows(&mut self, end: u64, take: &mut TakeRow<'_>) -> Result<(), StoreError>;
    /// The checkpoint with the largest size.
    fn latest(&mut self) -> Result<Option<Published>, StoreError>;
    /// Every checkpoint, by size.
    fn checkpoints(&mut self, take: &mut TakeCheckpoint<'_>) -> Result<(), StoreError>;
    /// The hand-overs among the first `size` entries.
    fn handovers(&mut self, size: u64) -> Result<Vec<Handover>, StoreError>;
    /// Position and leaf of a decision, of one tenant or of any.
    fn decision(
        &mut self,
        tenant: Option<u64>,
        id: AuditId,
    ) -> Result<Option<(u64, Vec<u8>)>, StoreError>;
}

/// Gives snapshots, and keeps what was signed.
pub(crate) trait Snapshots: Send + Sync {
    /// Does something within one snapshot. Blocks.
    fn with(&self, work: &mut Work<'_>) -> Result<(), StoreError>;
    /// Stores a checkpoint unless one of its size is there; returns the one that is. Blocks.
    fn keep(&self, new: &Published) -> Result<Published, StoreError>;
    /// Closes the connections that are not in use.
    fn close_idle(&self);
}

/// Asks something of one snapshot.
pub(crate) fn ask<T>(
    snapshots: &dyn Snapshots,
    mut question: impl FnMut(&mut dyn Snapshot) -> Result<T, StoreError>,
) -> Result<T, StoreError> {
    let mut answer = None;
    snapshots.with(&mut |snapshot| {
        answer = Some(question(snapshot)?);
        Ok(())
    })?;
    answer.ok_or_else(|| StoreError::Key("the ledger gave no answer".to_owned()))
}

/// The tiles of a snapshot.
pub(crate) struct Tiles<'a>(pub(crate) &'a mut dyn Snapshot);

impl TileSource for Tiles<'_> {
    type Error = StoreError;

    fn tile(&mut self, id: TileId) -> Result<Vec<Hash>, StoreError> {
        self.0.tile(id)
    }
}

/// The leaves of a bundle as C2SP writes them; `None` when they are not all there.
pub(crate) fn bundle_of(
    snapshot: &mut dyn Snapshot,
    index: u64,
    width: u16,
) -> Result<Option<Vec<u8>>, StoreError> {
    let first = index.saturating_mul(TILE_WIDTH);
    let (mut bundle, mut found) = (Vec::new(), 0);
    snapshot.leaves(first, first.saturating_add(width.into()), &mut |_, leaf| {
        found += 1;
        write_bundle(&mut bundle, leaf).map_err(|error| StoreError::Key(error.to_string()))
    })?;
    Ok((found == width).then_some(bundle))
}
