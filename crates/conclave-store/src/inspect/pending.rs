//! Entries that are durable in the spool but not yet in the database.
//!
//! **Invariant:** a torn tail is no finding: a server may be writing it at this moment.

use super::CannotCheck;
use super::derived::Taken;
use crate::replica::Identity;
use crate::spool::{Found, Scanner, SegmentName, list_segments};
use conclave_ledger::{Auditor, Leaf};
use std::fs::File;
use std::io;
use std::path::Path;

/// A segment that stays readable although a server may remove it.
pub(super) struct HeldSegment {
    name: SegmentName,
    file: File,
}

/// Opens all segments of the spool.
pub(super) fn hold_segments(spool: &Path) -> Result<Vec<HeldSegment>, CannotCheck> {
    let names = list_segments(spool).map_err(|error| cannot(&error))?;
    let mut held = Vec::new();
    for name in names {
        match File::open(&name.path) {
            Ok(file) => held.push(HeldSegment { name, file }),
            // Drained and removed since it was listed.
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => return Err(cannot(&error)),
        }
    }
    Ok(held)
}

fn cannot(error: &io::Error) -> CannotCheck {
    CannotCheck(format!("the spool cannot be read: {error}"))
}

/// Feeds the entries that the log does not hold yet.
pub(super) fn feed_pending(
    segments: Vec<HeldSegment>,
    taken: &Taken,
    auditor: &mut Auditor<'_>,
) -> Result<(), CannotCheck> {
    let mut taken = taken.clone();
    for HeldSegment { name, file } in segments {
        let limit = file.metadata().map_err(|error| cannot(&error))?.len();
        let mut scanner = Scanner::new(file, name.seed, 0, limit);
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
    Ok(())
}
