//! Which rules hold in a scanned text.
//!
//! **Invariant:** every search is linear in the number of occurrences, up to a logarithm; a rule gives
//! at most [`HITS_MAX`] hits a window.

use crate::pattern::{Book, ConceptId, Condition, Role, Shape};
use crate::scan::{Occurrence, Scan};

/// More hits of one rule say nothing new.
const HITS_MAX: usize = 4;
/// How near a how-to must be to what it asks about, in steps.
const HOWTO_REACH: u32 = 14;
/// No phrase is longer than this, in steps.
const PHRASE_STEPS: u32 = 16;

/// A rule that holds somewhere.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Hit {
    /// Its number in the book.
    pub(crate) rule: usize,
    /// First byte in the folded text.
    pub(crate) start: usize,
    /// Byte after the last.
    pub(crate) end: usize,
    /// Whether the text asks how to do it.
    pub(crate) howto: bool,
}

/// A dangerous word that was meant harmlessly.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Replaced {
    /// How it was meant.
    pub(crate) kind: String,
    /// Which reading said so.
    pub(crate) source: String,
    pub(crate) start: usize,
    pub(crate) end: usize,
}

/// Where a shape stands.
struct Match {
    from: u32,
    to: u32,
    start: u32,
    end: u32,
    /// The occurrence in each slot.
    slots: Vec<Occurrence>,
}

impl Match {
    fn of(slots: Vec<Occurrence>) -> Option<Self> {
        Some(Self {
            from: slots.iter().map(|slot| slot.from).min()?,
            to: slots.iter().map(|slot| slot.to).max()?,
            start: slots.iter().map(|slot| slot.start).min()?,
            end: slots.iter().map(|slot| slot.end).max()?,
            slots,
        })
    }
}

/// Lets harmless meanings replace dangerous ones; says which did.
pub(crate) fn apply_readings(book: &Book, scan: &mut Scan) -> Vec<Replaced> {
    let mut replaced = Vec::new();
    let mut ranges = Vec::new();
    for (concept, kind) in &book.masks {
        for found in scan.of(*concept) {
            ranges.push((found.start, found.end));
            replaced.push(Replaced {
                kind: kind.clone(),
                source: format!("mask/{kind}"),
                start: found.start as usize,
                end: found.end as usize,
            });
        }
    }
    scan.remove_within(&mut ranges, true);
    ranges.clear();
    for number in book.index.readings.possible(scan) {
        let reading = &book.readings[number];
        for found in matches(&reading.condition, scan, usize::MAX) {
            for slot in reading.replaces.iter().filter_map(|&at| found.slots.get(at)) {
                ranges.push((slot.start, slot.end));
                replaced.push(Replaced {
                    kind: reading.kind.clone(),
                    source: reading.source.clone(),
                    start: slot.start as usize,
                    end: slot.end as usize,
                });
            }
        }
    }
    scan.remove_within(&mut ranges, false);
    replaced
}

/// Every rule that holds.
pub(crate) fn find_hits(book: &Book, scan: &Scan) -> Vec<Hit> {
    let howto: Vec<ConceptId> = book
        .roles
        .iter()
        .filter(|(_, role)| *role == Role::Howto)
        .map(|&(concept, _)| concept)
        .collect();
    let mut hits = Vec::new();
    for number in book.index.rules.possible(scan) {
        let rule = &book.rules[number];
        for found in matches(&rule.condition, scan, HITS_MAX) {
            hits.push(Hit {
                rule: number,
                start: found.start as usize,
                end: found.end as usize,
                howto: howto.iter().any(|&concept| near(scan, concept, &found, HOWTO_REACH)),
            });
        }
    }
    hits
}

fn matches(condition: &Condition, scan: &Scan, most: usize) -> Vec<Match> {
    if !possible(condition, scan) {
        return Vec::new();
    }
    let found = match &condition.shape {
        Shape::Any(concept) => scan.of(*concept).iter().map(|&one| vec![one]).collect(),
        Shape::Seq(slots) => sequences(slots, scan),
        Shape::All(slots, window) => gatherings(slots, *window, scan),
    };
    found
        .into_iter()
        .filter_map(Match::of)
        .filter(|found| allowed(condition, scan, found))
        .take(most)
        .collect()
}

