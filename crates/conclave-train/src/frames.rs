//! Rows once more inside a frame: a story, a part, a game around the same words, with the same label.
//!
//! **Invariant:** which rows are framed, and how, depends on their names alone.

use crate::rows::Row;

/// One row of so many is framed.
const ONE_OF: u32 = 6;
/// Shorter and longer rows stay as they are.
const LENGTHS: std::ops::Range<usize> = 12..400;

/// A language and a frame in it; the row stands where the braces are.
type Frame = (&'static str, String);

/// Copies of some requests inside frames.
#[must_use]
pub fn framed(rows: &[Row]) -> Vec<Row> {
    let frames: Vec<Frame> = include_str!("../../../train/frames.txt")
        .lines()
        .filter_map(|line| line.split_once('\t'))
        .map(|(language, frame)| (language, frame.replace("\\n", "\n")))
        .collect();
    let suits = |row: &&Row| {
        matches!(row.task.as_str(), "prompt" | "injection")
            && row.response.is_none()
            && LENGTHS.contains(&row.said().len())
    };
    rows.iter().filter(suits).filter_map(|row| frame(row, &frames)).collect()
}

fn frame(row: &Row, frames: &[Frame]) -> Option<Row> {
    let number = number(&row.id);
    let fitting: Vec<_> = frames.iter().filter(|(language, _)| *language == row.language).collect();
    let count = u32::try_from(fitting.len()).ok().filter(|count| *count > 0)?;
    if !number.is_multiple_of(ONE_OF) {
        return None;
    }
    let (_, frame) = fitting.get(usize::try_from(number / ONE_OF % count).ok()?)?;
    Some(row.with_text(frame.replace("{}", &row.said())))
}

/// A number that stands for a name (FNV-1a).
fn number(name: &str) -> u32 {
    name.bytes().fold(0x811c_9dc5, |hash, byte| (hash ^ u32::from(byte)).wrapping_mul(0x0100_0193))
}
