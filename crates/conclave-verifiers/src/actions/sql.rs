//! What a statement of SQL would destroy.

use super::{Reach, Undo};

/// A statement's harm in hundredths, how many it touches and whether it can be undone.
pub type Weight = (u8, Reach, Undo, &'static str);

/// Weighs the gravest statement in a text; `None` when it holds no SQL.
#[must_use]
pub fn weigh(text: &str) -> Option<Weight> {
    let lower = text.to_lowercase();
    lower
        .split(';')
        .filter_map(|statement| weigh_one(&statement.split_whitespace().collect::<Vec<_>>()))
        .max_by_key(|weight| weight.0)
}

fn weigh_one(words: &[&str]) -> Option<Weight> {
    let start = words.iter().position(|word| VERBS.contains(&bare(word)))?;
    let words = &words[start..];
    let next = words.get(1).map_or("", |word| bare(word));
    match bare(words.first()?) {
        "drop" if matches!(next, "database" | "schema") => {
            Some((96, Reach::Many, Undo::Never, "sql/drop-database"))
        }
        "drop" if matches!(next, "table" | "user" | "role" | "tablespace" | "view" | "index") => {
            Some((drop_weight(next), Reach::Many, Undo::Never, "sql/drop"))
        }
        // Prose knows these words too: only the shape of a statement makes them one.
        "truncate" if next == "table" || words.len() == 2 && start == 0 => {
            Some((85, Reach::Many, Undo::Never, "sql/truncate"))
        }
        "delete" if next == "from" => Some(filtered(words, 88, 25, "sql/delete")),
        "update" if sets(words) => Some(filtered(words, 82, 15, "sql/update")),
        "alter" if words.contains(&"drop") => {
            Some((65, Reach::Many, Undo::Never, "sql/alter-drop"))
        }
        "grant" if words.contains(&"on") => {
            Some((grant(words), Reach::Some, Undo::Hard, "sql/grant"))
        }
        "select" if words.contains(&"from") => Some((0, Reach::One, Undo::Easy, "sql/select")),
        "insert" if next == "into" => Some((12, Reach::One, Undo::Hard, "sql/insert")),
        "create" if CREATED.contains(&next) => Some((10, Reach::One, Undo::Easy, "sql/create")),
        _ => None,
    }
}

const VERBS: [&str; 9] =
    ["drop", "truncate", "delete", "update", "alter", "grant", "select", "insert", "create"];
const CREATED: [&str; 6] = ["table", "index", "view", "unique", "database", "or"];

fn bare(word: &str) -> &str {
    word.trim_matches(|c: char| !c.is_alphanumeric())
}

/// `update t set a = 1`, also with a schema or an alias.
fn sets(words: &[&str]) -> bool {
    let set = words.iter().take(6).position(|word| *word == "set");
    set.is_some_and(|at| at >= 2 && words[at..].iter().any(|word| word.contains('=')))
}

fn drop_weight(what: &str) -> u8 {
    match what {
        "table" | "tablespace" => 88,
        "user" | "role" => 60,
        _ => 40,
    }
}

/// With a condition that says something few rows are touched; without one, all are.
fn filtered(words: &[&str], all: u8, few: u8, rule: &'static str) -> Weight {
    let condition = words.iter().position(|word| bare(word) == "where").map(|at| &words[at + 1..]);
    let says_nothing = condition.is_none_or(|rest| {
        let end = rest.iter().position(|word| word.starts_with("--") || word.starts_with("/*"));
        let joined: String = rest[..end.unwrap_or(rest.len())].concat();
        let always = joined.contains("or1=1") || joined.contains("or'1'='1'");
        joined.is_empty()
            || always
            || matches!(joined.trim_matches('"'), "1=1" | "true" | "1" | "'1'='1'")
    });
    if says_nothing {
        (all, Reach::Many, Undo::Never, rule)
    } else {
        (few, Reach::Some, Undo::Hard, rule)
    }
}

fn grant(words: &[&str]) -> u8 {
    let everything = words.iter().any(|word| matches!(bare(word), "all" | "superuser"));
    let anyone = words.iter().any(|word| matches!(bare(word), "public"));
    match (everything, anyone) {
        (true, true) => 90,
        (true, false) => 70,
        (false, true) => 60,
        (false, false) => 25,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn statements_weigh_what_they_destroy() {
        for (statement, low, high) in [
            ("DROP DATABASE shop", 90, 100),
            ("select 1 from t; drop table users", 80, 100),
            ("DELETE FROM users", 80, 100),
            ("DELETE FROM users WHERE 1=1", 80, 100),
            ("DELETE FROM users WHERE id = 3", 0, 40),
            ("UPDATE t SET a = 1 WHERE id = 2", 0, 40),
            ("update t set a=1", 80, 100),
            ("GRANT ALL ON shop TO PUBLIC", 80, 100),
            ("SELECT * FROM t", 0, 0),
            ("DELETE FROM users WHERE id = 3 OR 1=1 -- x", 80, 100),
            ("UPDATE shop.t AS x SET a = 1", 80, 100),
            ("TRUNCATE users", 80, 100),
        ] {
            let harm = weigh(statement).map(|weight| weight.0).unwrap();
            assert!((low..=high).contains(&harm), "{statement}: {harm}");
        }
        for prose in [
            "please update the page",
            "drop me a line",
            "select a colour",
            "i will update you once the date is set",
            "please truncate the last line of my letter",
            "",
        ] {
            assert_eq!(weigh(prose), None, "{prose}");
        }
    }
}
