//! A set of words, each with a number, in three plain lists.
//!
//! **Invariant:** what is looked up may come from anybody, what is in the table never does: nobody who writes
//! a text can make a look-up slow.

/// How full the table may be, in eighths.
const FULL_EIGHTHS: usize = 6;

/// Words one after the other, and where to find them.
#[derive(Clone, Debug, Default)]
pub struct WordTable {
    letters: String,
    /// Where each word ends in the letters.
    ends: Vec<u32>,
    /// The number of a word and one more at the place of its hash, or at the next free one; zero is free.
    places: Vec<u32>,
}

impl WordTable {
    /// The number of a word.
    #[must_use]
    pub fn number(&self, word: &str) -> Option<usize> {
        let mask = self.places.len().checked_sub(1)?;
        let mut at = hash(word) & mask;
        loop {
            let number = (*self.places.get(at)? as usize).checked_sub(1)?;
            if self.word(number) == word {
                return Some(number);
            }
            at = (at + 1) & mask;
        }
    }

    /// The word of a number.
    #[must_use]
    pub fn word(&self, number: usize) -> &str {
        let end = self.ends.get(number).copied().unwrap_or_default() as usize;
        let start = number.checked_sub(1).and_then(|before| self.ends.get(before)).copied();
        self.letters.get(start.unwrap_or_default() as usize..end).unwrap_or_default()
    }

    /// Takes a word in, if it is new; its number.
    pub fn insert(&mut self, word: &str) -> usize {
        if let Some(number) = self.number(word) {
            return number;
        }
        let number = self.ends.len();
        self.letters.push_str(word);
        self.ends.push(u32::try_from(self.letters.len()).unwrap_or(u32::MAX));
        if (number + 1) * 8 > self.places.len() * FULL_EIGHTHS {
            self.places = vec![0; (self.places.len() * 2).max(64)];
            (0..=number).for_each(|number| self.place(number));
        } else {
            self.place(number);
        }
        number
    }

    /// Gives back the room that was kept for more words.
    pub fn settle(&mut self) {
        self.letters.shrink_to_fit();
        self.ends.shrink_to_fit();
    }

    fn place(&mut self, number: usize) {
        let mask = self.places.len() - 1;
        let mut at = hash(self.word(number)) & mask;
        while self.places[at] != 0 {
            at = (at + 1) & mask;
        }
        self.places[at] = u32::try_from(number + 1).unwrap_or(u32::MAX);
    }
}

fn hash(word: &str) -> usize {
    let (chunks, rest) = word.as_bytes().as_chunks::<8>();
    let mut last = [0; 8];
    last[..rest.len()].copy_from_slice(rest);
    let mix = |hash: u64, chunk: [u8; 8]| {
        (hash.rotate_left(5) ^ u64::from_le_bytes(chunk)).wrapping_mul(0x517c_c1b7_2722_0a95)
    };
    let hash = mix(chunks.iter().fold(0, |hash, chunk| mix(hash, *chunk)), last);
    // The high bits of a product depend on all of its factors, the low ones do not.
    usize::try_from(hash >> 32).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_keep_their_numbers_however_many_there_are() {
        let mut table = WordTable::default();
        assert_eq!(table.number("anything"), None);
        for n in 0..2_000 {
            assert_eq!(table.insert(&format!("word{n}")), n);
        }
        for n in 0..2_000 {
            let word = format!("word{n}");
            assert_eq!((table.insert(&word), table.word(n)), (n, word.as_str()));
        }
        table.settle();
        for absent in ["", "word", "word2000", "a much longer word than any other"] {
            assert_eq!(table.number(absent), None, "{absent}");
        }
        assert_eq!(table.insert(""), 2_000);
        assert_eq!(table.number(""), Some(2_000));
    }
}
