//! Which readings and rules could hold in a text, known from the concepts that were found in it.
//!
//! **Invariant:** whatever needs no concept of the text's is not looked at, and nothing else is left out: each
//! condition is filed under one concept without which it cannot hold.

use super::book::{Atom, ConceptId, Condition, END, Reading, Rule, START, Shape};
use crate::scan::Scan;

/// Readings and rules, each filed under one of its concepts.
#[derive(Debug)]
pub(crate) struct Index {
    pub(crate) readings: Filed,
    pub(crate) rules: Filed,
}

impl Index {
    /// Files everything.
    pub(super) fn of(
        readings: &[Reading],
        rules: &[Rule],
        atoms: &[Atom],
        concepts: usize,
    ) -> Self {
        let mut words = vec![0_u32; concepts];
        for concept in atoms.iter().flat_map(|atom| &atom.concepts) {
            words[usize::from(*concept)] += 1;
        }
        // An edge of a sentence is in every text.
        for edge in [START, END] {
            words[usize::from(edge)] = u32::MAX;
        }
        Self {
            readings: Filed::new(readings.iter().map(|one| &one.condition), &words),
            rules: Filed::new(rules.iter().map(|one| &one.condition), &words),
        }
    }
}

/// The numbers of conditions, by the concept that each needs.
#[derive(Debug)]
pub(crate) struct Filed {
    numbers: Vec<u32>,
    /// Where each concept's numbers begin in the list; one more at the end.
    starts: Vec<u32>,
}

impl Filed {
    fn new<'a>(conditions: impl Iterator<Item = &'a Condition>, words: &[u32]) -> Self {
        let mut pairs: Vec<(ConceptId, u32)> =
            conditions.map(|condition| rarest(&condition.shape, words)).zip(0..).collect();
        pairs.sort_unstable();
        let begins = |concept: usize| pairs.partition_point(|&(one, _)| usize::from(one) < concept);
        let starts = (0..=words.len()).map(|concept| u32::try_from(begins(concept)));
        Self {
            starts: starts.map(|start| start.unwrap_or(u32::MAX)).collect(),
            numbers: pairs.into_iter().map(|(_, number)| number).collect(),
        }
    }

    /// The conditions whose concept was found, in their order.
    pub(crate) fn possible(&self, scan: &Scan) -> Vec<usize> {
        let mut found: Vec<usize> = Vec::new();
        for concept in scan.concepts().map(usize::from) {
            let of_one = self.starts[concept] as usize..self.starts[concept + 1] as usize;
            found.extend(self.numbers[of_one].iter().map(|number| *number as usize));
        }
        found.sort_unstable();
        found
    }
}

/// The concept of a shape with the fewest words: it is missed in most texts.
fn rarest(shape: &Shape, words: &[u32]) -> ConceptId {
    let count = |concept: &ConceptId| words[usize::from(*concept)];
    match shape {
        Shape::Any(concept) => *concept,
        Shape::Seq(slots) => {
            slots.iter().map(|(concept, _)| *concept).min_by_key(count).unwrap_or(START)
        }
        Shape::All(slots, _) => slots.iter().copied().min_by_key(count).unwrap_or(START),
    }
}

#[cfg(test)]
mod tests {
    use super::super::book::Book;
    use crate::scan::Scan;

    const FILE: &str = r#"
language = "en"
category = "violence"
[concept.verb]
words = ["kick", "hit", "push"]
[concept.rare]
words = ["anvil"]
[concept.other]
words = ["feather"]
[[rule]]
id = "first"
class = "low"
any = ["other"]
[[rule]]
id = "second"
class = "low"
seq = ["verb", "rare"]
[[rule]]
id = "third"
class = "low"
seq = ["@start", "verb"]
"#;

    #[test]
    fn only_what_could_hold_is_looked_at_in_the_order_of_the_files() {
        let book = Book::compile(&[("test.toml", FILE)], &[]).unwrap();
        for (text, expected) in [
            ("kick it", &[2][..]),
            ("kick the anvil", &[1, 2]),
            ("an anvil", &[1]),
            ("a feather on an anvil", &[0, 1]),
            ("nothing here", &[]),
        ] {
            let found = book.index.rules.possible(&Scan::new(&book, text));
            assert_eq!(found, expected, "{text}");
        }
    }
}
