//! Rows that say what another row says already.
//!
//! **Invariant:** near duplicates are found exactly, not by chance. Two sets that share three
//! fifths of their union also share one of the rarest two fifths and one more of each, so only
//! those are looked up.

use super::row::{Row, by, names, worded_groups};
use super::wording::{Length, Script, plain};
use std::collections::{BTreeSet, HashMap};

const SHINGLE: Length = Length { words: 3, characters: 4 };
/// Jaccard similarity from which two texts are nearly the same, as a fraction.
const NEAR: (usize, usize) = (3, 5);
/// Of a theme and language, fewer than this may be near an earlier row.
const NEAR_PERCENT: usize = 2;

/// Rows that are word for word another, the response included.
pub fn exact(rows: &[Row]) -> Vec<String> {
    let same = by(rows, |row| Some(row.said().map(plain).collect::<Vec<_>>()));
    let same = same.into_values().filter(|rows| rows.len() > 1);
    same.map(|rows| format!("the same is said by {}", names(rows))).collect()
}

/// Themes and languages where too many rows are nearly an earlier one, with every such row.
pub fn near(rows: &[Row]) -> Vec<String> {
    worded_groups(rows).into_iter().flat_map(|(group, rows)| near_in(&group, &rows)).collect()
}

fn near_in(group: &str, rows: &[&Row]) -> Vec<String> {
    let texts: Vec<_> = rows.iter().map(|row| plain(row.judged())).collect();
    let script = Script::of(&rows[0].file.language);
    let near = near_pairs(&ranked_shingles(&texts, script));
    if near.len() * 100 < NEAR_PERCENT * rows.len() {
        return Vec::new();
    }
    let (count, whole) = (near.len(), rows.len());
    let head =
        format!("{group}: {count} of {whole} rows are nearly another, under {NEAR_PERCENT} %");
    let lines = near.iter().map(|(row, like)| {
        let (row, like) = (rows[*row], rows[*like]);
        format!("  {} is nearly {}", row.name(), like.name())
    });
    std::iter::once(head).chain(lines).collect()
}

/// For each text its shingles as numbers in ascending order, rare ones having small numbers.
fn ranked_shingles(texts: &[String], script: Script) -> Vec<Vec<usize>> {
    let pieces: Vec<_> = texts.iter().map(|text| script.cut(text)).collect();
    let length = script.length(SHINGLE);
    let sets: Vec<_> = pieces.iter().map(|pieces| shingles(pieces, length)).collect();
    let mut counts = HashMap::<_, usize>::new();
    for shingle in sets.iter().flatten() {
        *counts.entry(*shingle).or_default() += 1;
    }
    let mut rarest: Vec<_> = counts.into_iter().map(|(shingle, count)| (count, shingle)).collect();
    rarest.sort_unstable();
    let ranks = rarest.into_iter().enumerate().map(|(rank, (_, shingle))| (shingle, rank));
    let ranks: HashMap<_, _> = ranks.collect();
    let ranked = |set: BTreeSet<_>| {
        let mut ranked: Vec<_> = set.iter().map(|shingle| ranks[shingle]).collect();
        ranked.sort_unstable();
        ranked
    };
    sets.into_iter().map(ranked).collect()
}

/// A text shorter than a shingle is one itself.
fn shingles<'a, 'b>(pieces: &'b [&'a str], length: usize) -> BTreeSet<&'b [&'a str]> {
    pieces.windows(length.min(pieces.len()).max(1)).collect()
}

/// Each set that is near an earlier one, with the first such.
fn near_pairs(sets: &[Vec<usize>]) -> Vec<(usize, usize)> {
    let mut near = Vec::new();
    let mut holders = HashMap::<usize, Vec<usize>>::new();
    for (at, set) in sets.iter().enumerate() {
        let rare = &set[..lookups(set.len())];
        let candidates: BTreeSet<_> =
            rare.iter().filter_map(|shingle| holders.get(shingle)).flatten().copied().collect();
        let like = candidates.into_iter().find(|earlier| are_near(set, &sets[*earlier]));
        near.extend(like.map(|earlier| (at, earlier)));
        for shingle in rare {
            holders.entry(*shingle).or_default().push(at);
        }
    }
    near
}

/// How many of the rarest shingles of a set of this size must be looked up.
fn lookups(size: usize) -> usize {
    let (part, whole) = NEAR;
    if size == 0 { 0 } else { size - (size * part).div_ceil(whole) + 1 }
}

fn are_near(a: &[usize], b: &[usize]) -> bool {
    let (part, whole) = NEAR;
    let common = a.iter().filter(|shingle| b.binary_search(shingle).is_ok()).count();
    let union = a.len() + b.len() - common;
    common * whole >= union * part
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::corpus_lint::row::made;

    #[test]
    fn a_duplicate_is_found_in_any_file_and_spelling() {
        let mut rows = vec![
            made("dev/a.en.jsonl", "1", "Where's the bread?"),
            made("dev/a.en.jsonl", "2", "Where is the bread?"),
            made("dev/a.en.jsonl", "3", "😭"),
            made("dev/a.en.jsonl", "4", "💀"),
        ];
        rows.push(Row { response: Some("There.".to_owned()), ..rows[0].clone() });
        assert!(exact(&rows).is_empty());
        rows.push(made("test/b.ja.jsonl", "6", "wheres the  BREAD"));
        assert_eq!(exact(&rows), ["the same is said by dev/a.en.jsonl 1, test/b.ja.jsonl 6"]);
    }

    #[test]
    fn a_near_duplicate_is_found_and_counted() {
        let long = "my aunt keeps the good bread in a tin on the shelf above the stove";
        let mut rows = vec![
            made("dev/a.en.jsonl", "1", long),
            made("test/a.en.jsonl", "2", &long.replace("stove", "sink")),
            made("dev/a.en.jsonl", "3", "the stove above the shelf has a tin of good bread"),
        ];
        let one = "a.en: 1 of 3 rows are nearly another, under 2 %";
        assert_eq!(near(&rows), [one, "  test/a.en.jsonl 2 is nearly dev/a.en.jsonl 1"]);
        rows.extend((0..48).map(|at| made("dev/a.en.jsonl", "x", &format!("row {at}"))));
        assert!(near(&rows).is_empty(), "one of fifty-one is under two percent");
        rows.pop();
        assert_eq!(near(&rows).len(), 2, "one of fifty is not");
        let japanese = [
            "父の古い時計を直してくれる店を探しています",
            "父の古い時計を直してくれる人を探しています",
        ];
        let japanese = japanese.map(|text| made("dev/a.ja.jsonl", "x", text));
        assert_eq!(near(&japanese).len(), 2);
    }

    /// The lookups against the plain way of comparing everything with everything.
    #[test]
    fn looking_up_the_rare_misses_nothing() {
        let words = ["bread", "tin", "aunt", "stove"];
        let text = |seed: usize| {
            let word = |at| words[((seed * seed / 7) >> at) % words.len()];
            (0..4 + seed % 5).map(word).collect::<Vec<_>>().join(" ")
        };
        let texts: Vec<_> = (0..400).map(text).collect();
        let sets = ranked_shingles(&texts, Script::Spaced);
        let like = |at: usize| (0..at).find(|earlier| are_near(&sets[at], &sets[*earlier]));
        let expected: Vec<_> = (0..sets.len()).filter_map(|at| Some((at, like(at)?))).collect();
        assert!(expected.len() > 20 && expected.len() < 380, "{}", expected.len());
        assert_eq!(near_pairs(&sets), expected);
    }
}
