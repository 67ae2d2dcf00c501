//! Reading lines from someone else's file.
//!
//! **Invariant:** one line at a time is held, and never more than [`LINE_BYTES_MAX`] of it.

use std::io::{self, BufRead};

/// The longest line that is read.
pub const LINE_BYTES_MAX: usize = 16 * 1024 * 1024;

/// What came of reading a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LineRead {
    /// It stands in the buffer.
    Whole,
    /// It was longer than can be held, and was thrown away.
    TooLong,
    /// There is none left.
    End,
}

/// Reads one line into `line`; what is beyond the limit is read and thrown away.
///
/// # Errors
/// When the input fails.
pub fn next_line(input: &mut impl BufRead, line: &mut Vec<u8>) -> io::Result<LineRead> {
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
