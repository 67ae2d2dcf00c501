//! Where a reply that is still being written may be cut: after whole sentences.
//!
//! **Invariant:** windows grow with the reply, so that judging each together with all text before it
//! costs no more than a fixed multiple of judging the whole.

use conclave_core::sentence_end;

/// The shortest window, in bytes: a word or two says too little to be judged by itself.
const WINDOW_BYTES_MIN: usize = 24;
/// A window has at least this share of the text before it.
const GROWTH: usize = 8;

/// Where a window ends, and where the one before it began.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Cut {
    pub tail: usize,
    pub end: usize,
}

/// A text that grows, and how far it has been looked at.
#[derive(Debug, Default)]
pub(crate) struct Cutter {
    text: String,
    /// Where the last window ended.
    closed: usize,
    /// Where the last window began.
    before: usize,
    /// How far was searched for the end of a sentence.
    searched: usize,
}

impl Cutter {
    /// Everything that was written so far.
    pub(crate) fn text(&self) -> &str {
        &self.text
    }

    /// Takes what was written next.
    pub(crate) fn push(&mut self, piece: &str) {
        self.text.push_str(piece);
    }

    /// Where the window begins that was closed last: what follows is also judged from there on, because
    /// in a long kind text one bad sentence is easily missed.
    pub(crate) const fn tail(&self) -> usize {
        self.before
    }

    /// The next window, if whole sentences enough stand there; each is given once.
    pub(crate) fn next_window(&mut self) -> Option<Cut> {
        let enough = self.closed + WINDOW_BYTES_MIN.max(self.closed / GROWTH);
        while let Some(end) = sentence_end(&self.text, self.searched) {
            self.searched = end;
            if end >= enough {
                let tail = self.before;
                self.before = std::mem::replace(&mut self.closed, end);
                return Some(Cut { tail, end });
            }
        }
        // The last sign is looked at again, because what comes next decides.
        let last = self.text.char_indices().next_back().map_or(0, |(at, _)| at);
        self.searched = self.searched.max(last);
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The windows of a text that comes in pieces of so many characters.
    fn windows(text: &str, size: usize) -> Vec<String> {
        let mut cutter = Cutter::default();
        let mut windows = Vec::new();
        let mut start = 0;
        let signs: Vec<char> = text.chars().collect();
        for piece in signs.chunks(size) {
            cutter.push(&piece.iter().collect::<String>());
            while let Some(cut) = cutter.next_window() {
                assert!(cut.tail <= start && cutter.tail() == start, "one window back");
                windows.push(cutter.text()[start..cut.end].to_owned());
                start = cut.end;
            }
        }
        windows
    }

    const TEXT: &str = "The first one is here. It costs 3.50 or so! \"Is that a lot?\" she asked me. \
        これは十分に長い文なので切れるはずです。次の文はまだ終わ";

    #[test]
    fn windows_end_after_sentences_wherever_the_pieces_are_cut() {
        let expected = [
            "The first one is here. It costs 3.50 or so!",
            " \"Is that a lot?\" she asked me.",
            " これは十分に長い文なので切れるはずです。",
        ];
        for size in 1..TEXT.chars().count() {
            assert_eq!(windows(TEXT, size), expected, "pieces of {size}");
        }
    }

    #[test]
    fn a_long_reply_has_few_windows() {
        let text = "A sentence of some length stands here. ".repeat(4_000);
        let count = windows(&text, 64).len();
        assert!((20..120).contains(&count), "{count} windows");
    }

    proptest::proptest! {
        #[test]
        fn any_text_is_cut_at_characters_and_loses_nothing(
            text in "[a-z.!? \n。」\"é]{0,200}", size in 1_usize..20,
        ) {
            let joined: String = windows(&text, size).concat();
            proptest::prop_assert!(text.starts_with(&joined));
        }
    }
}
