//! Entries that are durable in the spool but not yet in the database.
//!
//! **Invariant:** a torn tail is no finding: a server may be writing it at this moment.

use super::CannotCheck;
use super::derived::Taken;
use crate::replica::Identity;
use crate::spool::{Found, ListedSegment, Scanner, list_all};
use conclave_ledger::{Auditor, Leaf};
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::PathBuf;

/// A segment that stays readable although a server may remove it.
pub(crate) struct HeldSegment {
    listed: ListedSegment,
    file: File,
}

/// Opens all segments of the spool that count.
pub(crate) fn hold_segments(dirs: &[PathBuf]) -> Result<Vec<HeldSegment>, CannotCheck> {
    let segments = list_all(dirs).map_err(|error| cannot(&error))?;
    let mut held = Vec::new();
    for listed in segments.into_iter().filter(|segment| !segment.is_void()) {
        match File::open(&listed.name.path) {
            Ok(file) => held.push(HeldSegment { listed, file }),
            // Drained and removed since it was listed.
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => return Err(cannot(&error)),
        }
    }
    // The writer goes on while we read. It begins a segment only when the one before is complete,
    // so up to the last one that is begun now there can be no hole; later ones are left for another
    // time.
    while held.last().is_some_and(|segment| !segment.is_begun()) {
        held.pop();
    }
    Ok(held)
}

impl HeldSegment {
    fn is_begun(&self) -> bool {
        let mut first = [0; 64];
        let read = self.file.read_at(&mut first, 0);
        read.is_err() || first.iter().any(|byte| *byte != 0)
    }
}

fn cannot(error: &io::Error) -> CannotCheck {
    CannotCheck(format!("the spool cannot be read: {error}"))
}

/// Feeds the entries that the log does not hold yet; says how far the numbers go then.
pub(crate) fn feed_pending(
    segments: Vec<HeldSegment>,
    taken: &Taken,
    auditor: &mut Auditor<'_>,
) -> Result<Taken, CannotCheck> {
    let mut taken = taken.clone();
    for HeldSegment { listed, file } in segments {
        let limit = listed.limit(file.metadata().map_err(|error| cannot(&error))?.len());
        let mut scanner = Scanner::new(file, listed.name.seed, 0, limit);
        loop {
            match scanner.next().map_err(|error| cannot(&error))? {
                Found::Frame(frame, _) => {
                    let (replica, epoch) = (frame.id.replica, frame.id.epoch);
                    let last = taken.entry(Identity { replica, epoch }).or_insert(0);
                    if frame.id.n <= *last {
                        continue;
                    }
                    *last = frame.id.n;
                    let seq = auditor.entries();
                    if Leaf::decode(frame.leaf).is_ok_and(|leaf| leaf.id != frame.id) {
                        auditor.note(seq, Some(frame.id), "a spool frame holds another's leaf");
                    }
                    let body = (!frame.body.is_empty()).then_some(frame.body);
                    auditor.feed_pending(frame.leaf, body);
                }
                // Numbers that are missing because of damage are found by the auditor.
                Found::Damage(_) => {}
                Found::End { .. } => break,
            }
        }
    }
    Ok(taken)
}
