//! Words written around a filter: k1ll, k i l l, k.i.l.l, kiiilll, klil, pictures between words.
//!
//! **Invariant:** a word is only replaced when the result is a known word, so that names, prices, code
//! and addresses stay what they are.

use super::Folded;
use super::chars::{is_emoji, is_unspaced};
use super::confusable::latin_lookalike;
use super::sound::{Heard, Sound};
use super::word_table::WordTable;

/// Longer pieces are not words.
const WORD_CHARS_MAX: usize = 48;
/// How many spellings of one disguised word are tried.
const SPELLINGS_MAX: usize = 64;
/// Letters that stand apart are joined in runs of at most this many.
const RUN_MAX: usize = 512;

/// A text with so many words of mixed scripts means to deceive.
const MIXED_MIN: u32 = 2;
/// Fewer pictures between words are decoration.
const PICTURES_MIN: usize = 3;
/// Shorter words are not searched for swapped letters: too many of them are words either way.
const SWAPPED_CHARS_MIN: usize = 5;
/// So many pieces tell how clearly a text is language.
const SAMPLE_PIECES: usize = 400;
/// A longer piece counts as so many letters.
const WORD_BYTES_COUNTED: u16 = 40;
/// So many words with digits for letters make a text of them.
const LEET_MIN: usize = 3;
/// By so much better must a turned text sound to be worth turning.
const TURNED_BETTER: f32 = 0.3;
/// What a letter outside known words costs when letters are cut into words; a word costs one.
const UNKNOWN_LETTER: u32 = 3;
/// Letters cut into words must mostly lie in known ones: one of so many may not.
const UNKNOWN_SHARE: usize = 3;
/// Longer pieces without a blank are not put together.
const UNSPACED_BYTES_MAX: usize = 8192;
/// So many words with letters drawn out make a text of them.
const DRAWN_MIN: usize = 2;
/// So many words at the beginning tell whether a text is turned around.
const SAMPLE_WORDS: usize = 24;

/// Everyday words and those of the patterns.
#[derive(Clone, Debug, Default)]
pub(crate) struct Vocabulary {
    words: WordTable,
    /// Words without repeated letters.
    squeezed: WordTable,
    /// The number of the word that each of those stands for.
    stands_for: Vec<u32>,
    /// How their letters sound.
    pub(crate) sound: Sound,
}

impl Vocabulary {
    /// Learns the words of one folded phrase.
    pub(crate) fn learn(&mut self, phrase: &str) {
        for word in phrase.split(|c: char| !c.is_ascii_alphabetic()) {
            if word.len() < 2 || self.knows(word) {
                continue;
            }
            let number = u32::try_from(self.words.insert(word)).unwrap_or(u32::MAX);
            self.sound.learn(word);
            let squeezed = self.squeezed.insert(&squeeze(word));
            match self.stands_for.get_mut(squeezed) {
                None => self.stands_for.push(number),
                Some(kept) if word.len() < self.words.word(*kept as usize).len() => *kept = number,
                Some(_) => {}
            }
        }
    }

    /// Must be called after the last word was learned.
    pub(crate) fn settle(&mut self) {
        self.words.settle();
        self.squeezed.settle();
        self.stands_for.shrink_to_fit();
        self.sound.settle();
    }

    /// Whether a text holds a word that is none until two neighbouring letters are swapped.
    /// Words of another language would turn into anything, so that most words must be known.
    pub(crate) fn sees_swapped(&self, text: &str) -> bool {
        let words =
            || text.split(|c: char| !c.is_ascii_alphabetic()).filter(|word| word.len() >= 2);
        let (mut known, mut all) = (0, 0);
        for word in words().take(SAMPLE_WORDS) {
            known += usize::from(self.knows(word));
            all += 1;
        }
        known * 2 > all
            && text.split([' ', '\n']).any(|piece| {
                let word = piece.trim_matches(|c: char| !c.is_ascii_alphabetic());
                self.unswapped(word).is_some()
            })
    }

    /// The known word that this becomes when two neighbouring inner letters are swapped.
    fn unswapped(&self, word: &str) -> Option<String> {
        let plain = word.len() >= SWAPPED_CHARS_MIN
            && word.len() <= WORD_CHARS_MAX
            && word.bytes().all(|byte| byte.is_ascii_lowercase());
        if !plain || self.knows(word) {
            return None;
        }
        let mut bytes = word.as_bytes().to_vec();
        for at in 1..bytes.len() - 1 {
            bytes.swap(at, at + 1);
            if let Ok(swapped) = std::str::from_utf8(&bytes)
                && self.knows(swapped)
            {
                return Some(swapped.to_owned());
            }
            bytes.swap(at, at + 1);
        }
        None
    }

