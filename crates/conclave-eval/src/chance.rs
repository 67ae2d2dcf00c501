//! Chance that is the same every time.

/// A small generator (`SplitMix64`): good enough to draw samples, no secret.
#[derive(Clone, Debug)]
pub struct Chance(u64);

impl Chance {
    /// A generator that begins at a seed.
    #[must_use]
    pub const fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// A generator that begins at a name, such as a row's id.
    #[must_use]
    pub fn named(name: &str) -> Self {
        Self(hash(name))
    }

    /// The next 64 bits.
    pub const fn draw(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        mixed(self.0)
    }

    /// A number below a limit; 0 when the limit is 0.
    pub fn below(&mut self, limit: usize) -> usize {
        let wide = u128::from(self.draw()) * limit as u128;
        usize::try_from(wide >> 64).unwrap_or_default()
    }
}

/// A name as 64 well mixed bits (FNV-1a, mixed once more).
#[must_use]
pub fn hash(name: &str) -> u64 {
    let step = |hash: u64, byte: u8| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
    mixed(name.bytes().fold(0xcbf2_9ce4_8422_2325, step))
}

const fn mixed(bits: u64) -> u64 {
    let bits = (bits ^ (bits >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let bits = (bits ^ (bits >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    bits ^ (bits >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_generator_is_the_published_one() {
        let mut chance = Chance::new(1_234_567);
        assert_eq!(chance.draw(), 6_457_827_717_110_365_317);
        assert_eq!(chance.draw(), 3_203_168_211_198_807_973);
    }

    #[test]
    fn draws_stay_below_their_limit_and_reach_all_of_it() {
        let mut chance = Chance::named("a row");
        let mut seen = [0_u32; 5];
        for _ in 0..1_000 {
            seen[chance.below(5)] += 1;
        }
        assert!(seen.iter().all(|times| (150..250).contains(times)), "{seen:?}");
        assert_eq!(chance.below(0), 0);
        assert_ne!(hash("a"), hash("b"));
    }
}
