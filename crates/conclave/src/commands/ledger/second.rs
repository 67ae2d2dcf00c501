//! A second checkpoint of the same log, from somebody else: do the two tell one story?

use super::audit::Source;
use super::handover::{TrustedCheckpoint, open_checkpoint};
use super::tiled::TiledLog;
use anyhow::{Context, bail};
use conclave_ledger::{Checkpoint, Hash, TileId, TileSource, VerifierKey, root_at};
use conclave_store::LedgerReader;
use serde_json::{Value, json};
use std::path::Path;

/// The largest checkpoint that is read from a file.
const NOTE_BYTES_MAX: u64 = 64 << 10;

/// Two notes that cannot both be true of one log.
pub(super) struct Equivocation {
    /// In what they differ.
    pub(super) problem: String,
    ours: String,
    theirs: String,
}

impl Equivocation {
    /// The evidence: both notes as they were signed.
    pub(super) fn as_value(&self) -> Value {
        json!({"problem": self.problem, "ours": self.ours, "theirs": self.theirs})
    }

    /// The evidence for people.
    pub(super) fn lines(&self) -> String {
        let Self { problem, ours, theirs } = self;
        format!("{problem}\nthis log has signed:\n{ours}\nand so was this signed:\n{theirs}")
    }
}

/// Reads a checkpoint from a file.
///
/// # Errors
/// When there is none, or it cannot be one.
pub(super) fn read(file: &Path) -> anyhow::Result<String> {
    let known = std::fs::metadata(file).with_context(|| file.display().to_string())?;
    if known.len() > NOTE_BYTES_MAX {
        bail!("{} is too large to be a checkpoint", file.display());
    }
    std::fs::read_to_string(file).with_context(|| file.display().to_string())
}

/// Compares with a log in tiles.
///
/// # Errors
/// When one of the two notes is not signed by a key of the log, or a tile cannot be had.
pub(super) fn against_tiles(
    log: &dyn TiledLog,
    keys: &[VerifierKey],
    theirs: String,
) -> anyhow::Result<Option<Equivocation>> {
    let ours = log.text("checkpoint")?;
    let trusted = open_checkpoint(log, &ours, keys)?.context("the checkpoint of the log")?;
    // A log in tiles keeps no earlier notes to show beside theirs.
    let same_size = |_| Ok(None);
    compare(&mut Source(log), &trusted, ours, theirs, same_size)
}

/// Compares with a data directory or a database.
///
/// # Errors
/// When one of the two notes is not signed by a key of the log, or a tile cannot be had.
pub(super) fn against_ledger(
    reader: &LedgerReader,
    pinned: Option<&VerifierKey>,
    theirs: String,
) -> anyhow::Result<Option<Equivocation>> {
    let Some(ours) = reader.checkpoint() else { bail!("no checkpoint was signed yet") };
    let mut keys = reader.vkeys()?;
    keys.extend(pinned.cloned());
    let checkpoint = Checkpoint::open(ours, &keys).context("the checkpoint of the log")?;
    let trusted = TrustedCheckpoint { checkpoint, keys };
    // The note of the very same size is the better evidence, if there is one.
    let same_size = |wanted: u64| {
        let mut found = None;
        reader.checkpoints(|size, note, _| -> anyhow::Result<()> {
            if size == wanted {
                found = Some(note.to_owned());
            }
            Ok(())
        })?;
        Ok(found)
    };
    compare(&mut ReaderTiles(reader), &trusted, ours.to_owned(), theirs, same_size)
}

struct ReaderTiles<'a>(&'a LedgerReader);

impl TileSource for ReaderTiles<'_> {
    type Error = anyhow::Error;
    fn tile(&mut self, id: TileId) -> anyhow::Result<Vec<Hash>> {
        Ok(self.0.tile(id)?)
    }
}

fn compare<S: TileSource<Error = anyhow::Error>>(
    tiles: &mut S,
    trusted: &TrustedCheckpoint,
    ours: String,
    theirs: String,
    same_size: impl FnOnce(u64) -> anyhow::Result<Option<String>>,
) -> anyhow::Result<Option<Equivocation>> {
    let other = match Checkpoint::open(&theirs, &trusted.keys) {
        Ok(other) => other,
        Err(error) => bail!("the checkpoint that was given proves nothing: {error}"),
    };
    let now = &trusted.checkpoint;
    if other.size > now.size {
        let problem = format!(
            "the log went back: a checkpoint over {} entries was signed, this one covers {}",
            other.size, now.size
        );
        return Ok(Some(Equivocation { problem, ours, theirs }));
    }
    let root = root_at(tiles, other.size).map_err(|error| anyhow::anyhow!("the tiles: {error}"))?;
    if root == other.root {
        return Ok(None);
    }
    let ours = same_size(other.size)?.unwrap_or(ours);
    let problem =
        format!("equivocation: two logs of {} entries were signed in one name", other.size);
    Ok(Some(Equivocation { problem, ours, theirs }))
}
