//! Rust source with everything blanked that is not code, so that plain searching is enough.
//!
//! **Invariant:** the masked text has the same number of bytes and the same line breaks as the source,
//! so that a place in one is a place in the other.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

/// The source with comments, strings and characters replaced by spaces.
pub fn mask(source: &str) -> String {
    let bytes = source.as_bytes();
    let mut masked = bytes.to_vec();
    let mut at = 0;
    while at < bytes.len() {
        let end = literal_end(bytes, at);
        for byte in &mut masked[at..end] {
            if *byte != b'\n' {
                *byte = b' ';
            }
        }
        at = end.max(at + 1);
    }
    String::from_utf8_lossy(&masked).into_owned()
}

/// Where the comment, string or character that starts here ends; `at` itself if none does.
fn literal_end(bytes: &[u8], at: usize) -> usize {
    let rest = &bytes[at..];
    let length = match rest {
        [b'/', b'/', ..] => rest.iter().position(|byte| *byte == b'\n'),
        [b'/', b'*', ..] => Some(block_comment(rest)),
        [b'"', ..] => Some(quoted(rest, b'"')),
        [b'\'', b'\\', ..] => Some(quoted(rest, b'\'')),
        [b'\'', ..] => character(rest),
        [b'r' | b'b' | b'c', ..] if !follows_word(bytes, at) => raw_string(rest),
        _ => Some(0),
    };
    at + length.unwrap_or(rest.len())
}

fn follows_word(bytes: &[u8], at: usize) -> bool {
    at.checked_sub(1).is_some_and(|before| is_word(bytes[before]))
}

/// Whether a byte can be part of a name.
pub const fn is_word(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_' || byte >= 0x80
}

/// Block comments nest.
fn block_comment(rest: &[u8]) -> usize {
    let (mut depth, mut at) = (0usize, 0);
    while at < rest.len() {
        match &rest[at..] {
            [b'/', b'*', ..] => (depth, at) = (depth + 1, at + 2),
            [b'*', b'/', ..] if depth == 1 => return at + 2,
            [b'*', b'/', ..] => (depth, at) = (depth - 1, at + 2),
            _ => at += 1,
        }
    }
    rest.len()
}

fn quoted(rest: &[u8], quote: u8) -> usize {
    let mut at = 1;
    while at < rest.len() {
        match rest[at] {
            b'\\' => at += 2,
            byte if byte == quote => return at + 1,
            _ => at += 1,
        }
    }
    rest.len()
}

/// A character has its second quote one character later; otherwise it is a lifetime.
fn character(rest: &[u8]) -> Option<usize> {
    let width = match rest.get(1) {
        Some(0xf0..) => 4,
        Some(0xe0..) => 3,
        Some(0xc0..) => 2,
        _ => 1,
    };
    let closed = rest.get(1 + width) == Some(&b'\'');
    Some(if closed { width + 2 } else { 0 })
}

/// `r"…"`, `r#"…"#` and the same with `b` or `c` before; a raw name such as `r#type` is code.
fn raw_string(rest: &[u8]) -> Option<usize> {
    let prefix = rest.iter().take_while(|byte| matches!(byte, b'r' | b'b' | b'c')).count();
    if prefix > 2 || rest[prefix - 1] != b'r' {
        return Some(0);
    }
    let hashes = rest[prefix..].iter().take_while(|byte| **byte == b'#').count();
    let body = prefix + hashes;
    if rest.get(body) != Some(&b'"') {
        return Some(0);
    }
    let mut close = vec![b'"'];
    close.resize(1 + hashes, b'#');
    let found = rest[body + 1..].windows(close.len()).position(|window| window == close);
    found.map(|inner| body + 1 + inner + close.len())
}

/// Where the brace that opens at `open` closes, exclusive.
pub fn closing_brace(masked: &str, open: usize) -> usize {
    let mut depth = 0usize;
    for (at, byte) in masked.bytes().enumerate().skip(open) {
        match byte {
            b'{' => depth += 1,
            b'}' if depth <= 1 => return at + 1,
            b'}' => depth -= 1,
            _ => {}
        }
    }
    masked.len()
}

/// Masked code without its tests, and the files it declares as tests.
pub struct Shipped {
    /// The code that ships.
    pub code: String,
    /// Files and folders that hold tests only.
    pub tests: BTreeSet<PathBuf>,
}

/// Takes everything under `#[cfg(test)]` out of a file.
pub fn without_tests(source: &str, path: &Path) -> Shipped {
    const MARK: &str = "#[cfg(test)]";
    let masked = mask(source);
    let mut shipped = Shipped { code: masked.clone(), tests: BTreeSet::new() };
    for (start, _) in masked.match_indices(MARK) {
        let item = start + MARK.len();
        let Some(stop) = masked[item..].find(['{', ';']).map(|offset| item + offset) else {
            continue;
        };
        let end = if masked.as_bytes()[stop] == b'{' {
            closing_brace(&masked, stop)
        } else {
            shipped.tests.extend(declared(&source[item..stop], path));
            stop + 1
        };
        let blank: String =
            masked[start..end].chars().map(|c| if c == '\n' { '\n' } else { ' ' }).collect();
        shipped.code.replace_range(start..end, &blank);
    }
    shipped
}

/// The files a `mod name;` of a test may stand for.
fn declared(item: &str, path: &Path) -> Vec<PathBuf> {
    let folder = path.parent().unwrap_or(path);
    if let Some((_, named)) = item.split_once("#[path = \"") {
        return named.split('"').next().map(|name| folder.join(name)).into_iter().collect();
    }
    let Some(name) = item.split_whitespace().last().filter(|_| item.contains("mod ")) else {
        return Vec::new();
    };
    let stem = path.file_stem().unwrap_or_default();
    let is_root = ["mod", "lib", "main"].iter().any(|root| stem == *root);
    let inside = if is_root { folder.to_owned() } else { folder.join(stem) };
    vec![inside.join(name).with_extension("rs"), inside.join(name)]
}

#[test]
fn only_code_is_left_and_every_place_stays() {
    let cases = [
        ("a // fn b() {\nc", "a c"),
        ("a /* { /* } */ { */ b", "a b"),
        (r#"x("}\"{", '{', '\'', b'}', b"}")"#, "x( , , , b , b )"),
        ("r#\"\"}\"# r#type br##\"{\"#\"## rb", "r#type rb"),
        ("fn f<'a>(x: &'a str) {}", "fn f<'a>(x: &'a str) {}"),
        ("'\u{3042}' \"\u{3042}{\" é", "é"),
    ];
    for (source, expected) in cases {
        let masked = mask(source);
        assert_eq!(masked.len(), source.len(), "{source}");
        assert_eq!(masked.matches('\n').count(), source.matches('\n').count(), "{source}");
        let words: Vec<_> = masked.split_whitespace().collect();
        assert_eq!(words.join(" "), expected, "{source}");
    }
}

#[test]
fn tests_are_taken_out_inline_and_by_name() {
    let source = "fn a() {}\n#[cfg(test)]\nmod tests {\n  fn b() { std::fs::read(); }\n}\nfn c() {}\n\
                  #[cfg(test)]\n#[path = \"x_tests.rs\"]\nmod more;\n#[cfg(test)]\nmod d;\n";
    let shipped = without_tests(source, Path::new("src/e.rs"));
    assert!(shipped.code.contains("fn a") && shipped.code.contains("fn c"));
    assert!(!shipped.code.contains("fn b"));
    for file in ["src/x_tests.rs", "src/e/d.rs", "src/e/d"] {
        assert!(shipped.tests.contains(Path::new(file)), "{file}");
    }
}
