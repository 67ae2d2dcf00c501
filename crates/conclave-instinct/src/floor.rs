//! When the directives themselves stop a text, whatever line is in force.
//!
//! **Invariant:** no threshold, mode, context, policy or learned number is an argument here, so
//! none can move the floor.
//!
//! **Invariant:** a score alone is not enough: a trained classifier may be wrong about an ordinary
//! text, so a pattern of a directive's category or a second, independent signal must stand beside
//! it.

use conclave_core::{FLOOR, Score};

/// How many independent signals stand in for a pattern of a directive's category.
pub const SIGNALS_MIN: usize = 2;

/// Whether the floor stops a text, by its harm before any amplification.
///
/// `has_directive_pattern` says that a pattern of a category the directives name was seen;
/// `independent_signals` counts those that come from different sources.
#[must_use]
pub fn floor_stops(
    harm_unamplified: Score,
    has_directive_pattern: bool,
    independent_signals: usize,
) -> bool {
    let supported = has_directive_pattern || independent_signals >= SIGNALS_MIN;
    supported && harm_unamplified.hundredths() >= FLOOR
}

#[cfg(test)]
mod tests {
    use super::*;
    use conclave_core::{Mode, Threshold};
    use proptest::prelude::*;
    use serde::Deserialize;
    use serde::de::value::{Error, U8Deserializer};

    /// A way for somebody to come by a threshold: by number, from a file, or from a mode; then
    /// relaxed by any number of contexts.
    fn expressible() -> impl Strategy<Value = Threshold> {
        let written = any::<u8>()
            .prop_filter_map("refused when written", |hundredths| Threshold::new(hundredths).ok());
        let parsed = any::<u8>().prop_filter_map("refused when read", |hundredths| {
            Threshold::deserialize(U8Deserializer::<Error>::new(hundredths)).ok()
        });
        let of_mode = (0..Mode::ALL.len()).prop_map(|i| Threshold::for_mode(Mode::ALL[i]));
        let relaxations = prop::collection::vec(any::<u8>(), 0..8);
        (prop_oneof![written, parsed, of_mode], relaxations)
            .prop_map(|(line, by)| by.into_iter().fold(line, Threshold::relaxed_by))
    }

    fn at_floor() -> impl Strategy<Value = Score> {
        (0.70f32..=1.0).prop_map(Score::new)
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 10_000, ..ProptestConfig::default() })]

        #[test]
        fn no_expressible_line_lets_the_floor_through(
            line in expressible(), harm in at_floor(), factor in 1.0f32..4.0,
        ) {
            let amplified = Score::new(harm.get() * factor);
            prop_assert!(line.blocks(harm), "{line:?} passes {harm:?}");
            prop_assert!(line.blocks(amplified), "{line:?} passes {amplified:?}");
        }

        #[test]
        fn a_supported_score_at_the_floor_is_stopped(
            harm in at_floor(), pattern: bool, signals in 0usize..10,
        ) {
            prop_assert_eq!(floor_stops(harm, pattern, signals), pattern || signals >= 2);
        }

        #[test]
        fn what_the_floor_stops_no_line_passes(
            line in expressible(), harm in 0.0f32..=1.0, pattern: bool, signals in 0usize..10,
        ) {
            let harm = Score::new(harm);
            prop_assert!(!floor_stops(harm, pattern, signals) || line.blocks(harm));
        }

        #[test]
        fn more_harm_or_more_support_never_frees_a_text(
            harm in 0.0f32..=1.0, more in 0.0f32..=1.0, pattern: bool, signals in 0usize..10,
            further in 0usize..10,
        ) {
            let (before, after) = (Score::new(harm), Score::new(harm + more));
            if floor_stops(before, pattern, signals) {
                prop_assert!(floor_stops(after, pattern, signals + further));
                prop_assert!(floor_stops(after, true, signals));
            }
        }
    }

    #[test]
    fn the_floor_begins_at_seventy_hundredths_with_support() {
        for (hundredths, pattern, signals, stops) in [
            (69, true, 9, false),
            (70, true, 0, true),
            (70, false, 0, false),
            (70, false, 1, false),
            (70, false, 2, true),
            (100, false, 1, false),
            (100, true, 1, true),
            (0, true, 2, false),
        ] {
            let stopped = floor_stops(Score::from_hundredths(hundredths), pattern, signals);
            assert_eq!(stopped, stops, "{hundredths} {pattern} {signals}");
        }
    }

    #[test]
    fn amplification_does_not_reach_the_floor() {
        let plain = Score::from_hundredths(50);
        let amplified = Score::new(plain.get() * 1.5);
        assert!(floor_stops(amplified, true, 2), "the amplified score would be enough");
        assert!(!floor_stops(plain, true, 2), "but the floor is given the plain one");
    }
}