    /// How clearly a text is language: the share of its letters that stand in words. There is no
    /// list of words of other scripts, so that their letters count as known unless each stands alone.
    pub(crate) fn clarity(&self, text: &str) -> f32 {
        let (mut known, mut all) = (0_u16, 0_u16);
        for piece in text.split(|c: char| !c.is_alphanumeric()).take(SAMPLE_PIECES) {
            let length = u16::try_from(piece.len()).unwrap_or(u16::MAX).min(WORD_BYTES_COUNTED);
            let is_known = if piece.is_ascii() {
                self.sounds_known(piece)
            } else {
                piece.chars().nth(1).is_some()
            };
            known = known.saturating_add(if is_known { length } else { 0 });
            all = all.saturating_add(length);
        }
        f32::from(known) / f32::from(all.max(1))
    }

    /// Whether the words at the beginning of a text are known in another form and unknown as they stand.
    /// `turn` writes the other form of a word after what it is given.
    pub(crate) fn is_turned(&self, text: &str, turn: impl Fn(&str, &mut String)) -> bool {
        let words = text.split(|c: char| !c.is_ascii_alphabetic()).filter(|word| word.len() >= 2);
        let (mut straight, mut turned) = (0, 0);
        let (mut as_written, mut as_turned) = (Heard::default(), Heard::default());
        let mut other = String::new();
        for word in words.take(SAMPLE_WORDS) {
            other.clear();
            turn(word, &mut other);
            straight += usize::from(self.knows(word));
            turned += usize::from(self.knows(&other));
            self.sound.hear(word, &mut as_written);
            self.sound.hear(&other, &mut as_turned);
        }
        let known = turned >= 2 && turned > straight * 2;
        known || as_turned.is_better(as_written, TURNED_BETTER)
    }

    /// Whether some pattern holds this word.
    pub(crate) fn knows(&self, word: &str) -> bool {
        self.words.number(word).is_some()
    }

    fn unsqueezed(&self, word: &str) -> Option<&str> {
        if word.len() < 3 {
            return None;
        }
        let squeezed = self.squeezed.number(squeeze(word).as_str())?;
        self.stands_for.get(squeezed).map(|number| self.words.word(*number as usize))
    }

    /// Cuts letters without spaces into known words and, where there are none, what lies between them.
    fn segment_loosely(&self, letters: &str) -> Option<String> {
        let n = letters.len();
        if !letters.is_ascii() || n > RUN_MAX {
            return None;
        }
        // best[i]: the least that the first i letters cost, where their last piece starts, whether known.
        let mut best: Vec<(u32, usize, bool)> = vec![(0, 0, true)];
        for end in 1..=n {
            let unknown = (best[end - 1].0 + UNKNOWN_LETTER, end - 1, false);
            let words = (end.saturating_sub(20)..end)
                .filter(|start| {
                    let word = &letters[*start..end];
                    matches!(word, "a" | "i") || self.knows(word)
                })
                .map(|start| (best[start].0 + 1, start, true));
            best.push(words.min().filter(|known| known.0 <= unknown.0).unwrap_or(unknown));
        }
        let mut pieces: Vec<(usize, usize, bool)> = Vec::new();
        let mut end = n;
        while end > 0 {
            let (_, start, known) = best[end];
            match pieces.last_mut() {
                Some((from, _, false)) if !known => *from = start,
                _ => pieces.push((start, end, known)),
            }
            end = start;
        }
        let unknown: usize =
            pieces.iter().filter(|piece| !piece.2).map(|(start, end, _)| end - start).sum();
        pieces.reverse();
        let words: Vec<&str> = pieces.iter().map(|&(start, end, _)| &letters[start..end]).collect();
        (unknown * UNKNOWN_SHARE <= n).then(|| words.join(" "))
    }