/// The cheap tests that nearly every rule fails on nearly every text.
fn possible(condition: &Condition, scan: &Scan) -> bool {
    let present = match &condition.shape {
        Shape::Any(concept) => scan.has(*concept),
        Shape::Seq(slots) => slots.iter().all(|&(concept, _)| scan.has(concept)),
        Shape::All(slots, _) => slots.iter().all(|&concept| scan.has(concept)),
    };
    present
        && scan.units <= condition.units_max
        && condition.needs_text.iter().all(|&concept| scan.has(concept))
        && !condition.unless_text.iter().any(|&concept| scan.has(concept))
}

fn allowed(condition: &Condition, scan: &Scan, found: &Match) -> bool {
    let reach = condition.reach;
    let before = |concept: &ConceptId| {
        overlaps(scan, *concept, found.from.saturating_sub(reach), found.from)
    };
    let after = |concept: &ConceptId| overlaps(scan, *concept, found.to, found.to + reach);
    let quoted = |found: &Match| {
        let after = scan.quotes.partition_point(|&(start, _)| start <= found.start);
        after.checked_sub(1).is_some_and(|at| found.end <= scan.quotes[at].1)
    };
    !condition.unless.iter().any(|&concept| near(scan, concept, found, reach))
        && !condition.unless_before.iter().any(before)
        && !condition.unless_after.iter().any(after)
        && (!condition.quoted || quoted(found))
}

/// Whether a concept occurs inside a match or within `reach` of it.
fn near(scan: &Scan, concept: ConceptId, found: &Match, reach: u32) -> bool {
    overlaps(scan, concept, found.from.saturating_sub(reach), found.to + reach)
}

/// Whether a concept occurs between two steps.
fn overlaps(scan: &Scan, concept: ConceptId, from: u32, to: u32) -> bool {
    let list = scan.of(concept);
    let first = list.partition_point(|one| one.from + PHRASE_STEPS < from);
    list[first..].iter().take_while(|one| one.from < to).any(|one| one.to > from)
}

/// Chains of occurrences, one for each occurrence of the first slot that can be continued to the end.
fn sequences(slots: &[(ConceptId, u32)], scan: &Scan) -> Vec<Vec<Occurrence>> {
    // Walking from the last slot to the first, keep what can be continued and by what.
    let mut chains: Vec<Vec<(Occurrence, usize)>> = Vec::with_capacity(slots.len());
    for (depth, &(concept, _)) in slots.iter().enumerate().rev() {
        let list = scan.of(concept);
        let viable = match (chains.last(), slots.get(depth + 1)) {
            (Some(next), Some(&(_, gap))) => list
                .iter()
                .filter_map(|&one| successor(one, next, gap).map(|at| (one, at)))
                .collect(),
            _ => list.iter().map(|&one| (one, 0)).collect(),
        };
        chains.push(viable);
    }
    let Some(first) = chains.last() else {
        return Vec::new();
    };
    (0..first.len()).map(|at| chain(&chains, at)).collect()
}

/// The nearest viable occurrence that follows within `gap` steps.
fn successor(one: Occurrence, next: &[(Occurrence, usize)], gap: u32) -> Option<usize> {
    let at = next.partition_point(|(other, _)| other.start < one.end);
    let (other, _) = next.get(at)?;
    (other.from <= one.to + gap).then_some(at)
}

fn chain(chains: &[Vec<(Occurrence, usize)>], first: usize) -> Vec<Occurrence> {
    let mut at = first;
    chains
        .iter()
        .rev()
        .filter_map(|list| {
            let &(one, next) = list.get(at)?;
            at = next;
            Some(one)
        })
        .collect()
}

