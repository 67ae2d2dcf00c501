//! Up to which number entries were made durable and acknowledged, noted apart from the entries.
//!
//! A spool whose end was cut off looks like one that never went so far. This file knows better.
//!
//! **Invariant:** the note is written after the entries are durable and before anybody is told. It never
//! says more than is true. It costs a reply no sync of its own: after a loss of power it may say less, by as
//! much as was acknowledged since the last second.
//!
//! **Invariant:** a note that was half written leaves the one before it.

use crate::durable;
use crate::error::StoreError;
use crate::replica::Identity;
use std::collections::BTreeMap;
use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

/// In the data directory, not in the spool: who empties that does not empty this.
const FILE: &str = "acknowledged";
/// Two places, written in turn, each in a sector of its own.
const SLOT_BYTES: u64 = 512;
const FILE_BYTES: usize = 1_024;
const MAGIC: &[u8; 4] = b"CLH1";
const NOTE_BYTES: usize = 28;

/// The file of one data directory.
#[derive(Debug)]
pub(crate) struct HighWater {
    file: File,
    identity: Identity,
    turns: AtomicU64,
    is_dirty: AtomicBool,
    /// Whether the last note failed: told once, not with every batch.
    is_failing: AtomicBool,
}

impl HighWater {
    /// Opens the file of a data directory, or makes it.
    ///
    /// # Errors
    /// When it cannot be made or written.
    pub(crate) fn open(dir: &Path, identity: Identity) -> Result<Self, StoreError> {
        let path = dir.join(FILE);
        let made = durable::create(&path, &[0; FILE_BYTES]);
        made.map_err(StoreError::file("write", &path))?;
        let file = OpenOptions::new().read(true).write(true).open(&path);
        let file = file.map_err(StoreError::file("write to", &path))?;
        let newest = read_slots(&file).map_err(StoreError::file("read", &path))?.slot_of(identity);
        Ok(Self {
            file,
            identity,
            // What stands there is not overwritten first.
            turns: AtomicU64::new(newest.map_or(0, |slot| slot + 1)),
            is_dirty: AtomicBool::new(false),
            is_failing: AtomicBool::new(false),
        })
    }

    /// Notes that everything up to a number is durable. That it cannot be noted is no reason to hold back
    /// what is.
    pub(crate) fn note(&self, n: u64) {
        let slot = self.turns.fetch_add(1, Ordering::Relaxed) % 2;
        match self.file.write_all_at(&encode(self.identity, n), slot * SLOT_BYTES) {
            Ok(()) => {
                self.is_failing.store(false, Ordering::Relaxed);
                self.is_dirty.store(true, Ordering::Release);
            }
            Err(error) => {
                if !self.is_failing.swap(true, Ordering::Relaxed) {
                    tracing::error!(%error, "how far entries were acknowledged could not be noted");
                }
            }
        }
    }

    /// Makes what was noted survive a loss of power.
    ///
    /// # Errors
    /// When the disk does not say so.
    pub(crate) fn sync(&self) -> io::Result<()> {
        if self.is_dirty.swap(false, Ordering::AcqRel) {
            self.file.sync_data()?;
        }
        Ok(())
    }

    /// Up to which number entries of this identity were acknowledged.
    ///
    /// # Errors
    /// When the file cannot be read.
    pub(crate) fn number(&self) -> io::Result<u64> {
        Ok(read_slots(&self.file)?.number_of(self.identity))
    }
}

/// The last number that was acknowledged in a data directory for each identity that is noted.
///
/// # Errors
/// When the file is there and cannot be read.
pub(crate) fn acknowledged(dir: &Path) -> io::Result<BTreeMap<Identity, u64>> {
    let slots = match File::open(dir.join(FILE)) {
        Ok(file) => read_slots(&file)?,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(BTreeMap::new()),
        Err(error) => return Err(error),
    };
    let whose = slots.0.iter().flatten().map(|(whose, _)| *whose);
    Ok(whose.map(|whose| (whose, slots.number_of(whose))).collect())
}

/// What both places say.
struct Slots([Option<(Identity, u64)>; 2]);

impl Slots {
    /// Where the last note of an identity stands, or else the last of another.
    fn slot_of(&self, identity: Identity) -> Option<u64> {
        let noted = (0_u64..).zip(self.0).filter_map(|(slot, note)| Some((slot, note?)));
        noted.max_by_key(|(_, (whose, n))| (*whose == identity, *n)).map(|(slot, _)| slot)
    }