    /// Cuts letters without spaces into known words.
    fn segment(&self, letters: &str) -> Option<String> {
        let n = letters.len();
        if !letters.is_ascii() || n > RUN_MAX {
            return None;
        }
        // best[i]: the fewest words that make up the first i letters, and where the last one starts.
        let mut best: Vec<Option<(usize, usize)>> = vec![None; n + 1];
        best[0] = Some((0, 0));
        for end in 1..=n {
            for start in end.saturating_sub(20)..end {
                let Some((count, _)) = best[start] else {
                    continue;
                };
                let word = &letters[start..end];
                let known = matches!(word, "a" | "i") || self.knows(word);
                if known && best[end].is_none_or(|(fewest, _)| count + 1 < fewest) {
                    best[end] = Some((count + 1, start));
                }
            }
        }
        let mut words = Vec::new();
        let mut end = n;
        while end > 0 {
            let (_, start) = best[end]?;
            words.push(&letters[start..end]);
            end = start;
        }
        words.reverse();
        Some(words.join(" "))
    }
}

fn squeeze(word: &str) -> String {
    let mut out = String::with_capacity(word.len());
    for c in word.chars() {
        if !out.ends_with(c) {
            out.push(c);
        }
    }
    out
}

/// The text with disguised words written out; `None` when there are none. Swapped letters are put
/// right only where that was seen to make sense.
pub(crate) fn repair(folded: &Folded, vocabulary: &Vocabulary, swaps: bool) -> Option<Folded> {
    let mixed = folded.traces.mixed_words >= MIXED_MIN;
    let chunks = chunks(&folded.text);
    let digits = writes_digits_for_letters(&folded.text, &chunks, vocabulary);
    let drawn = chunks
        .iter()
        .filter(|chunk| undrawn(&folded.text[chunk.start..chunk.end]).is_some())
        .nth(DRAWN_MIN - 1)
        .is_some();
    let speller = Speller { vocabulary, mixed, swaps, digits, drawn };
    let mut out = folded.sibling();
    let mut changed = false;
    let drop_pictures = chunks.iter().filter(|chunk| chunk.picture).count() >= PICTURES_MIN;
    let mut at = 0;
    while at < chunks.len() {
        if drop_pictures && chunks[at].picture {
            at += 1;
            changed = true;
            continue;
        }
        let run = chunks[at..].iter().take_while(|chunk| chunk.single).take(RUN_MAX).count();
        if run >= 3 && join_singles(folded, &chunks[at..at + run], vocabulary, &mut out) {
            at += run;
            changed = true;
        } else {
            changed |= rewrite(folded, &chunks[at], speller, &mut out);
            at += 1;
        }
        if let Some(chunk) = chunks.get(at.wrapping_sub(1))
            && let Some(blank) = folded.text[chunk.end..].chars().next()
        {
            out.push(blank, folded.origin(chunk.end));
        }
    }
    changed.then_some(out)
}

/// Whether several words are known only once their digits are read as letters.
fn writes_digits_for_letters(text: &str, chunks: &[Chunk], vocabulary: &Vocabulary) -> bool {
    let disguised = |chunk: &&Chunk| {
        let piece = &text[chunk.start..chunk.end];
        piece.len() <= WORD_CHARS_MAX
            && piece.bytes().any(|byte| byte.is_ascii_digit())
            && letters_for_digits(piece)
                .is_some_and(|word| word.len() > 2 && vocabulary.knows(&word))
    };
    chunks.iter().filter(disguised).nth(LEET_MIN - 1).is_some()
}

/// The usual letter for each digit; `None` where one stands for none, or nothing else is there.
fn letters_for_digits(piece: &str) -> Option<String> {
    let core = piece.trim_matches(|c: char| !c.is_ascii_alphanumeric());
    let letter = |c: char| match c {
        '0' | '1' | '3' | '4' | '5' | '7' => stands_for(c).chars().next(),
        c => c.is_ascii_lowercase().then_some(c),
    };
    let word: Option<String> = core.chars().map(letter).collect();
    word.filter(|word| !word.is_empty())
}

/// A piece between blanks.
struct Chunk {
    start: usize,
    end: usize,
    /// Holds exactly one letter, or one and a shortened ending: `k`, `e's`, `n't`.
    single: bool,
    /// Holds nothing but pictures.
    picture: bool,
}

fn chunks(text: &str) -> Vec<Chunk> {
    let mut chunks = Vec::new();
    let mut start = 0;
    for piece in text.split([' ', '\n']) {
        let end = start + piece.len();
        let mut letters = piece.chars().filter(|c| c.is_alphanumeric()).take(2);
        let one = letters.next().is_some() && letters.next().is_none();
        let single = piece.len() <= 12 && (one || shortened(piece));
        let picture = !piece.is_empty() && piece.chars().all(is_emoji);
        chunks.push(Chunk { start, end, single, picture });
        start = end + 1;
    }
    chunks
}

