//! Hostile text, made fit to be shown on a page.
//!
//! **Invariant:** nothing is hidden: code points that cannot be seen, or that steer the direction of
//! writing, are spelled out as marks of their own.

/// A piece of a text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Piece {
    /// As it was written; to be escaped.
    Plain(String),
    /// A code point that would not have been seen, and how often it stands there.
    Mark(String),
}

/// A text in pieces.
pub(crate) fn pieces(text: &str) -> Vec<Piece> {
    let mut pieces = Vec::new();
    let mut rest = text.chars().peekable();
    while let Some(this) = rest.next() {
        if is_hidden(this) {
            let mut times = 1_usize;
            while rest.next_if_eq(&this).is_some() {
                times += 1;
            }
            pieces.push(Piece::Mark(mark(this, times)));
        } else if let Some(Piece::Plain(plain)) = pieces.last_mut() {
            plain.push(this);
        } else {
            pieces.push(Piece::Plain(this.to_string()));
        }
    }
    pieces
}

fn mark(this: char, times: usize) -> String {
    let code = u32::from(this);
    match times {
        1 => format!("U+{code:04X}"),
        _ => format!("U+{code:04X}×{times}"),
    }
}

/// Whether a code point is invisible, steers the direction of writing or controls a terminal.
pub(crate) const fn is_hidden(c: char) -> bool {
    matches!(c,
        '\0'..='\u{8}' | '\u{b}'..='\u{1f}' | '\u{7f}'..='\u{9f}' | '\u{ad}' | '\u{34f}' | '\u{61c}'
        | '\u{115f}' | '\u{1160}' | '\u{17b4}' | '\u{17b5}' | '\u{180b}'..='\u{180f}'
        | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}'
        | '\u{2800}' | '\u{3164}' | '\u{fe00}'..='\u{fe0f}' | '\u{feff}' | '\u{ffa0}'
        | '\u{fff0}'..='\u{fffb}' | '\u{1bca0}'..='\u{1bca3}' | '\u{1d173}'..='\u{1d17a}'
        | '\u{e0000}'..='\u{e0fff}')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hidden_characters_are_spelled_out_and_runs_are_counted() {
        let found = pieces("a\u{200b}\u{200b}b\u{202e}日\n");
        let plain = |text: &str| Piece::Plain(text.to_owned());
        let mark = |text: &str| Piece::Mark(text.to_owned());
        assert_eq!(
            found,
            [plain("a"), mark("U+200B×2"), plain("b"), mark("U+202E"), plain("日\n")]
        );
        assert_eq!(pieces("\u{e0041}"), [mark("U+E0041")]);
        assert!(pieces("").is_empty());
    }
}
