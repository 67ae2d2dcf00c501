//! The rows of the corpus and the files they lie in.

use super::schema;
use crate::files::{Outcome, shown, with_extension};
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;
use std::sync::Arc;

/// How many rows a message names before it only counts.
const NAMED_MAX: usize = 12;

/// Everything that was read.
#[derive(Debug, Default)]
pub struct Corpus {
    /// The rows that are well formed, in the order of files and lines.
    pub rows: Vec<Row>,
    /// What is wrong with the files and the other rows.
    pub faults: Vec<String>,
}

/// One file, as its path tells.
#[derive(Debug, PartialEq, Eq)]
pub struct File {
    /// `train/requests.en.jsonl`
    pub place: String,
    /// `train`
    pub split: String,
    /// `requests`
    pub theme: String,
    /// `en`
    pub language: String,
}

/// One well-formed row, with what the checks look at.
#[derive(Clone, Debug)]
pub struct Row {
    pub file: Arc<File>,
    pub id: String,
    pub harmful: bool,
    pub topic: String,
    pub pair: Option<String>,
    /// The text, or the turns a line each.
    pub text: String,
    /// The reply under judgement, or the call of a tool as it is written.
    pub response: Option<String>,
}

impl Corpus {
    /// Reads every file of lines below the folder.
    pub fn read(folder: &Path) -> Outcome<Self> {
        let mut corpus = Self::default();
        for path in with_extension(folder, "jsonl")? {
            corpus.add(&shown(folder, &path), &fs::read_to_string(&path)?);
        }
        Ok(corpus)
    }

    fn add(&mut self, place: &str, lines: &str) {
        let Some(file) = File::at(place).map(Arc::new) else {
            self.faults.push(format!("{place}: is no `split/theme.language.jsonl`"));
            return;
        };
        for (at, line) in lines.lines().enumerate() {
            match schema::read(&file, line) {
                Ok(row) => self.rows.push(row),
                Err(faults) => {
                    let place = format!("{place}:{}", at + 1);
                    self.faults.extend(faults.iter().map(|fault| format!("{place}: {fault}")));
                }
            }
        }
    }
}

impl File {
    /// The file at a place such as `dev/crisis.ja.jsonl`.
    pub fn at(place: &str) -> Option<Self> {
        let (split, name) = place.split_once('/')?;
        let (theme, language) = name.strip_suffix(".jsonl")?.split_once('.')?;
        let known = ["train", "dev", "test"].contains(&split);
        let plain = !theme.is_empty() && !language.is_empty() && !language.contains('.');
        let [place, split, theme, language] = [place, split, theme, language].map(str::to_owned);
        (known && plain).then_some(Self { place, split, theme, language })
    }
}

impl Row {
    /// What the label is about: the response if there is one, else all that was said.
    pub fn judged(&self) -> &str {
        self.response.as_deref().unwrap_or(&self.text)
    }

    /// Everything a person can read in the row.
    pub fn said(&self) -> impl Iterator<Item = &str> {
        [Some(self.text.as_str()), self.response.as_deref()].into_iter().flatten()
    }

    /// Where to look for it.
    pub fn name(&self) -> String {
        format!("{} {}", self.file.place, self.id)
    }
}

/// The rows of each theme and language, over all splits.
pub fn groups(rows: &[Row]) -> BTreeMap<String, Vec<&Row>> {
    by(rows, |row| Some(format!("{}.{}", row.file.theme, row.file.language)))
}

/// The theme whose twins share every word but those that make the difference.
const ACTIONS: &str = "actions";

/// The rows of each theme and language whose wording is compared: of twin actions the first alone, because what they
/// share is what makes them twins.
pub fn worded_groups(rows: &[Row]) -> BTreeMap<String, Vec<&Row>> {
    let mut groups = groups(rows);
    for rows in groups.values_mut() {
        let mut seen = BTreeSet::new();
        rows.retain(|row| match &row.pair {
            Some(pair) if row.file.theme == ACTIONS => seen.insert(pair),
            _ => true,
        });
    }
    groups
}

/// The rows that share a key; rows without one are left out.
pub fn by<'a, K: Ord>(
    rows: &'a [Row],
    key: impl Fn(&'a Row) -> Option<K>,
) -> BTreeMap<K, Vec<&'a Row>> {
    let mut found = BTreeMap::<K, Vec<&Row>>::new();
    for row in rows {
        if let Some(key) = key(row) {
            found.entry(key).or_default().push(row);
        }
    }
    found
}

/// The rows as a message names them: the first ones, and how many more there are.
pub fn names<'a>(rows: impl IntoIterator<Item = &'a Row>) -> String {
    let mut names: Vec<_> = rows.into_iter().map(Row::name).collect();
    let more = names.len().saturating_sub(NAMED_MAX);
    names.truncate(NAMED_MAX);
    let rest = if more > 0 { format!(" and {more} more") } else { String::new() };
    names.join(", ") + &rest
}

/// A made-up safe row that lies in the given file.
#[cfg(test)]
pub fn made(place: &str, id: &str, text: &str) -> Row {
    Row {
        file: Arc::new(File::at(place).expect("a place in the corpus")),
        id: id.to_owned(),
        harmful: false,
        topic: "made-up".to_owned(),
        pair: None,
        text: text.to_owned(),
        response: None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::corpus_lint::schema::tests::SAMPLE;

    #[test]
    fn a_path_tells_split_theme_and_language() {
        let file = File::at("dev/crisis.ja.jsonl").unwrap();
        assert_eq!([file.split, file.theme, file.language], ["dev", "crisis", "ja"]);
        for stray in ["crisis.ja.jsonl", "more/a.en.jsonl", "dev/a.jsonl", "dev/a.b.en.jsonl"] {
            assert_eq!(File::at(stray), None, "{stray}");
        }
    }

    #[test]
    fn faults_name_file_and_line_and_cost_only_their_row() {
        let mut corpus = Corpus::default();
        corpus.add("dev/a.en.jsonl", &format!("{SAMPLE}\n[]\n"));
        corpus.add("dev/a.jsonl", SAMPLE);
        assert_eq!(corpus.rows.len(), 1);
        let expected = ["dev/a.en.jsonl:2: is no JSON object", "dev/a.jsonl: is no `split/theme"];
        assert_eq!(corpus.faults.len(), expected.len());
        for (fault, expected) in corpus.faults.iter().zip(expected) {
            assert!(fault.starts_with(expected), "{fault}");
        }
    }

    #[test]
    fn of_twin_actions_one_is_compared_and_of_other_twins_both() {
        let twin = |place: &str| Row { pair: Some("p".to_owned()), ..made(place, "x", "") };
        for (theme, count) in [("actions", 1), ("requests", 2)] {
            let place = format!("dev/{theme}.en.jsonl");
            let rows = [twin(&place), twin(&place)];
            assert_eq!(worded_groups(&rows)[&format!("{theme}.en")].len(), count);
        }
    }

    #[test]
    fn long_lists_of_rows_are_counted() {
        let rows = vec![made("dev/a.en.jsonl", "x", ""); NAMED_MAX + 2];
        assert!(names(&rows).ends_with("dev/a.en.jsonl x and 2 more"));
        assert_eq!(names(&rows[..1]), "dev/a.en.jsonl x");
    }
}
