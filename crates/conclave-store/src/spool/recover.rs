//! What an earlier run left in the spool, and where numbering goes on.
//!
//! **Invariant:** only bytes behind the last whole frame of the whole spool are ever cut off.
//! Damage with frames behind it stays for the drainer, which keeps a copy and names what is
//! missing.

use super::progress::SegmentState;
use super::scan::{Found, Scanner};
use super::segment::{ListedSegment, SegmentName, list_all};
use crate::durable::{make_dir, private, sync_dir};
use crate::error::StoreError;
use crate::replica::Identity;
use std::fs::File;
use std::path::{Path, PathBuf};

/// What was found.
#[derive(Debug, Default)]
pub(crate) struct Recovered {
    /// What is still to be drained.
    pub(crate) segments: Vec<SegmentState>,
    /// The index the next segment gets.
    pub(crate) next_index: u64,
    /// The largest number of this identity.
    pub(crate) last_n: u64,
    /// The latest time of any entry in the last segment.
    pub(crate) last_ts_ms: u64,
    /// How many bytes of a torn tail were cut off.
    pub(crate) torn_bytes: u64,
}

/// What one scan of a segment learned.
#[derive(Default)]
struct Survey {
    end: u64,
    torn: bool,
    last_n: u64,
    last_ts_ms: u64,
}

/// Looks through the spool: finds the last frame, cuts a torn tail, puts away segments without
/// frames.
pub(crate) fn recover(
    dirs: &[PathBuf],
    quarantine: &Path,
    identity: Identity,
) -> Result<Recovered, StoreError> {
    let first = dirs.first().map_or(Path::new("spool"), PathBuf::as_path);
    let mut listed = list_all(dirs).map_err(StoreError::file("read", first))?;
    let next_index = listed.last().map_or(1, |last| last.name.index.saturating_add(1));
    let mut found = Recovered { next_index, ..Recovered::default() };
    // Numbers only rise, so the last segment that holds a frame holds the largest.
    while let Some(segment) = listed.pop() {
        if segment.is_void() {
            remove(&segment.name)?;
            continue;
        }
        let name = segment.name.clone();
        let surveyed = survey(&segment, identity).and_then(|survey| {
            let bytes = segment.limit(std::fs::metadata(&name.path)?.len());
            cut(&name, quarantine, &survey)?;
            Ok((survey, bytes))
        });
        let (survey, bytes) = surveyed.map_err(StoreError::file("recover", &name.path))?;
        if survey.torn {
            found.torn_bytes += bytes.saturating_sub(survey.end);
        }
        if survey.end > 0 {
            (found.last_n, found.last_ts_ms) = (survey.last_n, survey.last_ts_ms);
            found.segments.push(SegmentState { name, durable_end: survey.end, sealed: true });
            break;
        }
    }
    for segment in listed.into_iter().rev() {
        if segment.is_void() {
            remove(&segment.name)?;
            continue;
        }
        let path = &segment.name.path;
        let file = std::fs::metadata(path).map_err(StoreError::file("read", path))?;
        let durable_end = segment.limit(file.len());
        found.segments.push(SegmentState { name: segment.name, durable_end, sealed: true });
    }
    found.segments.reverse();
    Ok(found)
}

/// Puts away a segment of which nothing counts.
fn remove(name: &SegmentName) -> Result<(), StoreError> {
    std::fs::remove_file(&name.path).map_err(StoreError::file("remove", &name.path))
}

fn survey(segment: &ListedSegment, identity: Identity) -> std::io::Result<Survey> {
    let file = File::open(&segment.name.path)?;
    let limit = segment.limit(file.metadata()?.len());
    let mut scanner = Scanner::new(file, segment.name.seed, 0, limit);
    let mut survey = Survey::default();
    loop {
        match scanner.next()? {
            Found::Frame(frame, end) => {
                survey.end = end;
                survey.last_ts_ms = survey.last_ts_ms.max(frame.ts_ms);
                if (frame.id.replica, frame.id.epoch) == (identity.replica, identity.epoch) {
                    survey.last_n = survey.last_n.max(frame.id.n);
                }
            }
            Found::Damage(_) => {}
            Found::End { torn, .. } => {
                survey.torn = torn;
                return Ok(survey);
            }
        }
    }
}

/// The largest number of an identity in a segment that is kept.
pub(super) fn last_number(name: &SegmentName, identity: Identity) -> std::io::Result<u64> {
    let segment = ListedSegment { name: name.clone(), bytes_max: None };
    Ok(survey(&segment, identity)?.last_n)
}

