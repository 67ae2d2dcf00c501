//! No threshold that anybody could write, read, choose or relax lets the floor of the directives through.
//! When a text reaches the floor is decided where it is read.

use conclave_core::{Mode, Score, Threshold};
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
}
