//! Owns what a token looks like, also where a model wrote it a little differently.
//!
//! **Invariant:** only a label of [`Kind`] or `LITERAL` makes a token. A reading costs a fixed number
//! of signs for each bracket, and no token holds a line end.

use crate::kind::Kind;
use crate::text::fold_sign;

/// The label of a piece of text that only looked like a token.
pub(crate) const LITERAL: &str = "LITERAL";
/// The most signs between the brackets.
const INNER_SIGNS_MAX: usize = 64;
/// The most digits of a number.
const DIGITS_MAX: usize = 9;
/// The most digits of a number in a token that is not of the set at hand: a longer one may be a
/// telephone number that somebody put into brackets.
const STRANGE_DIGITS_MAX: usize = 4;

/// One token in a text, in bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct TokenSpan {
    pub(crate) start: usize,
    pub(crate) end: usize,
    /// The token as it was given out: `[EMAIL_1]`.
    pub(crate) token: String,
}

impl TokenSpan {
    /// Whether the number is so short that it hides nothing.
    pub(crate) fn is_short(&self) -> bool {
        let digits = self.token.bytes().filter(u8::is_ascii_digit).count();
        digits <= STRANGE_DIGITS_MAX
    }
}

/// The tokens of a text in order, also `[email_1]`, `[EMAIL 1]`, `【EMAIL_1】`, `\[EMAIL\_1\]` and
/// `[**EMAIL_1**]`.
pub(crate) fn token_spans(text: &str) -> impl Iterator<Item = TokenSpan> {
    let mut from = 0;
    std::iter::from_fn(move || {
        loop {
            let open = from + text[from..].find(['[', '【', '［', '〔'])?;
            if let Some(span) = token_at(text, open) {
                from = span.end;
                return Some(span);
            }
            from = open + text[open..].chars().next().map_or(1, char::len_utf8);
        }
    })
}

fn token_at(text: &str, open: usize) -> Option<TokenSpan> {
    let mut inner = Inner::default();
    let mut signs = text[open..].char_indices();
    signs.next()?;
    for (at, sign) in signs.take(INNER_SIGNS_MAX) {
        if matches!(sign, ']' | '】' | '］' | '〕') {
            let token = inner.token()?;
            // Markdown escapes both brackets or none.
            let is_escaped = text[..open].ends_with('\\') && text[..open + at].ends_with('\\');
            let start = open - usize::from(is_escaped);
            return Some(TokenSpan { start, end: open + at + sign.len_utf8(), token });
        }
        inner.push(fold_sign(sign))?;
    }
    None
}

/// What stands between the brackets, in capitals, with one line between its parts.
#[derive(Default)]
struct Inner {
    label: String,
    digits: String,
    is_parted: bool,
}

impl Inner {
    fn push(&mut self, sign: char) -> Option<()> {
        match sign {
            // Emphasis, code, escapes, and blanks without width.
            '*' | '`' | '~' | '\\' | '\u{200b}'..='\u{200d}' | '\u{2060}' | '\u{feff}' => {}
            '_' | ' ' | '-' => self.is_parted = true,
            'a'..='z' | 'A'..='Z' if self.digits.is_empty() => {
                if self.is_parted && !self.label.is_empty() {
                    self.label.push('_');
                }
                self.label.push(sign.to_ascii_uppercase());
                self.is_parted = false;
            }
            '0'..='9' if self.digits.is_empty() || !self.is_parted => {
                self.digits.push(sign);
                self.is_parted = false;
            }
            _ => return None,
        }
        Some(())
    }

    fn token(&self) -> Option<String> {
        let is_number =
            (1..=DIGITS_MAX).contains(&self.digits.len()) && !self.digits.starts_with('0');
        let is_label = self.label == LITERAL || Kind::has_label(&self.label);
        (is_number && is_label).then(|| format!("[{}_{}]", self.label, self.digits))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_is_read_however_a_model_wrote_it() {
        for text in [
            "[EMAIL_1]",
            "[email_1]",
            "[Email_1]",
            "[EMAIL 1]",
            "[EMAIL-1]",
            "[EMAIL1]",
            "[ EMAIL_1 ]",
            "【EMAIL_1】",
            "［EMAIL_1］",
            "［ＥＭＡＩＬ＿１］",
            "[**EMAIL_1**]",
            "[EMAIL_**1**]",
            "[`EMAIL_1`]",
            "[EMAIL\\_1]",
            "\\[EMAIL\\_1\\]",
            "[EMAIL\u{200b}_1]",
        ] {
            let spans: Vec<TokenSpan> = token_spans(text).collect();
            let whole = TokenSpan { start: 0, end: text.len(), token: "[EMAIL_1]".into() };
            assert_eq!(spans, [whole], "{text}");
        }
        assert_eq!(token_spans("[person name 12]").next().unwrap().token, "[PERSON_NAME_12]");
    }

    #[test]
    fn what_is_no_token_is_left_alone() {
        for text in [
            "[EMAIL]",
            "[1]",
            "[]",
            "[EMAIL_]",
            "[EMAIL_01]",
            "[FOO_1]",
            "[EMAIL_1",
            "EMAIL_1",
            "(EMAIL_1)",
            "[EMAIL_1x]",
            "[EMAIL\n_1]",
            "[EMAIL_1.5]",
            "[see EMAIL_1]",
            "[EMAIL_1234567890]",
            "[an e-mail address 1]",
            "[note 3]",
        ] {
            assert_eq!(token_spans(text).count(), 0, "{text}");
        }
    }

    #[test]
    fn many_brackets_take_linear_time() {
        let text = "[EMAIL_".repeat(100_000);
        assert_eq!(token_spans(&text).count(), 0);
    }
}