/// Cuts a segment behind its last frame. One without any frame is removed, but kept in quarantine
/// if something was written there.
fn cut(name: &SegmentName, quarantine: &Path, survey: &Survey) -> std::io::Result<()> {
    if survey.end == 0 {
        if let (true, Some(file)) = (survey.torn, name.path.file_name()) {
            make_dir(quarantine).map_err(std::io::Error::other)?;
            std::fs::rename(&name.path, quarantine.join(file))?;
        } else {
            std::fs::remove_file(&name.path)?;
        }
        return name.path.parent().map_or(Ok(()), sync_dir);
    }
    let file = private().write(true).open(&name.path)?;
    file.set_len(survey.end)?;
    file.sync_all()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::spool::frame::{Seed, write_frame};
    use crate::spool::progress::Position;
    use conclave_ledger::EntryId;

    const IDENTITY: Identity = Identity { replica: [1; 8], epoch: 2 };
    const SEED: Seed = Seed(77);

    fn frame(epoch: u32, n: u64) -> Vec<u8> {
        let id = EntryId { replica: IDENTITY.replica, epoch, n };
        let mut out = Vec::new();
        write_frame(&mut out, SEED, (id, 100 + n), |out| out.extend_from_slice(b"leaf"), b"body");
        out
    }

    fn write(dir: &Path, index: u64, bytes: &[u8]) -> SegmentName {
        write_after(dir, index, None, bytes)
    }

    fn write_after(dir: &Path, index: u64, void: Option<Position>, bytes: &[u8]) -> SegmentName {
        let name = SegmentName::new(dir, index, SEED, void);
        let mut bytes = bytes.to_vec();
        bytes.resize(4_096, 0);
        std::fs::write(&name.path, bytes).unwrap();
        name
    }

    fn recovered(dir: &Path) -> Recovered {
        recover(&[dir.to_owned()], &dir.join("quarantine"), IDENTITY).unwrap()
    }

    #[test]
    fn a_segment_of_garbage_is_kept_aside() {
        let dir = tempfile::tempdir().unwrap();
        write(dir.path(), 1, &frame(2, 1));
        let garbage = write(dir.path(), 2, b"no frame at all");
        assert_eq!(recovered(dir.path()).segments.len(), 1);
        let kept = dir.path().join("quarantine").join(garbage.path.file_name().unwrap());
        assert!(kept.exists() && !garbage.path.exists());
    }

    #[test]
    fn an_empty_spool_begins_at_one() {
        let dir = tempfile::tempdir().unwrap();
        let found = recovered(dir.path());
        assert_eq!((found.next_index, found.last_n, found.segments.len()), (1, 0, 0));
    }

    #[test]
    fn a_tail_torn_at_every_byte_is_cut_behind_the_last_whole_frame() {
        let (whole, last) = ([frame(2, 1), frame(2, 2)].concat(), frame(2, 3));
        for cut in 0..=last.len() {
            let dir = tempfile::tempdir().unwrap();
            let name = write(dir.path(), 5, &[&whole[..], &last[..cut]].concat());
            let found = recovered(dir.path());
            let (n, end) =
                if cut == last.len() { (3, whole.len() + cut) } else { (2, whole.len()) };
            assert_eq!((found.last_n, found.last_ts_ms, found.next_index), (n, 100 + n, 6));
            assert_eq!(found.segments[0].durable_end, end as u64, "cut at {cut}");
            assert_eq!(std::fs::metadata(&name.path).unwrap().len(), end as u64, "cut at {cut}");
            assert_eq!(found.torn_bytes > 0, cut > 0 && cut < last.len(), "cut at {cut}");
        }
    }

    #[test]
    fn damage_with_a_frame_behind_it_is_never_cut() {
        let dir = tempfile::tempdir().unwrap();
        let mut bytes = [frame(2, 1), frame(2, 2), frame(2, 3)].concat();
        let end = bytes.len() as u64;
        bytes[70] ^= 1;
        write(dir.path(), 1, &bytes);
        let found = recovered(dir.path());
        assert_eq!((found.last_n, found.segments[0].durable_end), (3, end));
    }

    #[test]
    fn earlier_segments_stay_whole_and_empty_ones_go() {
        let dir = tempfile::tempdir().unwrap();
        write(dir.path(), 1, &frame(2, 1));
        write(dir.path(), 2, &frame(2, 2));
        let spare = write(dir.path(), 3, &[]);
        let found = recovered(dir.path());
        let ends: Vec<_> =
            found.segments.iter().map(|state| (state.name.index, state.durable_end)).collect();
        assert_eq!(ends, [(1, 4_096), (2, frame(2, 2).len() as u64)]);
        assert_eq!((found.last_n, found.next_index, spare.path.exists()), (2, 4, false));
    }

    #[test]
    fn numbers_of_another_epoch_do_not_count() {
        let dir = tempfile::tempdir().unwrap();
        write(dir.path(), 1, &frame(1, 900));
        assert_eq!(recovered(dir.path()).last_n, 0);
    }

    #[test]
    fn what_a_failed_disk_kept_all_the_same_does_not_come_back() {
        let (dir, other) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let frames = [frame(2, 1), frame(2, 2), frame(2, 3)];
        let good = frames[0].len() as u64;
        write(dir.path(), 1, &frames.concat());
        write(dir.path(), 2, &frame(2, 2));
        let void = Some(Position { segment: 1, offset: good });
        write_after(other.path(), 3, void, &frame(2, 4));
        let dirs = [dir.path().to_owned(), other.path().to_owned()];
        let found = recover(&dirs, &dir.path().join("quarantine"), IDENTITY).unwrap();
        let ends: Vec<_> =
            found.segments.iter().map(|state| (state.name.index, state.durable_end)).collect();
        assert_eq!(ends, [(1, good), (3, frame(2, 4).len() as u64)]);
        assert_eq!((found.last_n, found.next_index), (4, 4));
        assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 1, "the void one is gone");
    }
}
