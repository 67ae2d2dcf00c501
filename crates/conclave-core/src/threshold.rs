//! The line from which a harm score blocks, and the floor under it.

use crate::{Mode, Score};
use serde::{Deserialize, Serialize};
use std::fmt;

/// A harm score of at least this many hundredths never passes, whatever the configuration.
pub const FLOOR: u8 = 70;

/// From which harm score a text is blocked, in hundredths.
///
/// **Invariant:** never above [`FLOOR`]: the type cannot express a laxer line, so no policy, mode,
/// context or learned parameter can.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(transparent)]
pub struct Threshold(u8);

/// Somebody asked for a threshold that would let through what the floor stops.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BelowFloor {
    /// The threshold asked for, in hundredths.
    pub asked: u8,
}

impl fmt::Display for BelowFloor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "a threshold of 0.{:02} would pass what the directives' floor of 0.{FLOOR} stops",
            self.asked
        )
    }
}

impl std::error::Error for BelowFloor {}

impl Threshold {
    /// Takes hundredths; refuses anything laxer than the floor.
    ///
    /// # Errors
    /// When `hundredths` is above [`FLOOR`].
    pub const fn new(hundredths: u8) -> Result<Self, BelowFloor> {
        if hundredths <= FLOOR {
            Ok(Self(hundredths))
        } else {
            Err(BelowFloor { asked: hundredths })
        }
    }

    /// The default of a mode.
    #[must_use]
    pub const fn for_mode(mode: Mode) -> Self {
        Self(match mode {
            Mode::Normal => 30,
            Mode::Technical => 40,
            Mode::ChildSafe => 13,
            Mode::Creative => 35,
            Mode::Debug => 50,
        })
    }

    /// Relaxed by a harmless context, by at most 0.10 and never past the floor.
    #[must_use]
    pub fn relaxed_by(self, hundredths: u8) -> Self {
        Self((self.0 + hundredths.min(10)).min(FLOOR))
    }

    /// Whether a harm score is stopped by this line.
    #[must_use]
    pub fn blocks(self, harm: Score) -> bool {
        harm.hundredths() >= self.0
    }

    /// Hundredths.
    #[must_use]
    pub const fn hundredths(self) -> u8 {
        self.0
    }
}

impl<'de> Deserialize<'de> for Threshold {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Self::new(u8::deserialize(deserializer)?).map_err(serde::de::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn nothing_expresses_a_line_above_the_floor(hundredths in 0u8..=255, relax in 0u8..=255) {
            if let Ok(threshold) = Threshold::new(hundredths) {
                prop_assert!(threshold.relaxed_by(relax).blocks(Score::from_hundredths(FLOOR)));
            } else {
                prop_assert!(hundredths > FLOOR);
            }
        }
    }

    #[test]
    fn every_mode_blocks_at_its_own_line() {
        for (mode, line) in [
            (Mode::Normal, 30),
            (Mode::Technical, 40),
            (Mode::ChildSafe, 13),
            (Mode::Creative, 35),
            (Mode::Debug, 50),
        ] {
            let threshold = Threshold::for_mode(mode);
            assert!(threshold.blocks(Score::from_hundredths(line)));
            assert!(!threshold.blocks(Score::from_hundredths(line - 1)));
        }
    }
}
