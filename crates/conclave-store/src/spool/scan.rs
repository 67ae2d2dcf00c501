//! Reads the frames of one segment, over damage if there is any.
//!
//! **Invariant:** a damaged frame never hides the frames after it: the search goes on behind it
//! until the end of the segment.
//!
//! **Invariant:** a segment is read in a window of bounded size; a frame larger than the window
//! makes it grow to that frame and no further.

use super::frame::{Frame, HEAD_BYTES, Head, MAGIC, Seed};
use std::fs::File;
use std::io;
use std::ops::Range;
use std::os::unix::fs::FileExt;

/// How much is read at once.
const WINDOW_BYTES: usize = 1 << 20;
static ZEROES: [u8; 1 << 16] = [0; 1 << 16];

/// What stands next in a segment.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Found<'a> {
    /// A whole frame, and where it ends.
    Frame(Frame<'a>, u64),
    /// Bytes that are no frame, with a frame behind them.
    Damage(Range<u64>),
    /// No frame up to the limit. `torn` says whether anything was written behind the last frame.
    End { at: u64, torn: bool },
}

/// Reads forward through one segment.
#[derive(Debug)]
pub(crate) struct Scanner {
    file: File,
    seed: Seed,
    at: u64,
    limit: u64,
    window: Vec<u8>,
    window_at: u64,
}

impl Scanner {
    /// Starts at `at` and sees nothing from `limit` on.
    pub(crate) const fn new(file: File, seed: Seed, at: u64, limit: u64) -> Self {
        Self { file, seed, at, limit, window: Vec::new(), window_at: 0 }
    }

    /// Lets the scanner see more of a segment that has grown. What it read before beyond its old
    /// limit is forgotten, because it may have been written since.
    pub(crate) fn extend(&mut self, limit: u64) {
        if limit > self.limit {
            self.limit = limit;
            let known = self.window_end().min(limit).saturating_sub(self.window_at);
            self.window.truncate(usize::try_from(known).unwrap_or(0));
        }
    }

    /// Goes back (or on) to a place where a frame begins.
    pub(crate) const fn seek(&mut self, at: u64) {
        self.at = at;
    }

    /// Finds what stands next and moves behind it; an end does not move.
    ///
    /// # Errors
    /// When the file cannot be read.
    pub(crate) fn next(&mut self) -> io::Result<Found<'_>> {
        let begin = self.at;
        if let Some(head) = self.frame_at(begin)? {
            let end = begin + head.frame_bytes() as u64;
            self.at = end;
            let bytes = Self::slice(&self.window, self.window_at, begin, head.frame_bytes());
            return Ok(match head.split(bytes) {
                Some(frame) => Found::Frame(frame, end),
                None => Found::End { at: begin, torn: true },
            });
        }
        match self.search(begin + 1)? {
            Search::Frame(at) => {
                self.at = at;
                Ok(Found::Damage(begin..at))
            }
            Search::Nothing { blank } => {
                let torn = !(blank && self.is_blank_byte(begin)?);
                Ok(Found::End { at: begin, torn })
            }
        }
    }

    /// The head of the whole, valid frame that begins here, which the window then holds.
    fn frame_at(&mut self, at: u64) -> io::Result<Option<Head>> {
        let seed = self.seed;
        let Some(head) = Head::read(self.bytes(at, HEAD_BYTES)?, seed) else { return Ok(None) };
        let whole = head.is_whole(self.bytes(at, head.frame_bytes())?, seed);
        Ok(whole.then_some(head))
    }

    /// Looks for the next valid frame from `from` on.
    fn search(&mut self, from: u64) -> io::Result<Search> {
        let (mut at, mut blank) = (from, true);
        while at < self.limit {
            let chunk = self.bytes(at, ZEROES.len())?;
            if *chunk == ZEROES[..chunk.len()] {
                at += chunk.len() as u64;
                continue;
            }
            blank = false;
            let Some(offset) = find_magic(chunk) else {
                // The magic may begin in the last three bytes of the chunk.
                at += chunk.len().saturating_sub(MAGIC.len() - 1).max(1) as u64;
                continue;
            };
            at += offset as u64;
            if self.frame_at(at)?.is_some() {
                return Ok(Search::Frame(at));
            }
            at += 1;
        }
        Ok(Search::Nothing { blank })
    }

    fn is_blank_byte(&mut self, at: u64) -> io::Result<bool> {
        Ok(self.bytes(at, 1)?.iter().all(|byte| *byte == 0))
    }

    /// Up to `length` bytes from `at`; fewer only at the limit.
    fn bytes(&mut self, at: u64, length: usize) -> io::Result<&[u8]> {
        let left = usize::try_from(self.limit.saturating_sub(at)).unwrap_or(usize::MAX);
        let length = length.min(left);
        let held = at >= self.window_at && at + length as u64 <= self.window_end();
        if !held {
            self.fill(at, length.max(WINDOW_BYTES.min(left)))?;
        }
        Ok(Self::slice(&self.window, self.window_at, at, length))
    }

    fn slice(window: &[u8], window_at: u64, at: u64, length: usize) -> &[u8] {
        let begin = usize::try_from(at.saturating_sub(window_at)).unwrap_or(usize::MAX);
        let rest = window.get(begin..).unwrap_or_default();
        &rest[..length.min(rest.len())]
    }

    fn fill(&mut self, at: u64, length: usize) -> io::Result<()> {
        self.window.resize(length, 0);
        self.window_at = at;
        let mut filled = 0;
        while filled < length {
            match self.file.read_at(&mut self.window[filled..], at + filled as u64) {
                Ok(0) => break,
                Ok(more) => filled += more,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => {
                    self.window.clear();
                    return Err(error);
                }
            }
        }
        // A file shorter than promised ends where it ends.
        self.window.truncate(filled);
        if filled < length {
            self.limit = at + filled as u64;
        }
        Ok(())
    }

    const fn window_end(&self) -> u64 {
        self.window_at + self.window.len() as u64
    }
}

enum Search {
    Frame(u64),
    Nothing { blank: bool },
}

fn find_magic(bytes: &[u8]) -> Option<usize> {
    let mut from = 0;
    while let Some(offset) = bytes.get(from..)?.iter().position(|byte| *byte == MAGIC[0]) {
        from += offset;
        if bytes.get(from..from + MAGIC.len()) == Some(MAGIC.as_slice()) {
            return Some(from);
        }
        from += 1;
    }
    None
}

#[cfg(test)]
#[path = "scan_tests.rs"]
mod tests;
