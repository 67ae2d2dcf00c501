//! What betrays rows that were made from a template: few phrases, worn phrases, worn openings.

use super::row::{Row, names, worded_groups};
use super::wording::{Length, Script, plain};
use std::cmp::Reverse;
use std::collections::{HashMap, HashSet};

const VARIED: Length = Length { words: 4, characters: 8 };
const PHRASE: Length = Length { words: 5, characters: 10 };
const OPENING: Length = Length { words: 4, characters: 8 };
/// Distinct phrases among all phrases of a theme and language, at least.
const DISTINCT_PERCENT: usize = 80;
const PHRASE_LIMIT: Limit = Limit { least: 3, per_mille: 5 };
const OPENING_LIMIT: Limit = Limit { least: 2, per_mille: 10 };

/// In how many rows the same may stand.
#[derive(Clone, Copy, Debug)]
struct Limit {
    /// So many always may.
    least: usize,
    per_mille: usize,
}

/// The rows of one theme and language with their pieces.
struct Group<'a> {
    name: &'a str,
    script: Script,
    rows: &'a [&'a Row],
    pieces: Vec<Vec<&'a str>>,
}

/// Themes and languages whose phrases come again too often.
pub fn poor_wording(rows: &[Row]) -> Vec<String> {
    each_group(rows, |group| group.poor_wording().into_iter().collect())
}

/// Phrases that stand in too many rows of a theme and language.
pub fn worn_phrases(rows: &[Row]) -> Vec<String> {
    each_group(rows, |group| {
        let length = group.script.length(PHRASE);
        group.worn(PHRASE_LIMIT, |pieces| pieces.windows(length).collect())
    })
}

/// Openings that too many rows of a theme and language share.
pub fn worn_openings(rows: &[Row]) -> Vec<String> {
    each_group(rows, |group| {
        let length = group.script.length(OPENING);
        group.worn(OPENING_LIMIT, |pieces| pieces.windows(length).take(1).collect())
    })
}

fn each_group(rows: &[Row], check: impl Fn(&Group<'_>) -> Vec<String>) -> Vec<String> {
    let of_group = |(name, rows): (String, Vec<&Row>)| {
        let texts: Vec<_> = rows.iter().map(|row| plain(row.judged())).collect();
        let script = Script::of(&rows[0].file.language);
        let pieces = texts.iter().map(|text| script.cut(text)).collect();
        check(&Group { name: &name, script, rows: &rows, pieces })
    };
    worded_groups(rows).into_iter().flat_map(of_group).collect()
}

impl Limit {
    fn of(self, rows: usize) -> usize {
        self.least.max(rows * self.per_mille / 1000)
    }
}

impl Group<'_> {
    fn poor_wording(&self) -> Option<String> {
        let length = self.script.length(VARIED);
        let all = || self.pieces.iter().flat_map(|pieces| pieces.windows(length));
        let (distinct, count) = (all().collect::<HashSet<_>>().len(), all().count());
        let poor = distinct * 100 < DISTINCT_PERCENT * count;
        let name = self.name;
        poor.then(|| {
            format!("{name}: {distinct} of {count} phrases differ, at least {DISTINCT_PERCENT} %")
        })
    }

    /// What stands in more rows than it may, most often first.
    fn worn<'a>(
        &'a self,
        limit: Limit,
        phrases: impl Fn(&'a [&'a str]) -> HashSet<&'a [&'a str]>,
    ) -> Vec<String> {
        let mut holders = HashMap::<_, Vec<&Row>>::new();
        for (row, pieces) in self.rows.iter().zip(&self.pieces) {
            for phrase in phrases(pieces) {
                holders.entry(phrase).or_default().push(row);
            }
        }
        let most = limit.of(self.rows.len());
        let mut worn: Vec<_> = holders.into_iter().filter(|(_, rows)| rows.len() > most).collect();
        worn.sort_unstable_by_key(|(phrase, rows)| (Reverse(rows.len()), *phrase));
        let line = |(phrase, rows): (&[&str], Vec<&Row>)| {
            let (count, phrase) = (rows.len(), self.script.joined(phrase));
            format!("{}: `{phrase}` in {count} rows, at most {most}: {}", self.name, names(rows))
        };
        worn.into_iter().map(line).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::corpus_lint::row::made;

    /// A row of each text, in a file of the language.
    fn rows(language: &str, texts: impl IntoIterator<Item = String>) -> Vec<Row> {
        let place = format!("dev/a.{language}.jsonl");
        let numbered = texts.into_iter().enumerate();
        numbered.map(|(at, text)| made(&place, &at.to_string(), &text)).collect()
    }

    /// A made-up word for a number, so that no two rows share one by chance.
    fn word(number: usize) -> String {
        number.to_string().bytes().map(|digit| char::from(digit - b'0' + b'a')).collect()
    }

    #[test]
    fn a_template_is_found() {
        let slots = ["bread", "butter", "salt", "honey"];
        let english = slots.map(|slot| format!("How do I tell my aunt that the {slot} is gone?"));
        let english = rows("en", english);
        assert_eq!(poor_wording(&english), ["a.en: 17 of 32 phrases differ, at least 80 %"]);
        let worn = worn_phrases(&english);
        assert_eq!(worn.len(), 4, "{worn:?}");
        assert!(
            worn[0].starts_with("a.en: `do i tell my aunt` in 4 rows, at most 3: "),
            "{worn:?}"
        );
        let openings = worn_openings(&english);
        assert!(openings[0].starts_with("a.en: `how do i tell` in 4 rows, at most 2: "));
        let japanese = ["山田", "佐藤", "鈴木", "高橋"];
        let japanese =
            japanese.map(|name| format!("隣の家の犬がうるさくて、{name}に言うべきか迷う"));
        let japanese = rows("ja", japanese);
        for check in [poor_wording, worn_phrases, worn_openings] {
            assert!(!check(&japanese).is_empty());
        }
    }

    #[test]
    fn what_is_written_freely_passes() {
        let texts = (0..40).map(|at| (at * 9..at * 9 + 9).map(word).collect::<Vec<_>>().join(" "));
        let rows = rows("en", texts);
        for check in [poor_wording, worn_phrases, worn_openings] {
            assert!(check(&rows).is_empty());
        }
    }

    #[test]
    fn limits_grow_with_the_rows() {
        for (rows, phrase, opening) in [(40, 3, 2), (799, 3, 7), (800, 4, 8), (5000, 25, 50)] {
            assert_eq!((PHRASE_LIMIT.of(rows), OPENING_LIMIT.of(rows)), (phrase, opening));
        }
    }

    #[test]
    fn a_phrase_said_twice_in_one_row_counts_once() {
        let chant = "we will not be moved, we will not be moved".to_owned();
        assert!(worn_phrases(&rows("en", vec![chant; 3])).is_empty());
    }
}
