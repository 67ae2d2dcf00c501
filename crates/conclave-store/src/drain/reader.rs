//! Reads durable frames from the spool, segment after segment.
//!
//! **Invariant:** nothing behind the durable end of a segment is ever read: it may not survive.

use crate::durable::make_dir;
use crate::spool::{Found, Frame, Position, Scanner, SegmentState};
use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};

/// Reads on from where the database stands.
#[derive(Debug)]
pub(super) struct SpoolReader {
    quarantine: PathBuf,
    position: Position,
    open: Option<(u64, Scanner)>,
}

/// How much one batch may hold.
#[derive(Clone, Copy, Debug)]
pub(super) struct BatchLimit {
    pub(super) entries: usize,
    pub(super) bytes: usize,
}

impl SpoolReader {
    pub(super) fn new(quarantine: PathBuf) -> Self {
        Self { quarantine, position: Position::default(), open: None }
    }

    /// Where the next frame will be read.
    pub(super) const fn position(&self) -> Position {
        self.position
    }

    /// Goes back to a position, after a batch that did not come to be.
    pub(super) fn rewind(&mut self, position: Position) {
        self.position = position;
        self.open = None;
    }

    /// Hands frames to `take` until the limit or the end of what is durable; says how many.
    ///
    /// # Errors
    /// When a segment cannot be read or `take` fails.
    pub(super) fn read<E: From<io::Error>>(
        &mut self,
        segments: &[SegmentState],
        limit: BatchLimit,
        mut take: impl FnMut(&Frame<'_>) -> Result<(), E>,
    ) -> Result<usize, E> {
        let (mut entries, mut bytes) = (0, 0);
        for segment in segments {
            if segment.name.index < self.position.segment {
                continue;
            }
            if !self.enter(segment)? {
                continue;
            }
            while self.position.offset < segment.durable_end {
                if entries >= limit.entries || bytes >= limit.bytes {
                    return Ok(entries);
                }
                let Some((_, scanner)) = &mut self.open else { break };
                match scanner.next()? {
                    Found::Frame(frame, end) => {
                        take(&frame)?;
                        entries += 1;
                        bytes += frame.leaf.len() + frame.body.len();
                        self.position.offset = end;
                    }
                    Found::Damage(range) => {
                        self.position.offset = range.end;
                        keep_copy(&self.quarantine, segment, range.start)?;
                    }
                    Found::End { at, torn } => {
                        scanner.seek(segment.durable_end);
                        self.position.offset = segment.durable_end;
                        if torn {
                            keep_copy(&self.quarantine, segment, at)?;
                        }
                    }
                }
            }
            if !segment.sealed {
                break;
            }
        }
        Ok(entries)
    }

    /// Opens a segment, or goes on with the one that is open; `false` if it is gone.
    fn enter(&mut self, segment: &SegmentState) -> io::Result<bool> {
        let (index, limit) = (segment.name.index, segment.durable_end);
        if index > self.position.segment {
            self.position = Position { segment: index, offset: 0 };
        }
        match &mut self.open {
            Some((open, scanner)) if *open == index => scanner.extend(limit),
            _ => {
                let file = match File::open(&segment.name.path) {
                    // Somebody removed it. What was in there shows as missing numbers in the next
                    // one.
                    Err(error) if error.kind() == io::ErrorKind::NotFound && segment.sealed => {
                        let path = segment.name.path.display();
                        tracing::error!(segment = %path, "a segment is gone");
                        self.position.offset = limit;
                        return Ok(false);
                    }
                    file => file?,
                };
                let scanner = Scanner::new(file, segment.name.seed, self.position.offset, limit);
                self.open = Some((index, scanner));
            }
        }
        Ok(true)
    }
}

/// Keeps a copy of a damaged segment before it is put away.
fn keep_copy(quarantine: &Path, segment: &SegmentState, at: u64) -> io::Result<()> {
    let path = &segment.name.path;
    tracing::error!(segment = %path.display(), at, "a spool segment is damaged; keeping a copy");
    let Some(name) = path.file_name() else { return Ok(()) };
    let copy = quarantine.join(name);
    if copy.exists() {
        return Ok(());
    }
    make_dir(quarantine).map_err(io::Error::other)?;
    let part = copy.with_extension("part");
    std::fs::copy(path, &part)?;
    File::open(&part)?.sync_all()?;
    std::fs::rename(&part, &copy)?;
    crate::durable::sync_dir(quarantine)
}
