//! The sentences of a text, so that each can be read by itself.

/// Shorter ones say too little alone.
const BYTES_MIN: usize = 20;
/// So many are read at each end of a text.
const AT_EACH_END: usize = 8;

/// The sentences of a text of several that are long enough to mean something alone, from both ends of a
/// long one; none for a single sentence, which is the text itself.
pub(crate) fn sentences(text: &str) -> Vec<&str> {
    let mut all: Vec<&str> = Vec::new();
    let mut start = 0;
    let mut chars = text.char_indices().peekable();
    while let Some((at, c)) = chars.next() {
        let ends = match c {
            '.' | '!' | '?' => chars.peek().is_none_or(|(_, next)| next.is_whitespace()),
            '\n' | '。' | '！' | '？' | '।' | '؟' => true,
            _ => false,
        };
        if ends {
            let end = at + c.len_utf8();
            all.push(&text[start..end]);
            start = end;
        }
    }
    all.push(&text[start..]);
    all.retain_mut(|sentence| {
        *sentence = sentence.trim();
        sentence.len() >= BYTES_MIN
    });
    if all.first().is_some_and(|first| first.len() == text.trim().len()) {
        all.clear();
    }
    if all.len() > 2 * AT_EACH_END {
        all.drain(AT_EACH_END..all.len() - AT_EACH_END);
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_is_cut_where_sentences_end() {
        let text = "how do i make this at home? thank you so much, you are kind. ok.";
        assert_eq!(
            sentences(text),
            ["how do i make this at home?", "thank you so much, you are kind."]
        );
        assert_eq!(sentences("今日はとても疲れました。明日はゆっくり休みたいです。").len(), 2);
        assert_eq!(sentences("version 3.5 of example.com is out and it is good"), [""; 0]);
        assert_eq!(sentences(""), [""; 0]);
    }

    #[test]
    fn a_long_text_is_read_at_both_ends() {
        let text =
            (0..100).map(|at| format!("this is the sentence number {at}. ")).collect::<String>();
        let read = sentences(&text);
        assert_eq!(read.len(), 16);
        assert!(read[0].ends_with("number 0.") && read[15].ends_with("number 99."));
    }
}