/// Whether a piece is one letter and a shortened ending.
fn shortened(piece: &str) -> bool {
    piece.split_once('\'').is_some_and(|(letter, ending)| {
        let ending = ending.trim_end_matches(|c: char| !c.is_alphanumeric());
        letter.len() == 1 && matches!(ending, "s" | "t" | "m" | "d" | "re" | "ve" | "ll")
    })
}

/// One letter of a word written apart, where it stood, and what of the rest of its piece is kept.
type Apart<'a> = (char, u32, &'a str);

/// What follows a letter and belongs to its word or ends its sentence.
fn tail(rest: &str) -> &str {
    if rest.starts_with('\'') || rest.starts_with(['.', '!', '?']) { rest } else { "" }
}

/// Joins letters that stand apart; says whether they make up something.
fn join_singles(
    folded: &Folded,
    chunks: &[Chunk],
    vocabulary: &Vocabulary,
    out: &mut Folded,
) -> bool {
    let letters: Vec<Apart<'_>> = chunks
        .iter()
        .filter_map(|chunk| {
            let piece = &folded.text[chunk.start..chunk.end];
            let (byte, c) = piece.char_indices().find(|(_, c)| c.is_alphanumeric())?;
            let rest = tail(&piece[byte + c.len_utf8()..]);
            Some((c, folded.origin(chunk.start + byte), rest))
        })
        .collect();
    if letters.iter().all(|&(c, ..)| is_unspaced(c)) {
        letters.iter().for_each(|&(c, origin, _)| out.push(c, origin));
        return true;
    }
    if let Some(words) = wider_apart(&letters) {
        words.into_iter().for_each(|(c, origin)| out.push(c, origin));
        return true;
    }
    let joined: String = letters.iter().map(|&(c, ..)| c).collect();
    let loosely = || vocabulary.segment_loosely(&joined);
    let cut = spellings(&joined).iter().find_map(|word| vocabulary.segment(word)).or_else(loosely);
    let Some(words) = cut else {
        return false;
    };
    if words.split(' ').all(|word| word.len() < 3) {
        return false;
    }
    let mut origins = letters.iter().map(|&(_, origin, _)| origin);
    let mut origin = 0;
    for c in words.chars() {
        if c != ' ' {
            origin = origins.next().unwrap_or(origin);
        }
        out.push(c, origin);
    }
    let ending = letters.last().map_or("", |&(.., rest)| rest);
    ending.chars().for_each(|c| out.push(c, origin));
    true
}

/// Letters whose words stand wider apart than the letters themselves, written as words.
fn wider_apart(letters: &[Apart<'_>]) -> Option<Vec<(char, u32)>> {
    let gaps = || letters.windows(2).map(|pair| pair[1].1.saturating_sub(pair[0].1));
    let narrow = gaps().min()?;
    let words = gaps().filter(|gap| *gap > narrow).count() + 1;
    if words < 2 || letters.len() < words * 2 {
        return None;
    }
    let mut out = Vec::with_capacity(letters.len() + words);
    for (at, &(c, origin, rest)) in letters.iter().enumerate() {
        if at > 0 && origin.saturating_sub(letters[at - 1].1) > narrow {
            out.push((' ', origin));
        }
        out.push((c, origin));
        out.extend(rest.chars().map(|c| (c, origin)));
    }
    Some(out)
}

/// Writes one piece, in plain spelling where it is a known word in disguise.
fn rewrite(folded: &Folded, chunk: &Chunk, speller: Speller<'_>, out: &mut Folded) -> bool {
    let piece = &folded.text[chunk.start..chunk.end];
    let outside = |c: char| !c.is_alphanumeric() && stands_for(c).is_empty();
    let lead = piece.len() - piece.trim_start_matches(|c| outside(c) || c == '*').len();
    let core = piece[lead..].trim_end_matches(|c| outside(c) || matches!(c, '!' | ')' | '*'));
    match speller.plain_spelling(core) {
        Some(word) => {
            let origin = folded.origin(chunk.start + lead);
            copy(folded, chunk.start, chunk.start + lead, out);
            word.chars().for_each(|c| out.push(c, origin));
            copy(folded, chunk.start + lead + core.len(), chunk.end, out);
            true
        }
        None => {
            copy(folded, chunk.start, chunk.end, out);
            false
        }
    }
}

fn copy(folded: &Folded, start: usize, end: usize, out: &mut Folded) {
    for (byte, c) in folded.text[start..end].char_indices() {
        out.push(c, folded.origin(start + byte));
    }
}

/// Knows words, and what kinds of disguise this text uses.
#[derive(Clone, Copy)]
struct Speller<'a> {
    vocabulary: &'a Vocabulary,
    /// Scripts are mixed within words: short words of look-alikes alone are read as well.
    mixed: bool,
    /// Swapped letters are put right.
    swaps: bool,
    /// Digits stand for letters in all of the text: unknown words and words of digits alone as well.
    digits: bool,
    /// Letters are drawn out in several words: in unknown ones as well.
    drawn: bool,
}

