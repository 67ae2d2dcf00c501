//! Follows the signing key of a tiled log from one that is trusted to the one in force.
//!
//! **Invariant:** a key is believed only because a believed one has signed the hand-over to it. What
//! else the entry's log says is not asked, so a log that is wrong cannot bring in a key.

use super::tiled::TiledLog;
use conclave_ledger::{
    Checkpoint, CheckpointError, Kind, Leaf, Rotation, SignedNote, TILE_WIDTH, TileId, VerifierKey,
    read_bundle,
};

/// How many hand-overs are followed.
const HANDOVERS_MAX: usize = 10_000;

/// A checkpoint that is believed.
pub(super) struct TrustedCheckpoint {
    pub(super) checkpoint: Checkpoint,
    /// Every key that is believed, those that were handed over to included.
    pub(super) keys: Vec<VerifierKey>,
}

/// Opens a checkpoint with these keys, or with those they were handed over to.
///
/// # Errors
/// When the log cannot be read; the inner error says why the checkpoint cannot be believed.
pub(super) fn open_checkpoint(
    log: &dyn TiledLog,
    note: &str,
    keys: &[VerifierKey],
) -> anyhow::Result<Result<TrustedCheckpoint, CheckpointError>> {
    let refused = match Checkpoint::open(note, keys) {
        Ok(checkpoint) => return Ok(Ok(TrustedCheckpoint { checkpoint, keys: keys.to_vec() })),
        Err(refused) => refused,
    };
    // Its size is not to be believed yet; reading ends where there are no more entries.
    let text = SignedNote::parse(note).map(|note| note.text().to_owned());
    let claimed = text.ok().and_then(|text| Checkpoint::parse(&text).ok());
    let Some(claimed) = claimed.filter(|_| log.has_leaves()) else { return Ok(Err(refused)) };
    let known = follow(log, claimed.size, keys)?;
    if known.len() == keys.len() {
        return Ok(Err(refused));
    }
    let opened = Checkpoint::open(note, &known);
    Ok(opened.map(|checkpoint| TrustedCheckpoint { checkpoint, keys: known }))
}

/// The keys, and those they were handed over to, in the order of the log.
fn follow(log: &dyn TiledLog, size: u64, keys: &[VerifierKey]) -> anyhow::Result<Vec<VerifierKey>> {
    let mut known = keys.to_vec();
    each_leaf(log, size, &mut |_, leaf| {
        let rotation = Leaf::decode(leaf).ok().filter(|leaf| leaf.draft.kind == Kind::KeyRotate);
        let rotation = rotation.and_then(|leaf| Rotation::from_public(&leaf.draft.public));
        let rotation = rotation.filter(|rotation| known.contains(&rotation.old));
        if let Some(rotation) = rotation.filter(Rotation::holds)
            && !known.contains(&rotation.new)
        {
            known.push(rotation.new);
        }
        known.len() < HANDOVERS_MAX
    })?;
    Ok(known)
}

/// Gives the leaves of a log in order, as far as there are any, until one is not wanted.
pub(super) fn each_leaf(
    log: &dyn TiledLog,
    size: u64,
    take: &mut dyn FnMut(u64, &[u8]) -> bool,
) -> anyhow::Result<()> {
    for index in 0..size.div_ceil(TILE_WIDTH) {
        let Some(id) = TileId::in_tree(0, index, size) else { break };
        let Some(bundle) = log.bundle(index, id.width)? else { break };
        let Ok(leaves) = read_bundle(&bundle, id.width) else { break };
        for (seq, leaf) in (index * TILE_WIDTH..).zip(leaves) {
            if !take(seq, leaf) {
                return Ok(());
            }
        }
    }
    Ok(())
}
