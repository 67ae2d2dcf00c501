//! What an earlier run left in the spool, and where numbering goes on.
//!
//! **Invariant:** only bytes behind the last whole frame of the whole spool are ever cut off.
//! Damage with frames behind it stays for the drainer, which keeps a copy and names what is
//! missing.

use super::progress::SegmentState;
use super::scan::{Found, Scanner};
use super::segment::{SegmentName, list_segments};
use crate::durable::{private, sync_dir};
use crate::error::StoreError;
use crate::replica::Identity;
use std::fs::File;
use std::path::Path;

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

/// Looks through the spool: finds the last frame, cuts a torn tail, removes segments without
/// frames.
pub(crate) fn recover(dir: &Path, identity: Identity) -> Result<Recovered, StoreError> {
    let mut names = list_segments(dir).map_err(StoreError::file("read", dir))?;
    let next_index = names.last().map_or(1, |name| name.index.saturating_add(1));
    let mut found = Recovered { next_index, ..Recovered::default() };
    // Numbers only rise, so the last segment that holds a frame holds the largest.
    while let Some(name) = names.pop() {
        let surveyed = survey(&name, identity).and_then(|survey| {
            let bytes = std::fs::metadata(&name.path)?.len();
            cut(&name, &survey)?;
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
    for name in names.into_iter().rev() {
        let file = std::fs::metadata(&name.path).map_err(StoreError::file("read", &name.path))?;
        found.segments.push(SegmentState { name, durable_end: file.len(), sealed: true });
    }
    found.segments.reverse();
    Ok(found)
}

fn survey(name: &SegmentName, identity: Identity) -> std::io::Result<Survey> {
    let file = File::open(&name.path)?;
    let limit = file.metadata()?.len();
    let mut scanner = Scanner::new(file, name.seed, 0, limit);
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

/// Cuts a segment behind its last frame, or removes it if it has none.
fn cut(name: &SegmentName, survey: &Survey) -> std::io::Result<()> {
    if survey.end == 0 {
        std::fs::remove_file(&name.path)?;
        return name.path.parent().map_or(Ok(()), sync_dir);
    }
    let file = private().write(true).open(&name.path)?;
    file.set_len(survey.end)?;
    file.sync_all()
}
