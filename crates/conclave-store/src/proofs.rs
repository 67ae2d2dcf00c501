//! Answers about proofs from the database.
//!
//! **Invariant:** every proof is for the size of a checkpoint that was signed and stored; nothing
//! beyond the last one is shown.

use crate::error::StoreError;
use crate::publish::{Cosigned, Desk, KeyFile};
use crate::snapshot::{Snapshot, Snapshots, Tiles, ask, bundle_of};
use crate::spool::{Intake, Progress};
use conclave_core::AuditId;
use conclave_engine::{ArchiveError, Consistency, Proofs, ReceiptState, TenantEntries};
use conclave_ledger::{
    Leaf, Receipt, TileId, encode_hashes, prove_consistency, prove_inclusion, root_at,
};
use futures_util::future::{BoxFuture, FutureExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::Semaphore;

/// So many entries of all tenants are looked through for a page of one.
const LOOKED_THROUGH_MAX: u64 = 20_000;

type Answer<'a, T> = BoxFuture<'a, Result<T, ArchiveError>>;
type Found<T> = Result<T, StoreError>;

/// What is shown of one log.
pub(crate) struct Shown {
    pub(crate) snapshots: Arc<dyn Snapshots>,
    pub(crate) desk: Arc<Desk>,
    pub(crate) dir: PathBuf,
    pub(crate) intake: Arc<Intake>,
    pub(crate) progress: Arc<Progress>,
    pub(crate) patience: Duration,
    /// How many questions are answered at once.
    pub(crate) lane: Arc<Semaphore>,
}

fn broken(error: &impl ToString) -> ArchiveError {
    ArchiveError(error.to_string())
}

fn said(error: &impl ToString) -> StoreError {
    StoreError::Key(error.to_string())
}

impl Shown {
    /// Asks one snapshot on a thread that may block; `newest` says whether it must see everything
    /// that was appended here before.
    fn ask<T: Send + 'static>(
        &self,
        newest: bool,
        question: impl FnMut(&mut dyn Snapshot) -> Found<T> + Send + 'static,
    ) -> Answer<'_, T> {
        let (snapshots, lane) = (Arc::clone(&self.snapshots), Arc::clone(&self.lane));
        let (intake, progress) = (Arc::clone(&self.intake), Arc::clone(&self.progress));
        let patience = self.patience;
        async move {
            let turn = lane.acquire_owned().await.map_err(|error| broken(&error))?;
            let asked = tokio::task::spawn_blocking(move || {
                let _turn = turn;
                if newest {
                    let pushed = intake.hurry();
                    progress.wait_drained(pushed, patience).map_err(ArchiveError)?;
                }
                ask(&*snapshots, question).map_err(|error| broken(&error))
            });
            asked.await.map_err(|error| broken(&error))?
        }
        .boxed()
    }
}

impl Proofs for Shown {
    fn checkpoint(&self) -> Answer<'_, Option<String>> {
        let desk = Arc::clone(&self.desk);
        self.ask(false, move |log| Ok(log.latest()?.map(|last| desk.cosigned.below(&last))))
    }

    fn vkeys(&self) -> Answer<'_, Vec<String>> {
        let dir = self.dir.clone();
        self.ask(false, move |log| vkeys(&dir, log))
    }

    fn tile(&self, id: TileId) -> Answer<'_, Option<Vec<u8>>> {
        self.ask(false, move |log| {
            let reaches = |size| TileId::in_tree(id.level, id.index, size);
            let there = log.latest()?.and_then(|last| reaches(last.size));
            if there.is_none_or(|there| there.width < id.width) {
                return Ok(None);
            }
            Ok(Some(encode_hashes(&log.tile(id)?)))
        })
    }

    fn bundle(&self, index: u64, width: u16) -> Answer<'_, Option<Vec<u8>>> {
        self.ask(false, move |log| {
            let there = log.latest()?.and_then(|last| TileId::in_tree(0, index, last.size));
            if there.is_none_or(|there| there.width < width) {
                return Ok(None);
            }
            bundle_of(log, index, width)
        })
    }

    fn receipt(&self, tenant: u64, id: AuditId) -> Answer<'_, ReceiptState> {
        let (dir, desk) = (self.dir.clone(), Arc::clone(&self.desk));
        self.ask(true, move |log| match log.decision(Some(tenant), id)? {
            Some((seq, leaf)) => receipt_of((&dir, Some(&desk.cosigned)), log, seq, leaf),
            None => Ok(ReceiptState::Unknown),
        })
    }

    fn entries(&self, tenant: u64, from: u64, at_most: usize) -> Answer<'_, TenantEntries> {
        let (dir, desk) = (self.dir.clone(), Arc::clone(&self.desk));
        self.ask(false, move |log| {
            let size = log.latest()?.map_or(0, |last| last.size);
            let end = size.min(from.saturating_add(LOOKED_THROUGH_MAX));
            let (mut own, mut next) = (Vec::new(), end);
            log.leaves(from, end, &mut |seq, leaf| {
                if own.len() >= at_most {
                    next = next.min(seq);
                } else if Leaf::decode(leaf).is_ok_and(|leaf| leaf.draft.tenant == tenant) {
                    own.push((seq, leaf.to_vec()));
                }
                Ok(())
            })?;
            let mut receipts = Vec::with_capacity(own.len());
            for (seq, leaf) in own {
                // What the checkpoint covers, as it stands in this snapshot, has a receipt.
                if let ReceiptState::Ready(receipt) =
                    receipt_of((&dir, Some(&desk.cosigned)), log, seq, leaf)?
                {
                    receipts.push(*receipt);
                }
            }
            Ok(TenantEntries { receipts, next: Some(next).filter(|next| *next < size), size })
        })
    }

    fn consistency(&self, from: u64, to: u64) -> Answer<'_, Option<Consistency>> {
        self.ask(false, move |log| {
            if from > to || log.latest()?.is_none_or(|last| to > last.size) {
                return Ok(None);
            }
            let mut tiles = Tiles(log);
            let mut root = |size| root_at(&mut tiles, size).map_err(|error| said(&error));
            let (from_root, to_root) = (root(from)?, root(to)?);
            let proof = prove_consistency(&mut tiles, from, to).map_err(|error| said(&error))?;
            Ok(Some(Consistency { from_root, to_root, proof }))
        })
    }

    fn health(&self) -> Result<(), String> {
        self.desk.trouble().map_or(Ok(()), Err)
    }
}

fn vkeys(dir: &Path, log: &mut dyn Snapshot) -> Found<Vec<String>> {
    let handovers = log.handovers(u64::MAX >> 1)?;
    let keys = KeyFile::load(dir)?;
    Ok(keys.verifiers(&handovers).iter().map(ToString::to_string).collect())
}

/// The receipt of the entry at this place, if a checkpoint covers it.
pub(crate) fn receipt_of(
    (dir, cosigned): (&Path, Option<&Cosigned>),
    log: &mut dyn Snapshot,
    seq: u64,
    leaf: Vec<u8>,
) -> Found<ReceiptState> {
    let Some(last) = log.latest()?.filter(|last| seq < last.size) else {
        return Ok(ReceiptState::Pending);
    };
    let proof = prove_inclusion(&mut Tiles(log), seq, last.size).map_err(|error| said(&error))?;
    let vkey = vkeys(dir, log)?.into_iter().next().unwrap_or_default();
    let checkpoint = cosigned.map_or_else(|| last.note.clone(), |said| said.below(&last));
    let receipt = Receipt { leaf, index: seq, proof, checkpoint, vkey };
    Ok(ReceiptState::Ready(Box::new(receipt)))
}
