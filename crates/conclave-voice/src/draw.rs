//! Choices that look free and are not: a seed decides them all.

/// A stream of numbers that depends on nothing but its seed (SplitMix64).
#[derive(Clone, Debug)]
pub(crate) struct Draw(u64);

impl Draw {
    /// The stream of this seed.
    pub(crate) const fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// The next number.
    pub(crate) const fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        mixed ^ (mixed >> 31)
    }

    /// A number below `end`; 0 when there is none.
    pub(crate) fn below(&mut self, end: usize) -> usize {
        let Ok(end) = u64::try_from(end) else {
            return 0;
        };
        if end == 0 {
            return 0;
        }
        usize::try_from(self.next() % end).unwrap_or(0)
    }

    /// A number within `0.0..1.0`, in steps of a thousandth.
    pub(crate) fn unit(&mut self) -> f32 {
        let thousandths = u16::try_from(self.next() % 1000).unwrap_or(0);
        f32::from(thousandths) / 1000.0
    }
}

/// Mixes a text into a seed (FNV-1a), so that different texts draw differently.
pub(crate) fn mix(seed: u64, text: &str) -> u64 {
    text.bytes().fold(seed ^ 0xCBF2_9CE4_8422_2325, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01B3)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_seed_decides_everything() {
        let draws = |seed| {
            let mut draw = Draw::new(seed);
            (0..8).map(|_| draw.below(1000)).collect::<Vec<_>>()
        };
        assert_eq!(draws(7), draws(7));
        assert_ne!(draws(7), draws(8));
        assert_eq!(Draw::new(1).below(0), 0);
        assert!((0.0..1.0).contains(&Draw::new(3).unit()));
        assert_ne!(mix(1, "a"), mix(1, "b"));
    }
}
