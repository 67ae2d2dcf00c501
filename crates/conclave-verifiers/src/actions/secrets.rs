//! Whether a text holds what must not leave: secrets, and where somebody lives.
//!
//! **Invariant:** the name of a secret is none; "Forgot your password?" may be sent.

use super::words::Secrets;

/// Whether a secret stands in the text, which is in lower case.
#[must_use]
pub fn hold(secrets: &Secrets, lower: &str) -> bool {
    secrets.marks.iter().any(|mark| lower.contains(mark.as_str()))
        || secrets.named.iter().any(|name| behind(lower, name).any(value))
        || secrets.numbered.iter().any(|name| behind(lower, name).any(digits))
}

/// Whether a file that holds secrets is named in the text, which is in lower case.
#[must_use]
pub fn name_file(secrets: &Secrets, lower: &str) -> bool {
    secrets.paths.iter().any(|path| behind(lower, path).any(|rest| !is_public(rest)))
}

/// Whether the text, which is in lower case, says where somebody can be found.
#[must_use]
pub fn tell_where(secrets: &Secrets, lower: &str) -> bool {
    let digit = lower.contains(|c: char| c.is_numeric());
    digit && secrets.personal.iter().any(|sign| lower.contains(sign.as_str()))
}

/// What stands behind each place where a name begins and ends as a word of its own.
fn behind<'t>(lower: &'t str, name: &'t str) -> impl Iterator<Item = &'t str> {
    let letter = |c: char| c.is_ascii_alphanumeric();
    // Longer names are told apart even inside a word: "openaiapikey".
    let short = name.len() <= 5 || name.starts_with('.');
    lower.match_indices(name).filter_map(move |(at, found)| {
        let rest = &lower[at + found.len()..];
        let inside = lower[..at].ends_with(letter) || name.len() <= 5 && rest.starts_with(letter);
        (!short || !inside).then_some(rest)
    })
}

/// The public half of a pair of keys is no secret.
fn is_public(rest: &str) -> bool {
    let name_end = rest.find(|c: char| c.is_whitespace() || "\"',;".contains(c));
    rest[..name_end.unwrap_or(rest.len())].ends_with(".pub")
}

/// Whether a value follows: a sign that it does, then something that is neither a word of grammar
/// nor a place to be filled in.
fn value(rest: &str) -> bool {
    let told = rest.trim_start_matches([' ', '"', '\'', '\\']);
    let Some(after) = told.strip_prefix([':', '=', '：', 'は']) else {
        return false;
    };
    let value = after.trim_start_matches([' ', '"', '\'', '\\', '　']);
    let end = value.find(|c: char| c.is_whitespace() || !c.is_ascii() || "\"',;&\\".contains(c));
    let value = &value[..end.unwrap_or(value.len())];
    let empty = ["true", "false", "null", "none", "your", "****"];
    value.len() >= 4
        && !value.starts_with(['$', '<', '{', '[', '(', '*'])
        && !empty.contains(&value)
        && !value.starts_with("process.env")
}

fn digits(rest: &str) -> bool {
    rest.chars().take(24).filter(|c| c.is_numeric()).count() >= 3
}

#[cfg(test)]
mod tests {
    use super::super::words::Words;
    use super::*;

    #[test]
    fn the_name_of_a_secret_is_none_and_its_value_is() {
        let secrets = Words::builtin().unwrap().secrets;
        for (text, expected) in [
            ("password=hunter2&x=1", true),
            (r#"{"api_key": "sk_live_1"}"#, true),
            ("openaiapikey: abcd1234", true),
            ("her ssn is 078-05-1120", true),
            ("パスワードはhunter2です", true),
            ("暗証番号は4821です", true),
            ("forgot your password? tell us.", false),
            ("set password=$db_password", false),
            ("const classname = 'box-123'", false),
            ("パスワードをお忘れの方へ", false),
            ("the social security office opens at ten", false),
        ] {
            assert_eq!(hold(&secrets, text), expected, "{text}");
        }
        for (text, expected) in [
            ("cat .env", true),
            ("~/.ssh/id_rsa", true),
            ("/app/.env.local", true),
            ("process.env.port", false),
            ("~/.ssh/id_rsa.pub", false),
            (".envelope", false),
        ] {
            assert_eq!(name_file(&secrets, text), expected, "{text}");
        }
    }
}
