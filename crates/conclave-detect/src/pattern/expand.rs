//! Braces in word lists: `mak{e,ing} {a,the} cake{,s}`.

/// More words than this from one entry is a mistake.
const WORDS_MAX: usize = 2048;

/// Writes out every alternative.
///
/// # Errors
/// When braces do not match or there are too many alternatives.
pub(crate) fn expand(entry: &str) -> Result<Vec<String>, String> {
    let mut words = vec![String::new()];
    let mut rest = entry;
    while let Some(open) = rest.find('{') {
        let (before, after) = rest.split_at(open);
        let close = matching(after).ok_or_else(|| format!("unmatched brace in `{entry}`"))?;
        let mut options = Vec::new();
        for option in alternatives(&after[1..close]) {
            options.extend(expand(option)?);
        }
        words = product(&words, before, &options);
        if words.len() > WORDS_MAX {
            return Err(format!("`{entry}` stands for more than {WORDS_MAX} words"));
        }
        rest = &after[close + 1..];
    }
    if rest.contains('}') {
        return Err(format!("unmatched brace in `{entry}`"));
    }
    words.iter_mut().for_each(|word| word.push_str(rest));
    Ok(words)
}

fn product(words: &[String], before: &str, options: &[String]) -> Vec<String> {
    words
        .iter()
        .flat_map(|word| options.iter().map(move |option| format!("{word}{before}{option}")))
        .collect()
}

/// Where the brace at the start of `text` is closed.
fn matching(text: &str) -> Option<usize> {
    let mut depth = 0usize;
    for (at, c) in text.char_indices() {
        match c {
            '{' => depth += 1,
            '}' if depth == 1 => return Some(at),
            '}' => depth -= 1,
            _ => {}
        }
    }
    None
}

/// The parts between the commas that stand outside inner braces.
fn alternatives(body: &str) -> Vec<&str> {
    let mut parts = Vec::new();
    let (mut depth, mut start) = (0usize, 0);
    for (at, c) in body.char_indices() {
        match c {
            '{' => depth += 1,
            '}' => depth = depth.saturating_sub(1),
            ',' if depth == 0 => {
                parts.push(&body[start..at]);
                start = at + 1;
            }
            _ => {}
        }
    }
    parts.push(&body[start..]);
    parts
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn braces_write_out_every_alternative() {
        assert_eq!(expand("plain").unwrap(), ["plain"]);
        assert_eq!(expand("cat{,s}").unwrap(), ["cat", "cats"]);
        assert_eq!(expand("{a,b{c,d}}e").unwrap(), ["ae", "bce", "bde"]);
        assert_eq!(expand("{a,b} {c,d}").unwrap().len(), 4);
    }

    #[test]
    fn broken_braces_are_errors() {
        for entry in ["a{b", "a}b", "{a,{b}"] {
            assert!(expand(entry).is_err(), "{entry}");
        }
        assert!(expand(&"{a,b,c,d}".repeat(7)).is_err());
    }
}
