//! Where a sentence ends.

/// Where the first sentence after `from` ends. A full stop ends one only before a blank, so that it must
/// be seen what comes next; the signs of Chinese and Japanese need none. `None` where no end is seen yet.
#[must_use]
pub fn sentence_end(text: &str, from: usize) -> Option<usize> {
    let rest = text.get(from..)?;
    let mut signs = rest.char_indices().peekable();
    while let Some((at, sign)) = signs.next() {
        let next = signs.peek().map(|(_, next)| *next);
        let ends = match sign {
            '。' | '！' | '？' | '\n' => next.is_some_and(|next| !is_closing(next)),
            '.' | '!' | '?' | '…' => next.is_some_and(char::is_whitespace),
            closing if is_closing(closing) => {
                next.is_some_and(char::is_whitespace) && ended_before(&text[..from + at])
            }
            _ => false,
        };
        if ends {
            return Some(from + at + sign.len_utf8());
        }
    }
    None
}

const fn is_closing(sign: char) -> bool {
    matches!(sign, '"' | '\'' | ')' | ']' | '”' | '’' | '」' | '』' | '）')
}

fn ended_before(text: &str) -> bool {
    text.trim_end_matches(is_closing).ends_with(['.', '!', '?', '…'])
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sentences(text: &str) -> Vec<&str> {
        let mut from = 0;
        let mut sentences = Vec::new();
        while let Some(end) = sentence_end(text, from) {
            sentences.push(text[from..end].trim());
            from = end;
        }
        sentences.push(text[from..].trim());
        sentences
    }

    #[test]
    fn a_sentence_ends_where_a_reader_would_say_so() {
        for (text, expected) in [
            ("It costs 3.50 or so! Really.", vec!["It costs 3.50 or so!", "Really."]),
            ("\"Is that a lot?\" she asked. No.", vec!["\"Is that a lot?\"", "she asked.", "No."]),
            ("「行こう。」と言った。次の", vec!["「行こう。」と言った。", "次の"]),
            ("one line\nanother", vec!["one line", "another"]),
            ("", vec![""]),
        ] {
            assert_eq!(sentences(text), expected);
        }
    }

    proptest::proptest! {
        #[test]
        fn every_end_is_further_on_and_between_characters(text in "[a-z.!? \n。」\"é]{0,99}") {
            let mut from = 0;
            while let Some(end) = sentence_end(&text, from) {
                proptest::prop_assert!(end > from && text.is_char_boundary(end));
                from = end;
            }
        }
    }
}
