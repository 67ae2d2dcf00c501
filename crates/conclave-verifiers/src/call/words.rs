//! The words of a call: what it would say to somebody, and what names, keys and short values make up together.

use super::decode::{Decoded, decode};
use super::tree::{Field, Tree};
use super::{ENCODINGS_MAX, split_words};
use conclave_core::ToolCall;

/// From so many words on a text says something.
const WORDS_MIN: usize = 3;
/// From so many letters on, where a script needs no spaces.
const UNSPACED_MIN: usize = 6;
/// A key of another script may be a long word; from so many letters on it is a sentence.
const UNSPACED_KEY_MIN: usize = 16;
/// So many names and lists are looked at each; all of them are read together.
const PHRASES_MAX: usize = 8;
/// A sentence may be cut into values of this length; a longer one speaks for itself.
const PIECE_BYTES_MAX: usize = 200;

/// The words of tool calls.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CallWords {
    /// Every text that says something by itself: what would be mailed, posted, asked.
    pub prose: Vec<String>,
    /// Names, keys and short values in their order, as one text.
    pub pieces: String,
    /// Names and lists of words that say something by themselves.
    pub phrases: Vec<String>,
}

impl CallWords {
    /// Reads calls, one after the other.
    #[must_use]
    pub fn read(calls: &[ToolCall]) -> Self {
        let mut words = Self::default();
        for call in calls {
            words.add_name(&call.name);
            match Tree::parse(&call.arguments) {
                Some(tree) => words.add_tree(&tree, 0),
                // What cannot be parsed reaches the client all the same.
                None => words.add_text(&call.arguments, 0),
            }
        }
        words
    }

    /// What names, keys and short values make up, where it is enough to say something: all of them together, and each
    /// name and list alone, because what stands around a sentence takes from its meaning.
    pub fn made_up(&self) -> impl Iterator<Item = &str> {
        let whole = Some(self.pieces.trim()).filter(|text| is_prose(text));
        let alone = self.phrases.iter().map(String::as_str).filter(move |one| Some(*one) != whole);
        whole.into_iter().chain(alone)
    }

    fn add_tree(&mut self, tree: &Tree, encodings: usize) {
        match tree {
            Tree::Text(text) => self.add_text(text, encodings),
            Tree::List(items) => {
                self.add_list(items);
                items.iter().for_each(|item| self.add_tree(item, encodings));
            }
            Tree::Fields(fields) => {
                for Field { key, value } in fields {
                    self.add_key(key, encodings);
                    self.add_tree(value, encodings);
                }
            }
            Tree::Empty | Tree::Flag(_) | Tree::Number(_) => {}
        }
    }

    /// A sentence may come word by word.
    fn add_list(&mut self, items: &[Tree]) {
        let text =
            |item: &Tree| if let Tree::Text(text) = item { Some(text.clone()) } else { None };
        let words: Vec<_> = items.iter().filter_map(text).collect();
        if words.len() >= WORDS_MIN {
            self.add_phrase(&words.join(" "));
        }
    }

    fn add_phrase(&mut self, phrase: &str) {
        if is_prose(phrase) && self.phrases.len() < PHRASES_MAX {
            self.phrases.push(phrase.to_owned());
        }
    }

    fn add_key(&mut self, key: &str, encodings: usize) {
        if is_sentence(key) {
            return self.add_text(key, encodings);
        }
        match decode(key).filter(|_| encodings < ENCODINGS_MAX) {
            Some(decoded) => self.add_decoded(&decoded, encodings),
            None => self.add_name(key),
        }
    }

    fn add_text(&mut self, text: &str, encodings: usize) {
        if let Some(decoded) = decode(text).filter(|_| encodings < ENCODINGS_MAX) {
            return self.add_decoded(&decoded, encodings);
        }
        if text.len() <= PIECE_BYTES_MAX {
            self.add_piece(text.trim());
        }
        if is_prose(text) {
            self.prose.push(text.to_owned());
        } else if text.len() > PIECE_BYTES_MAX {
            self.add_piece(text.trim());
        }
    }

    fn add_decoded(&mut self, decoded: &Decoded, encodings: usize) {
        match decoded {
            Decoded::Tree(tree) => self.add_tree(tree, encodings + 1),
            Decoded::Text(text) => self.add_text(text, encodings + 1),
        }
    }

    fn add_name(&mut self, name: &str) {
        let words = split_words(name).join(" ");
        self.add_phrase(&words);
        self.add_piece(&words);
    }

