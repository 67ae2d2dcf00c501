//! Reading lines from someone else's file.
//!
//! **Invariant:** one line at a time is held here, and never more than [`LINE_BYTES_MAX`] of it.

use std::io::{self, BufRead};

/// The longest line that is read.
pub const LINE_BYTES_MAX: usize = 16 * 1024 * 1024;

/// A line that is not blank, and where it stands.
pub struct NumberedLine {
    /// Counted from 1, blank lines too.
    pub number: u64,
    /// What it says, or why it cannot be held.
    pub bytes: Result<Vec<u8>, String>,
}

/// Reads the lines that are not blank.
pub struct LineReader<R> {
    input: R,
    /// Lines read so far.
    pub number: u64,
}

impl<R: BufRead> LineReader<R> {
    /// Begins with the first line.
    pub const fn new(input: R) -> Self {
        Self { input, number: 0 }
    }
}

impl<R: BufRead> Iterator for LineReader<R> {
    type Item = io::Result<NumberedLine>;

    fn next(&mut self) -> Option<Self::Item> {
        let mut line = Vec::new();
        loop {
            let read = match next_line(&mut self.input, &mut line) {
                Ok(LineRead::End) => return None,
                Ok(read) => read,
                Err(error) => return Some(Err(error)),
            };
            self.number += 1;
            let bytes = match read {
                LineRead::TooLong => Err(format!("the line is longer than {LINE_BYTES_MAX} bytes")),
                _ if line.trim_ascii().is_empty() => continue,
                _ => Ok(line),
            };
            return Some(Ok(NumberedLine { number: self.number, bytes }));
        }
    }
}

/// What came of reading a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum LineRead {
    /// It stands in the buffer.
    Whole,
    /// It was longer than can be held, and was thrown away.
    TooLong,
    /// There is none left.
    End,
}

/// Reads one line into `line`; what is beyond the limit is read and thrown away.
fn next_line(input: &mut impl BufRead, line: &mut Vec<u8>) -> io::Result<LineRead> {
    line.clear();
    let (mut any, mut too_long) = (false, false);
    loop {
        let available = input.fill_buf()?;
        if available.is_empty() {
            break;
        }
        any = true;
        let (piece, ended) = match available.iter().position(|byte| *byte == b'\n') {
            Some(at) => (at + 1, true),
            None => (available.len(), false),
        };
        too_long |= line.len() + piece > LINE_BYTES_MAX;
        if too_long {
            line.clear();
        } else {
            line.extend_from_slice(&available[..piece]);
        }
        input.consume(piece);
        if ended {
            break;
        }
    }
    Ok(match (any, too_long) {
        (false, _) => LineRead::End,
        (true, true) => LineRead::TooLong,
        (true, false) => LineRead::Whole,
    })
}