    fn number_of(&self, identity: Identity) -> u64 {
        let own = self.0.iter().flatten().filter(|(whose, _)| *whose == identity);
        own.map(|(_, n)| *n).max().unwrap_or(0)
    }
}

fn read_slots(file: &File) -> io::Result<Slots> {
    let mut bytes = [0; FILE_BYTES];
    let mut read = 0;
    while read < FILE_BYTES {
        match file.read_at(&mut bytes[read..], read as u64)? {
            0 => break,
            more => read += more,
        }
    }
    let (first, second) = bytes.split_at(FILE_BYTES / 2);
    Ok(Slots([decode(first), decode(second)]))
}

fn encode(identity: Identity, n: u64) -> [u8; NOTE_BYTES] {
    let mut note = [0; NOTE_BYTES];
    note[..4].copy_from_slice(MAGIC);
    note[4..12].copy_from_slice(&identity.replica);
    note[12..16].copy_from_slice(&identity.epoch.to_be_bytes());
    note[16..24].copy_from_slice(&n.to_be_bytes());
    let sum = crc32c::crc32c(&note[..24]);
    note[24..].copy_from_slice(&sum.to_be_bytes());
    note
}

fn decode(bytes: &[u8]) -> Option<(Identity, u64)> {
    let note: &[u8; NOTE_BYTES] = bytes.first_chunk()?;
    let sum = u32::from_be_bytes(note[24..].try_into().ok()?);
    if !note.starts_with(MAGIC) || crc32c::crc32c(&note[..24]) != sum {
        return None;
    }
    let identity = Identity {
        replica: note[4..12].try_into().ok()?,
        epoch: u32::from_be_bytes(note[12..16].try_into().ok()?),
    };
    Some((identity, u64::from_be_bytes(note[16..24].try_into().ok()?)))
}

#[cfg(test)]
mod tests {
    use super::*;

    const OURS: Identity = Identity { replica: [1; 8], epoch: 2 };

    #[test]
    fn what_was_noted_is_known_again_also_where_the_last_note_was_half_written() {
        let dir = tempfile::tempdir().unwrap();
        assert!(acknowledged(dir.path()).unwrap().is_empty());
        let mark = HighWater::open(dir.path(), OURS).unwrap();
        assert!(acknowledged(dir.path()).unwrap().is_empty());
        for n in [3, 4, 9] {
            mark.note(n);
            assert_eq!(acknowledged(dir.path()).unwrap()[&OURS], n);
        }
        mark.sync().unwrap();
        drop(mark);
        let path = dir.path().join(FILE);
        for at in 0..NOTE_BYTES {
            let mut bytes = std::fs::read(&path).unwrap();
            // The third note stands in the first place.
            bytes[at] ^= 1;
            let torn = tempfile::tempdir().unwrap();
            std::fs::write(torn.path().join(FILE), bytes).unwrap();
            assert_eq!(acknowledged(torn.path()).unwrap()[&OURS], 4, "at {at}");
            let mark = HighWater::open(torn.path(), OURS).unwrap();
            mark.note(10);
            assert_eq!(mark.number().unwrap(), 10);
        }
        let mark = HighWater::open(dir.path(), OURS).unwrap();
        assert_eq!(mark.number().unwrap(), 9);
        mark.note(10);
        assert_eq!(read_slots(&mark.file).unwrap().0, [Some((OURS, 9)), Some((OURS, 10))]);
    }

    #[test]
    fn numbers_of_another_epoch_say_nothing_about_this_one_and_are_kept_at_first() {
        let dir = tempfile::tempdir().unwrap();
        let before = Identity { epoch: 1, ..OURS };
        HighWater::open(dir.path(), before).unwrap().note(70);
        let mark = HighWater::open(dir.path(), OURS).unwrap();
        assert_eq!(mark.number().unwrap(), 0);
        mark.note(1);
        assert_eq!(acknowledged(dir.path()).unwrap(), BTreeMap::from([(before, 70), (OURS, 1)]));
        mark.note(2);
        assert_eq!(acknowledged(dir.path()).unwrap(), BTreeMap::from([(OURS, 2)]));
    }

    #[test]
    fn a_file_of_nonsense_says_nothing() {
        let dir = tempfile::tempdir().unwrap();
        for bytes in [vec![], vec![0; 10], vec![7; FILE_BYTES], vec![0; 4 * FILE_BYTES]] {
            std::fs::write(dir.path().join(FILE), bytes).unwrap();
            assert!(acknowledged(dir.path()).unwrap().is_empty());
        }
    }
}
