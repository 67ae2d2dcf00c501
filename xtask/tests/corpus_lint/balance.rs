//! How much there is of each label, theme and language.
//!
//! **Invariant:** shares are compared in whole numbers, so that a limit is exactly what it says.

use super::row::{Row, groups};
use std::ops::RangeInclusive;

const HARMFUL_PERCENT: RangeInclusive<usize> = 35..=65;
const ENGLISH_PERCENT: RangeInclusive<usize> = 40..=60;
const JAPANESE_PERCENT: RangeInclusive<usize> = 20..=100;
const GROUP_ROWS_MIN: usize = 25;
const ROWS_MIN: usize = 16_000;
/// The theme of what no check should stop: there is no harm in it to balance.
const ORDINARY: &str = "ordinary";

/// Themes and languages where one label outweighs the other.
pub fn labels(rows: &[Row]) -> Vec<String> {
    let of_group = |(group, rows): (String, Vec<&Row>)| {
        let harmful = rows.iter().filter(|row| row.harmful).count();
        if rows[0].file.theme == ORDINARY {
            return (harmful > 0)
                .then(|| format!("{group}: {harmful} rows are harmful, none may be"));
        }
        outside(&HARMFUL_PERCENT, harmful, rows.len(), &format!("{group}: harmful"))
    };
    groups(rows).into_iter().filter_map(of_group).collect()
}

/// Themes and languages with too few rows to learn or measure from.
pub fn thin_groups(rows: &[Row]) -> Vec<String> {
    let groups = groups(rows).into_iter().map(|(group, rows)| (group, rows.len()));
    let thin = groups.filter(|(_, count)| *count < GROUP_ROWS_MIN);
    thin.map(|(group, count)| format!("{group}: {count} rows, at least {GROUP_ROWS_MIN}")).collect()
}

/// Languages with too large or too small a share of all rows.
pub fn languages(rows: &[Row]) -> Vec<String> {
    let limits = [("en", &ENGLISH_PERCENT), ("ja", &JAPANESE_PERCENT)];
    let of_language = |(language, limits): (&str, &RangeInclusive<usize>)| {
        let spoken = rows.iter().filter(|row| row.file.language == language).count();
        outside(limits, spoken, rows.len(), &format!("all files: `{language}`"))
    };
    limits.into_iter().filter_map(of_language).collect()
}

/// Whether the whole is large enough.
pub fn total(rows: &[Row]) -> Vec<String> {
    let small = rows.len() < ROWS_MIN;
    small
        .then(|| format!("all files: {} rows, at least {ROWS_MIN}", rows.len()))
        .into_iter()
        .collect()
}

fn outside(limits: &RangeInclusive<usize>, part: usize, whole: usize, of: &str) -> Option<String> {
    let (least, most) = (limits.start(), limits.end());
    let within = (least * whole..=most * whole).contains(&(part * 100));
    let per_mille = part * 1000 / whole.max(1);
    let (percent, tenth) = (per_mille / 10, per_mille % 10);
    let share = format!("{part} of {whole} rows are {percent}.{tenth} %");
    (!within).then(|| format!("{of}: {share}, must be {least} to {most} %"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::corpus_lint::row::made;

    /// So many rows of a file, of which so many are harmful.
    fn of_file(place: &str, rows: usize, harmful: usize) -> Vec<Row> {
        let row = made(place, "x", "");
        (0..rows).map(|at| Row { harmful: at < harmful, ..row.clone() }).collect()
    }

    #[test]
    fn a_leaning_label_is_found_at_the_limit() {
        for (harmful, problems) in [(34, 1), (35, 0), (65, 0), (66, 1)] {
            let mut rows = of_file("dev/a.en.jsonl", 60, harmful.min(60));
            rows.extend(of_file("test/a.en.jsonl", 40, harmful.saturating_sub(60)));
            rows.extend(of_file("test/a.ja.jsonl", 100, 50));
            assert_eq!(labels(&rows).len(), problems, "{harmful}");
        }
        let found = labels(&of_file("dev/a.en.jsonl", 129, 45));
        let expected = "a.en: harmful: 45 of 129 rows are 34.8 %, must be 35 to 65 %";
        assert_eq!(found, [expected]);
    }

    #[test]
    fn a_thin_theme_is_found() {
        let mut rows = of_file("dev/a.en.jsonl", GROUP_ROWS_MIN - 1, 0);
        assert_eq!(thin_groups(&rows), ["a.en: 24 rows, at least 25"]);
        rows.extend(of_file("test/a.en.jsonl", 1, 0));
        assert!(thin_groups(&rows).is_empty());
    }

    #[test]
    fn a_language_out_of_its_share_is_found() {
        for (en, ja, de, problems) in
            [(40, 20, 40, 0), (60, 40, 0, 0), (61, 39, 0, 1), (39, 19, 42, 2)]
        {
            let mut rows = of_file("dev/a.en.jsonl", en, 0);
            rows.extend(of_file("dev/a.ja.jsonl", ja, 0));
            rows.extend(of_file("dev/a.de.jsonl", de, 0));
            assert_eq!(languages(&rows).len(), problems, "{en} {ja} {de}");
        }
    }

    #[test]
    fn a_small_corpus_is_found() {
        let mut rows = of_file("dev/a.en.jsonl", ROWS_MIN, 0);
        assert!(total(&rows).is_empty());
        rows.pop();
        assert_eq!(total(&rows), ["all files: 15999 rows, at least 16000"]);
    }
}
