//! Segments that the database has taken, kept for a while.
//!
//! A database that comes back from a backup, or from a standby that was behind, has forgotten entries that
//! were handed over to it. As long as their segments are kept they can be handed over again.
//!
//! **Invariant:** nothing in here is needed to go on: it is removed by age, by size, and as soon as the
//! disk is needed for new entries. While it is not certain that the database has it, only the last counts.
//!
//! **Invariant:** what a segment is cut to is what counted of it. Words in it are sealed; an erasure takes
//! the key, and with it what is kept here.

use super::progress::SegmentState;
use super::recover::last_number;
use super::segment::{SegmentName, list_segments};
use crate::durable::{make_dir, private, sync_dir};
use crate::error::StoreError;
use crate::replica::Identity;
use conclave_engine::Clock;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, SystemTime};

/// Where they stand, within a spool directory.
const DIR: &str = "kept";

/// How much is kept, and how long.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KeptLimits {
    /// How many bytes at most; 0 keeps nothing.
    pub bytes_max: u64,
    /// How long at most.
    pub age_max: Duration,
}

impl Default for KeptLimits {
    fn default() -> Self {
        Self { bytes_max: 1 << 30, age_max: Duration::from_secs(24 * 3_600) }
    }
}

/// Drained segments of all spool directories.
pub(crate) struct Kept {
    spools: Vec<PathBuf>,
    limits: KeptLimits,
    clock: Arc<dyn Clock>,
    /// Whether the database may be missing what is in here.
    is_held: AtomicBool,
    /// Whether it is not certain what time it is.
    doubts_clock: AtomicBool,
}

impl Kept {
    pub(crate) fn new(spools: &[PathBuf], limits: KeptLimits, clock: Arc<dyn Clock>) -> Self {
        let (spools, is_held, doubts_clock) = (spools.to_vec(), false.into(), false.into());
        Self { spools, limits, clock, is_held, doubts_clock }
    }

    /// Keeps everything while the clock cannot be believed.
    pub(crate) fn doubt_clock(&self, doubts_clock: bool) {
        self.doubts_clock.store(doubts_clock, Ordering::Release);
    }

    /// Keeps everything, however old and however much, until it is known that the database has it: it may
    /// be away, or come back older, and somebody may need long to decide what to do about that.
    pub(crate) fn hold(&self, is_held: bool) {
        self.is_held.store(is_held, Ordering::Release);
    }

    /// Puts a drained segment away; one that cannot be kept is removed.
    pub(crate) fn keep(&self, segment: &SegmentState) {
        let path = &segment.name.path;
        let kept = self.limits.bytes_max > 0 && self.move_away(segment).is_ok();
        if !kept && let Err(error) = std::fs::remove_file(path) {
            tracing::warn!(segment = %path.display(), %error, "cannot remove a drained segment");
        }
        self.prune();
    }

    fn move_away(&self, segment: &SegmentState) -> io::Result<()> {
        let path = &segment.name.path;
        let (Some(spool), Some(name)) = (path.parent(), path.file_name()) else {
            return Err(io::ErrorKind::InvalidInput.into());
        };
        let dir = spool.join(DIR);
        make_dir(&dir).map_err(io::Error::other)?;
        let file = private().write(true).open(path)?;
        file.set_len(segment.durable_end)?;
        file.set_modified(SystemTime::UNIX_EPOCH + Duration::from_millis(self.clock.now_ms()))?;
        file.sync_all()?;
        std::fs::rename(path, dir.join(name))?;
        sync_dir(&dir)
    }

    /// Everything that is kept, in order.
    ///
    /// # Errors
    /// When a directory cannot be read.
    pub(crate) fn segments(&self) -> io::Result<Vec<SegmentState>> {
        let mut segments = Vec::new();
        for (name, durable_end, _) in self.list()? {
            segments.push(SegmentState { name, durable_end, sealed: true });
        }
        Ok(segments)
    }

    /// The index of the last segment and the largest number of this identity in it.
    ///
    /// # Errors
    /// When it cannot be read.
    pub(crate) fn last(&self, identity: Identity) -> Result<(u64, u64), StoreError> {
        let first = self.spools.first().map_or(Path::new("spool"), PathBuf::as_path);
        let segments = self.segments().map_err(StoreError::file("read", first))?;
        let Some(last) = segments.last() else { return Ok((0, 0)) };
        let number = last_number(&last.name, identity);
        Ok((last.name.index, number.map_err(StoreError::file("read", &last.name.path))?))
    }

