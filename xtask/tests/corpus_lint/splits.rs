//! What must not be torn between train, dev and test: a topic, and twins.

use super::row::{Row, by, names};
use std::collections::BTreeSet;

/// Topics of one theme and language that lie in more than one split.
pub fn torn_topics(rows: &[Row]) -> Vec<String> {
    let topics = by(rows, |row| Some((&row.file.theme, &row.file.language, &row.topic)));
    let torn = topics.into_iter().filter(|(_, rows)| are_torn(rows));
    torn.map(|((theme, language, topic), rows)| {
        format!("{theme}.{language}: topic `{topic}` is torn: {}", one_of_each(&rows))
    })
    .collect()
}

/// Pairs that are torn between splits, or whose rows all carry one label.
pub fn bad_pairs(rows: &[Row]) -> Vec<String> {
    let mut problems = Vec::new();
    for (pair, rows) in by(rows, |row| row.pair.as_deref()) {
        if are_torn(&rows) {
            problems.push(format!("pair `{pair}` is torn: {}", one_of_each(&rows)));
        }
        if rows.iter().all(|row| row.harmful == rows[0].harmful) {
            problems.push(format!("pair `{pair}` has one label only: {}", names(rows)));
        }
    }
    problems
}

fn are_torn(rows: &[&Row]) -> bool {
    rows.iter().any(|row| row.file.split != rows[0].file.split)
}

/// The first row in each split, so that a message shows both sides of the tear.
fn one_of_each(rows: &[&Row]) -> String {
    let mut seen = BTreeSet::new();
    names(rows.iter().copied().filter(|row| seen.insert(&row.file.split)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::corpus_lint::row::made;

    fn about(place: &str, id: &str, topic: &str) -> Row {
        Row { topic: topic.to_owned(), ..made(place, id, "") }
    }

    #[test]
    fn a_torn_topic_is_found() {
        let mut rows = vec![
            about("train/a.en.jsonl", "1", "bread"),
            about("train/a.en.jsonl", "2", "bread"),
            about("dev/a.ja.jsonl", "3", "bread"),
            about("dev/b.en.jsonl", "4", "bread"),
            about("dev/a.en.jsonl", "5", "butter"),
        ];
        assert!(torn_topics(&rows).is_empty());
        rows.push(about("test/a.en.jsonl", "6", "bread"));
        let expected = "a.en: topic `bread` is torn: train/a.en.jsonl 1, test/a.en.jsonl 6";
        assert_eq!(torn_topics(&rows), [expected]);
    }

    #[test]
    fn torn_and_one_sided_pairs_are_found() {
        let twin = |place, id, harmful| Row {
            harmful,
            pair: Some("p".to_owned()),
            ..about(place, id, "bread")
        };
        let harmful = twin("train/a.en.jsonl", "1", true);
        for (other, problems) in [
            (twin("train/a.en.jsonl", "2", false), 0),
            (twin("train/a.en.jsonl", "2", true), 1),
            (twin("test/a.en.jsonl", "2", false), 1),
            (twin("test/a.en.jsonl", "2", true), 2),
            (about("test/a.en.jsonl", "2", "bread"), 1),
        ] {
            let found = bad_pairs(&[harmful.clone(), other]);
            assert_eq!(found.len(), problems, "{found:?}");
            assert!(
                found.iter().all(|problem| problem.contains("train/a.en.jsonl 1")),
                "{found:?}"
            );
        }
    }
}
