//! Hostile text, made fit to be shown.
//!
//! **Invariant:** what people and models wrote reaches a template only as a [`Text`]. Its template
//! writes escaped text nodes and nothing else: no markup, no links, no images, whatever the text
//! says.
//!
//! **Invariant:** nothing is hidden. Code points that are invisible, steer the direction of writing
//! or control a terminal are spelled out in marks, and marks are elements of their own, so that
//! text which merely spells a mark does not look like one.
//!
//! **Invariant:** a text costs at most its limit, and all texts of a page together at most
//! [`Ink::PAGE`], counted as they are shown: no transcript makes a page without end.

use askama::Template;
use askama::filters::HtmlSafe;

/// The longest text that is shown whole.
const TEXT_MAX: usize = 20_000;
/// The longest name or label that is shown whole.
const SHORT_MAX: usize = 200;
/// From here a text gets a frame of its own to scroll in.
const LONG_FROM_CHARS: usize = 3_000;
const LONG_FROM_LINES: usize = 40;
/// Accents on one letter, beyond which they are spelled out: stacked ones paint over their
/// neighbours.
const ACCENTS_MAX: usize = 4;

/// A piece of a text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Piece {
    /// As it was written.
    Plain(String),
    /// Something that would not have been seen, spelled out.
    Mark(String),
}

/// Hostile text, made fit to be shown.
#[derive(Clone, Debug, Default, PartialEq, Eq, Template)]
#[template(path = "parts/text.html")]
pub(crate) struct Text {
    pieces: Vec<Piece>,
    left_out: usize,
    is_long: bool,
}

impl HtmlSafe for Text {}

impl Text {
    /// A short text outside any page's budget, such as a model's name in a list.
    pub(crate) fn short(raw: &str) -> Self {
        Ink { left: SHORT_MAX }.text(raw)
    }

    /// Whether there is nothing to show.
    pub(crate) const fn is_empty(&self) -> bool {
        self.pieces.is_empty() && self.left_out == 0
    }

    /// Whether it needs a frame of its own to scroll in.
    pub(crate) const fn is_long(&self) -> bool {
        self.is_long
    }
}

/// How much text a page may still show.
pub(crate) struct Ink {
    left: usize,
}

impl Ink {
    /// What one page may show.
    pub(crate) const PAGE: usize = 400_000;

    /// A full pen.
    pub(crate) const fn new() -> Self {
        Self { left: Self::PAGE }
    }

    /// Writes a text.
    pub(crate) fn text(&mut self, raw: &str) -> Text {
        self.up_to(raw, TEXT_MAX)
    }

    /// Writes a name or label.
    pub(crate) fn short(&mut self, raw: &str) -> Text {
        self.up_to(raw, SHORT_MAX)
    }

    fn up_to(&mut self, raw: &str, limit: usize) -> Text {
        let mut writing = Writing { limit: limit.min(self.left), ..Writing::default() };
        let text = writing.write(raw);
        self.left = self.left.saturating_sub(writing.cost);
        text
    }
}

/// A text being written.
#[derive(Default)]
struct Writing {
    limit: usize,
    cost: usize,
    pieces: Vec<Piece>,
    lines: usize,
    accents: usize,
}

impl Writing {
    fn write(&mut self, raw: &str) -> Text {
        let mut rest = raw.chars();
        let mut before = None;
        while self.cost < self.limit {
            let Some(this) = rest.next() else { break };
            let after = rest.clone().next();
            self.accents = if is_accent(this) { self.accents + 1 } else { 0 };
            if this == '\r' && after == Some('\n') {
                continue;
            }
            if shows(before, this, after) && self.accents <= ACCENTS_MAX {
                self.plain(this);
            } else {
                self.mark(this, &mut rest);
            }
            before = Some(this);
        }
        let left_out = rest.count();
        let is_long = self.cost > LONG_FROM_CHARS || self.lines > LONG_FROM_LINES;
        Text { pieces: std::mem::take(&mut self.pieces), left_out, is_long }
    }

    fn plain(&mut self, this: char) {
        self.cost += 1;
        self.lines += usize::from(this == '\n');
        match self.pieces.last_mut() {
            Some(Piece::Plain(text)) => text.push(this),
            _ => self.pieces.push(Piece::Plain(this.into())),
        }
    }

    /// Spells a code point out; a run of the same one is counted, not repeated.
    fn mark(&mut self, this: char, rest: &mut std::str::Chars<'_>) {
        let mut times = 1_usize;
        while rest.clone().next() == Some(this) {
            rest.next();
            times += 1;
        }
        let code = u32::from(this);
        let mark = match times {
            1 => format!("⟦U+{code:04X}⟧"),
            _ => format!("⟦U+{code:04X} ×{times}⟧"),
        };
        self.cost += mark.chars().count();
        self.pieces.push(Piece::Mark(mark));
    }
}

/// Whether a code point can be seen where it stands.
fn shows(before: Option<char>, this: char, after: Option<char>) -> bool {
    if !is_hidden(this) {
        return true;
    }
    match this {
        // Emoji choose their form and join with these; there they are seen by what they do.
        '\u{fe0e}' | '\u{fe0f}' => before.is_some_and(is_pictorial),
        '\u{200d}' => {
            before.is_some_and(|c| is_pictorial(c) || c == '\u{fe0f}')
                && after.is_some_and(is_pictorial)
        }
        // Japanese names choose the form of a character with these.
        '\u{e0100}'..='\u{e01ef}' => before.is_some_and(is_ideograph),
        _ => false,
    }
}

/// Invisible, steering the direction of writing, or controlling a terminal.
const fn is_hidden(c: char) -> bool {
    matches!(c,
        '\0'..='\u{8}' | '\u{b}'..='\u{1f}' | '\u{7f}'..='\u{9f}' | '\u{ad}' | '\u{34f}'
        | '\u{61c}' | '\u{115f}' | '\u{1160}' | '\u{17b4}' | '\u{17b5}' | '\u{180b}'..='\u{180f}'
        | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{2800}'
        | '\u{3164}' | '\u{fe00}'..='\u{fe0f}' | '\u{feff}' | '\u{ffa0}' | '\u{fff0}'..='\u{fffb}'
        | '\u{1bca0}'..='\u{1bca3}' | '\u{1d159}' | '\u{1d173}'..='\u{1d17a}'
        | '\u{e0000}'..='\u{e0fff}')
}

const fn is_pictorial(c: char) -> bool {
    matches!(c,
        '#' | '*' | '0'..='9' | '\u{a9}' | '\u{ae}' | '\u{203c}' | '\u{2049}' | '\u{2122}'
        | '\u{2139}' | '\u{2190}'..='\u{2bff}' | '\u{3030}' | '\u{303d}' | '\u{3297}' | '\u{3299}'
        | '\u{1f000}'..='\u{1faff}')
}

const fn is_ideograph(c: char) -> bool {
    matches!(c, '\u{3400}'..='\u{9fff}' | '\u{f900}'..='\u{faff}' | '\u{20000}'..='\u{3ffff}')
}

const fn is_accent(c: char) -> bool {
    matches!(c,
        '\u{300}'..='\u{36f}' | '\u{483}'..='\u{489}' | '\u{1ab0}'..='\u{1aff}'
        | '\u{1dc0}'..='\u{1dff}' | '\u{20d0}'..='\u{20ff}' | '\u{fe20}'..='\u{fe2f}')
}

#[cfg(test)]
#[path = "text_tests.rs"]
mod tests;