    /// Removes what is too old or too much, the oldest first, unless it is held. Says when that was, and
    /// before which time everything is too old.
    pub(crate) fn prune(&self) -> Option<(u64, u64)> {
        if self.is_held.load(Ordering::Acquire) || self.doubts_clock.load(Ordering::Acquire) {
            return None;
        }
        let age_ms = u64::try_from(self.limits.age_max.as_millis()).unwrap_or(u64::MAX);
        let now_ms = self.clock.now_ms();
        self.prune_segments();
        Some((now_ms, now_ms.saturating_sub(age_ms)))
    }

    fn prune_segments(&self) {
        let Ok(listed) = self.list() else { return };
        let mut bytes: u64 = listed.iter().map(|(_, bytes, _)| bytes).sum();
        let now = self.clock.now_ms();
        for (name, length, since) in listed {
            let old = u128::from(now.saturating_sub(since)) > self.limits.age_max.as_millis();
            if !old && bytes <= self.limits.bytes_max {
                return;
            }
            let _ = std::fs::remove_file(&name.path);
            bytes = bytes.saturating_sub(length);
        }
    }

    /// Removes everything, for a disk that has no room; says whether there was something.
    pub(crate) fn give_way(&self) -> bool {
        let listed = self.list().unwrap_or_default();
        listed.iter().filter(|(name, _, _)| std::fs::remove_file(&name.path).is_ok()).count() > 0
    }

    /// Name, length and since when, in order.
    fn list(&self) -> io::Result<Vec<(SegmentName, u64, u64)>> {
        let mut listed = Vec::new();
        for spool in &self.spools {
            for name in list_segments(&spool.join(DIR))? {
                let Ok(file) = std::fs::metadata(&name.path) else { continue };
                let since = file.modified()?.duration_since(SystemTime::UNIX_EPOCH);
                let since = since.map_or(0, |since| since.as_millis());
                listed.push((name, file.len(), u64::try_from(since).unwrap_or(u64::MAX)));
            }
        }
        listed.sort_by_key(|(name, _, _)| name.index);
        Ok(listed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::spool::Seed;
    use std::sync::atomic::AtomicU64;

    #[derive(Default)]
    struct Hand(AtomicU64);
    impl Clock for Hand {
        fn now_ms(&self) -> u64 {
            self.0.load(Ordering::Relaxed)
        }
    }

    fn segment(dir: &Path, index: u64, bytes: usize) -> SegmentState {
        let name = SegmentName::new(dir, index, Seed(7), None);
        std::fs::write(&name.path, vec![1; bytes + 500]).unwrap();
        SegmentState { name, durable_end: bytes as u64, sealed: true }
    }

    fn indexes(kept: &Kept) -> Vec<u64> {
        kept.segments().unwrap().iter().map(|segment| segment.name.index).collect()
    }

    #[test]
    fn segments_are_cut_to_what_counts_and_go_by_size_and_by_age() {
        let (dir, other) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let clock = Arc::new(Hand(AtomicU64::new(1_000_000)));
        let limits = KeptLimits { bytes_max: 250, age_max: Duration::from_secs(60) };
        let spools = [dir.path().to_owned(), other.path().to_owned()];
        let kept = Kept::new(&spools, limits, clock.clone());
        kept.keep(&segment(dir.path(), 1, 100));
        kept.keep(&segment(other.path(), 2, 100));
        assert_eq!(indexes(&kept), [1, 2]);
        assert_eq!(kept.segments().unwrap()[0].durable_end, 100);
        clock.0.store(1_050_000, Ordering::Relaxed);
        kept.keep(&segment(dir.path(), 3, 100));
        assert_eq!(indexes(&kept), [2, 3], "the oldest gives way");
        clock.0.store(1_070_000, Ordering::Relaxed);
        kept.hold(true);
        kept.keep(&segment(dir.path(), 4, 200));
        kept.prune();
        assert_eq!(indexes(&kept), [2, 3, 4], "somebody is still deciding");
        std::fs::remove_file(&kept.segments().unwrap()[2].name.path).unwrap();
        kept.hold(false);
        kept.prune();
        assert_eq!(indexes(&kept), [3], "the old one is gone");
        assert!(kept.give_way() && !kept.give_way());
        assert_eq!(list_segments(dir.path()).unwrap(), [], "nothing is left in the spool");
    }

    #[test]
    fn without_room_for_it_nothing_is_kept() {
        let dir = tempfile::tempdir().unwrap();
        let limits = KeptLimits { bytes_max: 0, ..KeptLimits::default() };
        let kept = Kept::new(&[dir.path().to_owned()], limits, Arc::new(Hand::default()));
        let state = segment(dir.path(), 1, 100);
        kept.keep(&state);
        assert!(!state.name.path.exists() && indexes(&kept).is_empty());
    }
}
