//! Chance that falls the same way every time.
//!
//! **Invariant:** the same seed gives the same numbers for ever: trained weights and printed
//! intervals rest on them.

/// A row of numbers from a seed (xorshift).
#[derive(Clone, Debug)]
pub struct Chance(u64);

impl Chance {
    /// The row that begins with this seed, which is not zero.
    pub const fn seeded(seed: u64) -> Self {
        Self(seed)
    }

    /// A number below this one; zero where there is none.
    pub fn below(&mut self, count: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        usize::try_from(self.0 % (count.max(1) as u64)).unwrap_or(0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_numbers_never_change() {
        let mut chance = Chance::seeded(0x2545_f491_4f6c_dd1d);
        let numbers = [8usize, 7, 6, 5, 4, 3, 2].map(|count| chance.below(count));
        assert_eq!(numbers, [7, 4, 5, 4, 2, 2, 0]);
        assert_eq!(chance.below(0), 0);
    }
}
