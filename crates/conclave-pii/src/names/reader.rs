//! Owns the reading of words in Latin script: which of them are a name, by the lists and by what
//! stands around them.
//!
//! **Invariant:** only the words up to the next cut of the text are read, so that what comes later
//! changes nothing.

use super::cues::{Cues, Strength, is_particle};
use super::figures::Figures;
use super::known::KnownNames;
use super::mentions::KNOWN_CONFIDENCE;
use super::words::{Case, Gap, Word};
use crate::finder::Place;
use crate::kind::Kind;

/// The most words of one name after its first.
const MORE_WORDS_MAX: usize = 3;

/// The words of a text up to a cut, and what tells names among them.
pub(super) struct Reader<'w> {
    pub(super) text: &'w str,
    pub(super) words: &'w [Word],
    pub(super) cues: &'w Cues,
    pub(super) figures: &'w Figures,
    pub(super) known: &'w KnownNames,
    pub(super) cased: bool,
    /// Whether enough words are English ones. Without capitals a first name on the list is as often
    /// an ordinary word of another language.
    pub(super) is_english: bool,
}

impl Reader<'_> {
    /// Adds the names from a word on.
    pub(super) fn find_from(&self, from: usize, places: &mut Vec<Place>) {
        let mut at = from;
        while at < self.words.len() {
            let known = self.known_length(at);
            let named = self.name_at(at);
            let is_looked_up = named.is_some() || self.words[at].is_capital();
            let spared = if known == 0 && is_looked_up { self.spared_length(at) } else { 0 };
            let (length, confidence) = match named {
                Some((length, sure)) if length > known => {
                    (length, if known > 0 { KNOWN_CONFIDENCE } else { sure })
                }
                _ => (known, KNOWN_CONFIDENCE),
            };
            if length == 0 || spared >= length {
                at += spared.max(1);
                continue;
            }
            let (start, end) = (self.words[at].start, self.words[at + length - 1].end);
            places.push(Place { kind: Kind::PersonName, start, end, confidence });
            at += length;
        }
    }

    /// How many words from here on are a name that is spared: of somebody everybody may be asked
    /// about, or of an assistant.
    fn spared_length(&self, at: usize) -> usize {
        let known = self.figures.length_at(&self.words[at..]);
        if self.is_program_or_verse(at) {
            return known.max(1);
        }
        let is_own = known > 0
            && match self.cues.before(self.words, at) {
                Some(Strength::Sure) => true,
                Some(Strength::Capital) => !Cues::follows_fame(self.words, at),
                _ => false,
            };
        if is_own { 0 } else { known }
    }

    fn is_program_or_verse(&self, at: usize) -> bool {
        is_verse(&self.text[self.words[at].end..]) || Cues::is_assistant(self.words, at)
    }

    pub(super) fn word(&self, at: usize) -> Option<&Word> {
        self.words.get(at)
    }

    /// The name that starts at a word: how many words it has, and how sure it is.
    fn name_at(&self, at: usize) -> Option<(usize, f32)> {
        self.after_title(at)
            .or_else(|| self.after_cue(at))
            .or_else(|| self.full_name(at))
            .or_else(|| self.lone_first(at))
            .or_else(|| self.lone_surname(at))
            .or_else(|| self.addressed(at))
            .or_else(|| self.shown(at))
    }

    /// `Dr. Okafor`, `Mrs Anna Berg`.
    fn after_title(&self, at: usize) -> Option<(usize, f32)> {
        let before = self.word(at.checked_sub(1)?)?;
        let word = self.word(at)?;
        let titled = Cues::is_title(before) && word.gap == Gap::Space;
        (titled && self.may_name(word) && word.key.len() > 1).then(|| (1 + self.more(at), 0.85))
    }

    /// After `my name is`, `signed`, `dear` and the like.
    fn after_cue(&self, at: usize) -> Option<(usize, f32)> {
        let word = self.word(at)?;
        let strength = self.strength(at)?;
        let fits = match strength {
            Strength::Sure => {
                self.may_name(word) || (!word.marks.ordinary && !self.cased_lower(word))
            }
            Strength::Capital => {
                self.is_known(word)
                    || self.is_unknown_capital(word)
                    || self.is_capital_particle(at)
                    || (word.is_sure_first() && Cues::is_own_name(self.words, at))
            }
            Strength::Known => self.is_listed(word) && !self.is_firm_before(at),
            Strength::Listed => {
                word.is_sure_first() && self.is_listed(word) && !self.is_firm_before(at)
            }
        };
        let sure = strength > Strength::Known && self.is_known(word);
        (fits && word.key.len() > 1 && !self.leads_to_thing(at))
            .then(|| (1 + self.more(at), if sure { 0.85 } else { 0.65 }))
    }

    fn strength(&self, at: usize) -> Option<Strength> {
        let asked = Cues::answers_name(self.words, at) || Cues::follows_former(self.words, at);
        let labelled = Cues::is_labelled(self.words, at) && self.more(at) > 0;
        (asked || labelled)
            .then_some(Strength::Capital)
            .or_else(|| self.cues.before(self.words, at))
    }

    /// A name by the lists, written as one.
    fn is_listed(&self, word: &Word) -> bool {
        let written = if self.cased {
            word.case == Case::Title || word.key.len() > 4
        } else {
            word.key.len() > 2 && self.is_english
        };
        let surname = self.cased && word.marks.last && !word.marks.ordinary;
        written
            && self.looks_capital(word)
            && (word.is_sure_first() || self.is_plain_first(word) || surname)
    }

    /// A first name that may be a word, where a capital shows that it is none.
    fn is_plain_first(&self, word: &Word) -> bool {
        self.cased && word.marks.first && !word.marks.ordinary && word.case == Case::Title
    }

    fn is_known(&self, word: &Word) -> bool {
        self.is_listed(word)
            || (word.marks.first
                && self.cased
                && word.case == Case::Title
                && word.gap != Gap::Start)
            || (self.cased && word.is_capital() && word.is_surname())
    }

    /// `Du Cane`, `Van Dyk`: a short first word, but with a capital after it.
    fn is_capital_particle(&self, at: usize) -> bool {
        self.cased
            && self.words[at].is_capital()
            && is_particle(&self.words[at])
            && self.more(at) > 0
    }

    fn cased_lower(&self, word: &Word) -> bool {
        self.cased && word.case == Case::Lower && !word.is_sure_first()
    }

    pub(super) fn looks_capital(&self, word: &Word) -> bool {
        !self.cased || word.is_capital()
    }

    /// A word that could be a name where something else says that one stands here.
    fn may_name(&self, word: &Word) -> bool {
        let named = word.marks.last || word.marks.first;
        self.looks_capital(word)
            && (!word.marks.ordinary || named && self.cased && word.case == Case::Title)
    }

    /// A capitalised word that no list knows as something else. Short capitals are abbreviations.
    fn is_unknown_capital(&self, word: &Word) -> bool {
        self.cased && word.case == Case::Title && !word.marks.ordinary && word.key.len() > 2
    }

    /// First name and surname, in the usual order.
    fn full_name(&self, at: usize) -> Option<(usize, f32)> {
        let word = self.word(at)?;
        let is_foreign = !self.cased && !self.is_english;
        if is_foreign || (!word.marks.first && !self.is_unknown_capital(word)) {
            return None;
        }
        let more = self.more(at);
        let last = self.word(at + more)?;
        if more == 0
            || !self.looks_capital(word)
            || self.is_thing_after(at + more)
            || self.is_firm_before(at)
        {
            return None;
        }
        let sure = word.is_sure_first() && (last.length() > 1 || word.length() > 2);
        let surname = last.is_surname() || (last.marks.last && word.marks.first);
        let confidence = match (sure, word.marks.first, surname) {
            (true, _, true) => 0.9,
            (true, _, false) if self.cased => 0.75,
            (false, true, true) if self.cased => 0.75,
            (false, false, true) if self.cased && word.gap != Gap::Start && more == 1 => 0.6,
            (false, false, true) if self.cased && last.has_surname_ending() => 0.6,
            (false, true, false) if self.is_plain_first(word) && self.is_unknown_capital(last) => {
                0.55
            }
            _ => return None,
        };
        Some((1 + more, confidence))
    }

    /// How many words after the first belong to the name.
    fn more(&self, at: usize) -> usize {
        let mut count = 0;
        while count < MORE_WORDS_MAX
            && self.word(at + count + 1).is_some_and(|next| self.joins(next))
        {
            count += 1;
        }
        let link = |word: &Word| word.is_initial() || is_particle(word);
        while count > 0 && self.word(at + count).is_some_and(link) {
            count -= 1;
        }
        count
    }

    fn joins(&self, word: &Word) -> bool {
        let name = word.marks.last || word.marks.first || word.is_surname();
        let part = if self.cased {
            word.is_initial()
                || (word.is_capital() && (!word.marks.ordinary || word.marks.last))
                || is_particle(word)
        } else {
            (name && !word.marks.ordinary) || word.key.len() == 1 && word.case != Case::Lower
        };
        // `GB82` is the beginning of a number, and no part of the name before it.
        let is_tied = self.text[word.end..].starts_with(|sign: char| sign.is_ascii_digit());
        word.gap == Gap::Space && part && !is_tied && !Cues::is_thing(word)
    }

    /// A first name alone.
    fn lone_first(&self, at: usize) -> Option<(usize, f32)> {
        let word = self.word(at)?;
        let written = if self.cased {
            word.case == Case::Title
        } else {
            word.case != Case::Title && self.is_english
        };
        let usable = word.is_sure_first() && word.key.len() >= 3 && written;
        if !usable || !self.is_apart(at) {
            return None;
        }
        let person = || word.key.len() > 3 || self.cues.speaks_of_person(self.words, at);
        (self.cased || person()).then_some((1, if self.cased { 0.6 } else { 0.5 }))
    }

    /// A capitalised word that is spoken to or speaks, and a first name that is a word too but
    /// acts.
    fn addressed(&self, at: usize) -> Option<(usize, f32)> {
        let word = self.word(at)?;
        if word.key.ends_with("ly") && !word.marks.first {
            return None;
        }
        let uncased = !self.cased
            && self.is_english
            && !word.marks.ordinary
            && word.key.len() > 1
            && !Cues::is_spoken_of_as_thing(self.words, at);
        let unknown =
            (self.is_unknown_capital(word) || uncased) && Cues::is_addressed(self.words, at);
        let name = self.cased && word.marks.first && word.case == Case::Title && word.key.len() > 2;
        let acts = name
            && Cues::acts(self.words, at)
            && !word.marks.ordinary
            && !(word.marks.ambiguous && Cues::is_listed_with_thing(self.words, at));
        ((unknown || acts) && !self.is_thing_after(at) && !self.is_in_capital_run(at))
            .then_some((1, 0.55))
    }

    /// A surname alone, where the words around it treat it as a person.
    fn lone_surname(&self, at: usize) -> Option<(usize, f32)> {
        let word = self.word(at)?;
        let usable =
            self.cased && word.case == Case::Title && word.is_surname() && word.key.len() > 3;
        let person = self.cues.speaks_of_person(self.words, at) || self.is_object(at);
        (usable && person && self.is_apart(at)).then_some((1, 0.55))
    }

    /// A listed surname inside a sentence, where no preposition makes it a place.
    fn is_object(&self, at: usize) -> bool {
        let word = &self.words[at];
        let before = at.checked_sub(1).and_then(|at| self.word(at));
        let plain = |before: &Word| before.case == Case::Lower && !is_place_preposition(before);
        word.marks.last
            && !word.marks.ambiguous
            && word.gap == Gap::Space
            && before.is_some_and(plain)
    }

    /// Whether nothing makes a lone name part of a thing, a firm or a place.
    fn is_apart(&self, at: usize) -> bool {
        let firm = self.is_firm_before(at) || Cues::article_before(self.words, at);
        !firm && !self.is_thing_after(at) && !self.is_in_capital_run(at)
    }

    /// Words that no list knows, but a middle initial, a degree, an apposition or a pronoun shows
    /// a person.
    fn shown(&self, at: usize) -> Option<(usize, f32)> {
        let word = self.word(at)?;
        let more = self.more(at);
        if !self.is_unknown_capital(word)
            || self.is_firm_before(at)
            || self.is_in_capital_run(at)
            || self.leads_to_thing(at)
        {
            return None;
        }
        let initial = more >= 2 && self.words[at + 1..at + more].iter().all(Word::is_initial);
        let opener = word.gap == Gap::Start && looks_like_opener(word);
        let bare = opener || Cues::article_before(self.words, at);
        let shown = more <= 2
            && !(bare && more == 0)
            && Cues::shows_person(self.words, at, 1 + more, self.text);
        let by_author = more == 1 && Cues::is_author_before(self.words, at);
        let joined = more == 0 && !Cues::is_thing(word) && self.is_joined_to_name(at);
        (initial || shown || by_author || joined).then_some((1 + more, 0.55))
    }

    /// `Berg and Anna`, `Anna and Berg`: a name beside a name.
    fn is_joined_to_name(&self, at: usize) -> bool {
        let sure = |at: usize| {
            self.word(at).is_some_and(|word| {
                word.is_capital()
                    && (word.is_sure_first() || word.is_surname())
                    && word.gap == Gap::Space
            })
        };
        let link = |at: usize| {
            self.word(at)
                .is_some_and(|word| matches!(word.key.as_str(), "and" | "or" | "y" | "und" | "et"))
        };
        let ahead = link(at + 1) && sure(at + 2) && !self.is_thing_after(at + 2);
        let behind = at >= 2
            && link(at - 1)
            && self.words[at - 2].is_capital()
            && (self.words[at - 2].is_sure_first() || self.words[at - 2].is_surname());
        ahead || behind
    }

    fn leads_to_thing(&self, at: usize) -> bool {
        self.is_thing_after(at + self.more(at))
    }

    /// Whether the next word makes the words before it a firm, a place or a thing, also across a
    /// list: `Berg, Lind and Sons`.
    fn is_thing_after(&self, at: usize) -> bool {
        let capital = |word: &Word| self.cased && word.is_capital();
        for next in self.words.iter().skip(at + 1).take(MORE_WORDS_MAX + 2) {
            if next.gap == Gap::Space
                && Cues::is_thing(next)
                && (capital(next) || !self.cased && next.key.len() > 3)
            {
                return true;
            }
            let goes_on =
                next.key == "and" || (next.gap == Gap::Comma && capital(next)) || capital(next);
            if !goes_on || !matches!(next.gap, Gap::Space | Gap::Comma) {
                return false;
            }
        }
        false
    }

    /// `I work for`, `the ... of`: what follows is a firm or a place.
    fn is_firm_before(&self, at: usize) -> bool {
        self.cues.firm_before(self.words, at)
    }

    /// Whether unknown capitals stand directly before: part of a longer title or firm.
    fn is_in_capital_run(&self, at: usize) -> bool {
        let word = &self.words[at];
        let before = at.checked_sub(1).and_then(|at| self.word(at));
        word.gap == Gap::Space
            && before.is_some_and(|before| {
                before.is_capital()
                    && self.cased
                    && before.gap != Gap::Start
                    && !Cues::is_title(before)
                    && before.key != "i"
            })
    }
}

/// `John 3:16`: what stands after a book of the Bible.
fn is_verse(after: &str) -> bool {
    let Some(rest) = after.strip_prefix(' ') else { return false };
    let after = rest.trim_start_matches(|sign: char| sign.is_ascii_digit());
    let digits = rest.len() - after.len();
    let Some(verse) = after.strip_prefix(':') else { return false };
    (1..=3).contains(&digits) && verse.starts_with(|sign: char| sign.is_ascii_digit())
}

/// Verbs and adverbs that open a sentence of which the subject was dropped: `Looks like she left`.
fn looks_like_opener(word: &Word) -> bool {
    ["s", "ed", "ing", "ly", "ful", "ous", "able"].iter().any(|ending| word.key.ends_with(ending))
        || word.key.len() < 4
}

fn is_place_preposition(word: &Word) -> bool {
    let key = word.key.as_str();
    matches!(
        key,
        "in" | "at"
            | "from"
            | "to"
            | "near"
            | "of"
            | "for"
            | "on"
            | "a"
            | "an"
            | "the"
            | "my"
            | "his"
            | "her"
            | "our"
            | "your"
            | "their"
            | "this"
            | "that"
            | "via"
            | "using"
            | "use"
            | "into"
            | "through"
    )
}
