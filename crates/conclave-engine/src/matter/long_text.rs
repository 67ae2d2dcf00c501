//! Long texts, read passage by passage: nothing of a text goes unread because much stands before it.

use conclave_detect::{Reading, Signal};

/// How much is read at once, in bytes.
const PASSAGE_BYTES_MAX: usize = 20_000;
/// How much of the passage before is read again, so that nothing hides in a cut.
const OVERLAP_BYTES: usize = 2_000;

/// Reads every passage; what is gravest in any of them is what the text comes to.
pub(crate) fn read_all(text: &str, read: impl Fn(&str) -> Reading) -> Reading {
    let (first, rest) = next(text);
    let mut whole = read(first);
    let mut rest = rest;
    while let Some(more) = rest {
        let (passage, after) = next(more);
        whole = graver(whole, read(passage));
        rest = after;
    }
    whole
}

/// One passage, and from where on the next is read.
fn next(text: &str) -> (&str, Option<&str>) {
    if text.len() <= PASSAGE_BYTES_MAX {
        return (text, None);
    }
    let end = text.floor_char_boundary(PASSAGE_BYTES_MAX);
    let again = text.floor_char_boundary(PASSAGE_BYTES_MAX - OVERLAP_BYTES);
    (&text[..end], Some(&text[again..]))
}

/// The graver of two readings in everything that guards look at. What another rule saw in the milder text
/// stands behind all that was seen in the graver one, because it was seen at other words.
pub(crate) fn graver(one: Reading, other: Reading) -> Reading {
    let harm_of = |reading: &Reading| {
        reading.harm.max(reading.as_reply.as_ref().map_or(reading.harm, |reply| reply.harm))
    };
    let (mut grave, mild) =
        if harm_of(&other) > harm_of(&one) { (other, one) } else { (one, other) };
    grave.harm = grave.harm.max(mild.harm);
    grave.harm_unamplified = grave.harm_unamplified.max(mild.harm_unamplified);
    grave.crisis = grave.crisis.max(mild.crisis);
    grave.injection = grave.injection.max(mild.injection);
    grave.floor |= mild.floor;
    for (category, score) in mild.categories {
        let known = grave.categories.entry(category).or_insert(score);
        *known = (*known).max(score);
    }
    let end = grave.signals.iter().map(|one| one.end).max().unwrap_or(0);
    let is_known = |one: &Signal| grave.signals.iter().any(|known| known.source == one.source);
    let others: Vec<_> = mild.signals.into_iter().filter(|one| !is_known(one)).collect();
    grave.signals.extend(others.into_iter().map(|one| Signal {
        start: one.start + end,
        end: one.end + end,
        ..one
    }));
    grave
}

#[cfg(test)]
mod tests {
    use super::*;
    use conclave_core::{Mode, Score};

    #[test]
    fn what_stands_late_in_a_long_text_counts_as_if_it_stood_first() {
        let long = "ä word ".repeat(20_000);
        for place in [0, 19_990, 50_001, long.len()] {
            let place = long.floor_char_boundary(place);
            let text = format!("{}MARK{}", &long[..place], &long[place..]);
            let read = |passage: &str| {
                assert!(passage.len() <= PASSAGE_BYTES_MAX);
                let marked = passage.contains("MARK");
                let score = if marked { Score::from_hundredths(80) } else { Score::ZERO };
                Reading {
                    harm: score,
                    injection: score,
                    floor: marked,
                    ..Reading::empty(Mode::Normal)
                }
            };
            let whole = read_all(&text, read);
            assert_eq!((whole.harm.hundredths(), whole.floor), (80, true), "{place}");
        }
    }
}