impl Speller<'_> {
    /// What a piece says in plain spelling, if it is a disguise of a known word.
    fn plain_spelling(self, piece: &str) -> Option<String> {
        let Self { vocabulary, mixed, swaps, digits, drawn } = self;
        let by_digits = || {
            let has_digit = piece.bytes().any(|byte| byte.is_ascii_digit());
            (digits && has_digit).then(|| letters_for_digits(piece)).flatten()
        };
        if piece.len() == 1 {
            return by_digits();
        }
        if piece.chars().any(is_unspaced) && piece.len() <= UNSPACED_BYTES_MAX {
            return unspaced_spelling(piece);
        }
        if piece.is_empty() || piece.chars().count() > WORD_CHARS_MAX || piece.contains("://") {
            return None;
        }
        if piece.bytes().all(|b| b.is_ascii_lowercase()) {
            let unswapped = || vocabulary.unswapped(piece).filter(|_| swaps);
            let shorter = || undrawn(piece).filter(|_| drawn);
            return squeezed_spelling(piece, vocabulary).or_else(unswapped).or_else(shorter);
        }
        if drawn && let Some(shorter) = undrawn(piece) {
            return Some(shorter);
        }
        if !piece.chars().any(char::is_alphabetic) {
            return by_digits();
        }
        if let Some(word) = lookalike_spelling(piece, mixed) {
            let said = vocabulary.knows(&word) || (mixed && matches!(word.as_str(), "a" | "i"));
            return said.then_some(word);
        }
        let mut words = spellings(piece);
        words.push(piece.chars().filter(char::is_ascii_alphabetic).collect());
        words.iter().find_map(|word| known(word, vocabulary)).or_else(by_digits)
    }
}

fn known(word: &str, vocabulary: &Vocabulary) -> Option<String> {
    if word.len() >= 2 && vocabulary.knows(word) {
        return Some(word.to_owned());
    }
    if word.len() < 4 {
        return None;
    }
    squeezed_spelling(word, vocabulary)
        .or_else(|| vocabulary.segment(word).filter(|words| longest(words) >= 4))
}

fn longest(words: &str) -> usize {
    words.split(' ').map(str::len).max().unwrap_or(0)
}

fn squeezed_spelling(word: &str, vocabulary: &Vocabulary) -> Option<String> {
    let long_run = word.as_bytes().windows(3).any(|w| w[0] == w[1] && w[1] == w[2]);
    if !long_run || vocabulary.knows(word) {
        return None;
    }
    vocabulary.unsqueezed(word).map(str::to_owned)
}

/// The piece with one letter where three or more of the same stood, if there are any.
fn undrawn(piece: &str) -> Option<String> {
    let mut out = String::new();
    let mut run = (None, 0);
    let mut longest = 0;
    for c in piece.chars() {
        run = if run.0 == Some(c) { (run.0, run.1 + 1) } else { (Some(c), 1) };
        longest = longest.max(if c.is_alphabetic() { run.1 } else { 0 });
        if run.1 == 3 {
            out.truncate(out.len() - c.len_utf8());
        }
        if run.1 < 3 || !c.is_alphabetic() {
            out.push(c);
        }
    }
    (longest >= 3).then_some(out)
}

/// Japanese and the like with signs between the characters.
fn unspaced_spelling(piece: &str) -> Option<String> {
    let marks = |c: &char| {
        matches!(c, '.' | '*' | '・' | '/' | '|' | '~' | '+' | '·' | '•') || is_emoji(*c)
    };
    let cut = piece.chars().filter(marks).count();
    let rest: String = piece.chars().filter(|c| !marks(c)).collect();
    (cut >= 2 && rest.chars().count() <= cut * 2 + 2).then_some(rest)
}

/// A word made of nothing but look-alikes.
fn lookalike_spelling(piece: &str, mixed: bool) -> Option<String> {
    let short = !mixed && piece.chars().count() < 4;
    if short || piece.chars().any(|c| c.is_ascii_alphabetic()) {
        return None;
    }
    piece.chars().map(latin_lookalike).collect()
}