/// For each occurrence of the first slot, the nearest of every other within the window.
fn gatherings(slots: &[ConceptId], window: u32, scan: &Scan) -> Vec<Vec<Occurrence>> {
    let Some((&anchor, others)) = slots.split_first() else {
        return Vec::new();
    };
    scan.of(anchor)
        .iter()
        .filter_map(|&one| {
            std::iter::once(Some(one))
                .chain(others.iter().map(|&concept| nearest(scan.of(concept), one, window)))
                .collect()
        })
        .collect()
}

fn nearest(list: &[Occurrence], anchor: Occurrence, window: u32) -> Option<Occurrence> {
    let at = list.partition_point(|one| one.start < anchor.end);
    let after = list.get(at).filter(|one| one.from <= anchor.to + window);
    let before = list[..at]
        .iter()
        .rev()
        .take(8)
        .find(|one| one.end <= anchor.start)
        .filter(|one| anchor.from <= one.to + window);
    match (before, after) {
        (Some(before), Some(after)) => {
            let nearer =
                anchor.from.saturating_sub(before.to) < after.from.saturating_sub(anchor.to);
            Some(if nearer { *before } else { *after })
        }
        (before, after) => before.or(after).copied(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FILE: &str = r#"
language = "en"
category = "violence"
[concept.verb]
verbs = ["hurt>hurt", "kick"]
[concept.who]
words = ["him", "her", "ball{,s}"]
[concept.who_s]
suffix = "'s"
include = ["who"]
[concept.game]
words = ["game"]
[concept.kickoff]
mask = "figurative"
words = ["kick off"]
[concept.toy]
words = ["ball{,s}"]
[concept.rare]
words = ["rare"]
[concept.guarded]
words = ["自«殺す»な"]
[[reading]]
id = "play"
kind = "sport"
seq = ["verb.*", "toy"]
gap = 2
replaces = ["verb.*"]
[[rule]]
id = "near"
class = "high"
seq = ["verb.*", "who"]
gap = 1
unless = ["game"]
[[rule]]
id = "start"
class = "low"
seq = ["@start", "verb", "@end"]
gap = [0, 3]
[[rule]]
id = "around"
class = "medium"
all = ["rare", "who"]
window = 3
[[rule]]
id = "guard"
class = "high"
any = ["guarded"]
[[rule]]
id = "owned"
class = "low"
any = ["who_s"]
[[rule]]
id = "quoted"
class = "low"
any = ["rare"]
quoted = true
"#;

    fn rules(text: &str) -> Vec<String> {
        let book = Book::compile(&[("test.toml", FILE)], &[]).unwrap();
        let mut scan = Scan::new(&book, text);
        apply_readings(&book, &mut scan);
        let mut names: Vec<String> = find_hits(&book, &scan)
            .iter()
            .map(|hit| book.rules[hit.rule].source.rsplit('/').next().unwrap().to_owned())
            .collect();
        names.dedup();
        names
    }

    #[test]
    fn shapes_hold_where_they_should() {
        for (text, expected) in [
            ("they kicked him", &["near"][..]),
            ("they kicked the poor him", &[]),
            ("hurt her now", &["near", "start"]),
            ("kick. him", &["start"]),
            ("they kick her in a game", &[]),
            ("a rare sight of him", &["around"]),
            ("him, so rare", &["around"]),
            ("a rare sight and then there was him", &[]),
            ("kick the ball", &[]),
            ("kick off him", &[]),
            ("人を殺す", &["guard"]),
            ("自殺する", &[]),
            ("殺すな", &[]),
            ("her's", &["owned"]),
            ("say \"rare\" now", &["quoted"]),
            ("say rare now", &[]),
            ("ballistic himself", &[]),
        ] {
            assert_eq!(rules(text), expected, "{text}");
        }
    }

    #[test]
    fn a_reading_says_what_it_replaced() {
        let book = Book::compile(&[("test.toml", FILE)], &[]).unwrap();
        let mut scan = Scan::new(&book, "kick the ball");
        let replaced = apply_readings(&book, &mut scan);
        assert_eq!(replaced.len(), 1);
        assert_eq!(
            (replaced[0].kind.as_str(), replaced[0].start, replaced[0].end),
            ("sport", 0, 4)
        );
    }
}