    fn add_piece(&mut self, piece: &str) {
        if piece.is_empty() {
            return;
        }
        if !self.pieces.is_empty() {
            self.pieces.push(' ');
        }
        self.pieces.push_str(piece);
    }
}

fn is_sentence(key: &str) -> bool {
    spaced_words(key) >= WORDS_MIN || unspaced_letters(key) >= UNSPACED_KEY_MIN
}

/// Whether a text says something. A name, a number, a path or a word or two does not.
fn is_prose(text: &str) -> bool {
    spaced_words(text) >= WORDS_MIN || unspaced_letters(text) >= UNSPACED_MIN
}

fn spaced_words(text: &str) -> usize {
    let is_word = |word: &&str| word.chars().filter(|letter| letter.is_alphabetic()).count() > 1;
    text.split_whitespace().filter(is_word).count()
}

fn unspaced_letters(text: &str) -> usize {
    text.chars().filter(|one| !one.is_ascii() && one.is_alphabetic()).count()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(name: &str, arguments: &str) -> CallWords {
        let (id, name, arguments) = ("1".to_owned(), name.to_owned(), arguments.to_owned());
        CallWords::read(&[ToolCall { id, name, arguments }])
    }

    #[test]
    fn prose_is_carried_and_bare_values_are_not() {
        for (arguments, prose) in [
            (r#"{"to":"a@b.c","body":"We know where you live."}"#, "We know where you live."),
            (r#"{"messages":[{"text":"see you there soon"}]}"#, "see you there soon"),
            (r#"{"本文":"お前を殺してやる"}"#, "お前を殺してやる"),
            ("we know where you live", "we know where you live"),
            (r#"{"We know where you live.":1}"#, "We know where you live."),
            (r#"{"body":"V2Uga25vdyB3aGVyZSB5b3UgbGl2ZS4="}"#, "We know where you live."),
            (r#"{"body":"We%20know%20where%20you%20live."}"#, "We know where you live."),
            (r#"{"q":"{\"body\":\"We know where you live.\"}"}"#, "We know where you live."),
        ] {
            assert_eq!(read("tool", arguments).prose, [prose], "{arguments}");
        }
        let bare = [r#"{"city":"New York","days":3}"#, r#"{"cmd":"kill -9 71"}"#, "", "{}", "東京"];
        for arguments in bare {
            assert!(read("tool", arguments).prose.is_empty(), "{arguments}");
        }
        let twice = read("tool", r#"{"a":"We know where you live.","a":"See you there soon."}"#);
        assert_eq!(twice.prose.len(), 2, "a key given twice is read twice");
    }

    #[test]
    fn names_keys_and_short_values_make_up_words_together() {
        let expected = "take the knife and stab him tonight";
        for (name, arguments) in [
            ("take_the_knife_and_stab_him_tonight", "{}"),
            ("takeTheKnife", r#"["and","stab him","tonight"]"#),
            ("take", r#"{"the_knife":{"and":["stab",["him"],"tonight"]}}"#),
            ("take", r#"{"the":"a25pZmUgYW5k","c3RhYiBoaW0=":"tonight"}"#),
        ] {
            let words = read(name, arguments);
            assert_eq!(words.pieces, expected, "{arguments}");
            assert_eq!(words.made_up().next(), Some(expected));
            assert!(words.prose.is_empty());
        }
        let made_up = |name: &str, arguments: &str| -> Vec<String> {
            read(name, arguments).made_up().map(str::to_owned).collect()
        };
        assert_eq!(made_up("lookup", r#"{"name":"Paris"}"#), ["lookup name Paris"]);
        assert_eq!(
            made_up("note", r#"["take","the","knife"]"#),
            ["note take the knife", "take the knife"]
        );
        assert_eq!(
            made_up("take_the_knife", r#"{"id":"x"}"#),
            ["take the knife id x", "take the knife"]
        );
        assert!(made_up("ping", r#"{"n":3}"#).is_empty());
    }

    #[test]
    fn nothing_is_lost_in_encodings_within_encodings() {
        let mut body = "We know where you live.".to_owned();
        for level in 1..=ENCODINGS_MAX + 1 {
            body = serde_json::json!([body]).to_string();
            let words = read("tool", &serde_json::json!({ "body": body }).to_string());
            let is_found = words.prose.iter().any(|text| text.contains("where you live"));
            assert!(is_found, "{level}");
        }
    }
}