/// The letters that a sign or digit may stand for.
fn stands_for(c: char) -> &'static str {
    match c {
        '0' => "o",
        '1' | '!' | '|' | '¡' => "il",
        '3' | '€' => "e",
        '4' | '@' | '^' => "a",
        '5' | '$' | '§' => "s",
        '6' => "gb",
        '7' | '+' => "t",
        '8' => "b",
        '9' => "g",
        '(' | '<' => "c",
        '£' => "l",
        '#' => "h",
        '*' => "aeiou",
        _ => "",
    }
}

/// Every way to read signs and digits as letters, within reason.
fn spellings(piece: &str) -> Vec<String> {
    let mut all = vec![String::new()];
    for c in piece.chars() {
        let options = stands_for(c);
        if c.is_ascii_alphabetic() || options.is_empty() {
            if c.is_alphanumeric() {
                all.iter_mut().for_each(|word| word.push(c));
            }
        } else if options.len() * all.len() <= SPELLINGS_MAX {
            all = all
                .iter()
                .flat_map(|word| options.chars().map(move |letter| format!("{word}{letter}")))
                .collect();
        } else {
            all.iter_mut().for_each(|word| word.extend(options.chars().take(1)));
        }
    }
    all
}

#[cfg(test)]
mod tests {
    use super::super::fold;
    use super::*;

    fn vocabulary() -> Vocabulary {
        let mut vocabulary = Vocabulary::default();
        for phrase in ["how to make a bomb", "kill him", "suicide", "pizza", "explosives"] {
            vocabulary.learn(phrase);
        }
        vocabulary
    }

    #[test]
    fn disguised_words_are_written_out() {
        let vocabulary = vocabulary();
        for (given, plain) in [
            ("k1ll him", "kill him"),
            ("k i l l him", "kill him"),
            ("k.i.l.l him!", "kill him!"),
            ("k-i-l-l h-i-m", "kill him"),
            ("please k*ll him", "please kill him"),
            ("kiiillll him", "kill him"),
            ("h0w t0 m4ke a b0mb", "how to make a bomb"),
            ("h o w t o m a k e a b o m b", "how to make a bomb"),
            ("k i l l   h i m.   h o w's   h e?", "kill him. how's he?"),
            ("su!c1de", "suicide"),
            ("h0w 70 m4k3 4 b0mb f45t", "how to make a bomb fast"),
            ("k😀i😀l😀l him", "kill him"),
            ("ex.plo.sives", "explosives"),
            ("how 🔥 to 🌸 make 🔥 a 🔥 bomb", "how to make a bomb"),
            ("死.に.た.い", "死にたい"),
            ("死 に た い", "死にたい"),
        ] {
            let folded = fold(given);
            let pictures = given.contains('🔥');
            assert!(folded.traces.repairable || pictures, "{given}");
            assert_eq!(repair(&folded, &vocabulary, true).unwrap().text, plain, "{given}");
        }
    }

    #[test]
    fn swapped_letters_and_turned_words_are_seen() {
        let vocabulary = vocabulary();
        assert!(vocabulary.sees_swapped("how to make epxlosives"));
        assert!(!vocabulary.sees_swapped("how to make explosives, borris"));
        assert!(!vocabulary.sees_swapped("ingen vil lage epxlosives her"));
        let repaired = repair(&fold("the epxlosives!"), &vocabulary, true).unwrap();
        assert_eq!(repaired.text, "the explosives!");
        let backwards = |word: &str, out: &mut String| out.extend(word.chars().rev());
        assert!(vocabulary.is_turned("bmob a ekam ot woh", backwards));
        assert!(!vocabulary.is_turned("how to make a bomb", backwards));
    }

    #[test]
    fn ordinary_writing_is_left_alone() {
        let vocabulary = vocabulary();
        for text in [
            "version 2.0.1 of covid19 at 3pm",
            "see https://example.com/b0mb?q=1",
            "a b c d e",
            "sooo good!!!",
            "mail me@example.org, e.g. today",
            "x = a[i] + b[j]",
            "Москва и Путин",
        ] {
            assert!(repair(&fold(text), &vocabulary, true).is_none(), "{text}");
        }
    }

    #[test]
    fn repaired_words_point_back() {
        let folded = repair(&fold("please k i l l him"), &vocabulary(), false).unwrap();
        let at = folded.text.find("kill").unwrap();
        assert_eq!(folded.span(at, at + 4), (7, 14));
    }
}
