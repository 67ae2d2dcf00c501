//! Concepts: their numbers, their words, and which of them include which.

use super::automata::Automata;
use super::book::{Atom, ConceptId, END, Role, START};
use super::expand::expand;
use super::file::{ConceptSpec, FrameName, PatternFile, RoleName};
use super::inflect::inflect;
use crate::fold::chars::is_word;
use crate::fold::{Vocabulary, fold};
use crate::{DetectError, Frame};
use std::collections::{BTreeSet, HashMap};

/// Everyday words: what a disguised word may stand for, besides those of the patterns.
const WORDS: &str = include_str!("../../../../data/words/en.txt");

/// Shorter words of these other languages would be found inside disguised English ones.
const FOREIGN_LETTERS: usize = 5;

/// Every concept of every file.
pub(super) struct Concepts {
    ids: HashMap<String, ConceptId>,
    /// For each concept, those that include it.
    parents: Vec<BTreeSet<ConceptId>>,
    words: Vec<(AtomKey, ConceptId)>,
    /// Concepts that take the words of others with an ending.
    suffixes: Vec<(ConceptId, String, Vec<ConceptId>)>,
    used: BTreeSet<ConceptId>,
    /// Those of neither English nor Japanese.
    foreign: BTreeSet<ConceptId>,
    pub(super) masks: Vec<(ConceptId, String)>,
    pub(super) frames: Vec<(ConceptId, Frame)>,
    pub(super) roles: Vec<(ConceptId, Role)>,
}

/// The words of all concepts, ready to be found.
pub(super) struct Words {
    pub(super) automata: Automata,
    pub(super) atoms: Vec<Atom>,
    pub(super) starts: Box<[ConceptId]>,
    pub(super) ends: Box<[ConceptId]>,
    pub(super) vocabulary: Vocabulary,
}

/// A folded word and what must or must not stand around it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
struct AtomKey {
    text: String,
    left: bool,
    right: bool,
    not_after: String,
    not_before: String,
}

impl Default for Concepts {
    fn default() -> Self {
        Self {
            ids: HashMap::from([("@start".to_owned(), START), ("@end".to_owned(), END)]),
            parents: vec![BTreeSet::new(); 2],
            words: Vec::new(),
            suffixes: Vec::new(),
            used: BTreeSet::new(),
            foreign: BTreeSet::new(),
            masks: Vec::new(),
            frames: Vec::new(),
            roles: Vec::new(),
        }
    }
}

impl Concepts {
    /// How many there are.
    pub(super) fn len(&self) -> usize {
        self.parents.len()
    }

    fn id(&mut self, name: String) -> Result<ConceptId, String> {
        if let Some(&id) = self.ids.get(&name) {
            return Ok(id);
        }
        let id = ConceptId::try_from(self.parents.len()).map_err(|_| "too many concepts")?;
        self.parents.push(BTreeSet::new());
        self.ids.insert(name, id);
        Ok(id)
    }

    /// Gives the concepts of a file their numbers and words.
    pub(super) fn declare(&mut self, file: &str, spec: &PatternFile) -> Result<(), DetectError> {
        for (name, concept) in &spec.concept {
            self.concept(&spec.language, name, concept)
                .map_err(|message| fault(file, &format!("concept {name}"), message))?;
        }
        Ok(())
    }

    fn concept(&mut self, language: &str, name: &str, spec: &ConceptSpec) -> Result<(), String> {
        let full = format!("{language}/{name}");
        if self.ids.contains_key(&full) != spec.extend {
            let found = if spec.extend { "is not there to extend" } else { "is there already" };
            return Err(format!("the concept {found}; `extend = true` adds to one"));
        }
        let id = self.id(full.clone())?;
        if !matches!(language, "en" | "ja" | "any") {
            self.foreign.insert(id);
        }
        for entry in &spec.words {
            for word in expand(entry)? {
                self.word(&word, id)?;
            }
        }
        for entry in &spec.verbs {
            for verb in expand(entry)? {
                self.verb(&full, &verb, id)?;
            }
        }
        if let Some(kind) = &spec.mask {
            self.masks.push((id, kind.clone()));
            self.used.insert(id);
        }
        if let Some(frame) = spec.frame {
            self.frames.push((id, frame_of(frame)));
            self.used.insert(id);
        }
        if let Some(role) = spec.role {
            self.roles.push((id, role_of(role)));
            self.used.insert(id);
        }
        Ok(())
    }

    fn verb(&mut self, full: &str, verb: &str, id: ConceptId) -> Result<(), String> {
        let forms = inflect(verb);
        self.word(&forms.base, id)?;
        for (suffix, words) in
            [("s", vec![forms.third]), ("ing", vec![forms.ing]), ("ed", forms.past)]
        {
            let form = self.id(format!("{full}.{suffix}"))?;
            for word in words {
                self.word(&word, form)?;
            }
        }
        Ok(())
    }

    fn word(&mut self, word: &str, id: ConceptId) -> Result<(), String> {
        let (not_after, word, not_before) = guards(word);
        let (open_left, open_right) = (word.starts_with('*'), word.ends_with('*'));
        let word = word.trim_matches('*').trim();
        let text = if is_plain(word) { word.to_owned() } else { fold(word).text };
        let (Some(first), Some(last)) = (text.chars().next(), text.chars().next_back()) else {
            return Err(format!("`{word}` is empty once folded"));
        };
        let left = !open_left && is_word(first);
        let right = !open_right && is_word(last);
        let (not_after, not_before) = (not_after.to_owned(), not_before.to_owned());
        self.words.push((AtomKey { text, left, right, not_after, not_before }, id));
        Ok(())
    }

    /// Notes which concepts include which, once all have numbers.
    pub(super) fn include(&mut self, file: &str, spec: &PatternFile) -> Result<(), DetectError> {
        for (name, concept) in &spec.concept {
            let whole = format!("concept {name}");
            let id = self
                .id(format!("{}/{name}", spec.language))
                .map_err(|message| fault(file, &whole, message))?;
            let mut parts = Vec::new();
            for part in &concept.include {
                let found = self.lookup(&spec.language, part);
                parts.extend(found.map_err(|message| fault(file, &whole, message))?);
            }
            match &concept.suffix {
                Some(suffix) => self.suffixes.push((id, suffix.clone(), parts)),
                None => parts.into_iter().for_each(|part| {
                    self.parents[usize::from(part)].insert(id);
                }),
            }
        }
        Ok(())
    }

    /// Gives each concept with a suffix the words of those it includes.
    pub(super) fn add_suffixes(&mut self) {
        let every: BTreeSet<ConceptId> =
            (0..self.parents.len()).filter_map(|id| ConceptId::try_from(id).ok()).collect();
        let reach: Vec<Box<[ConceptId]>> =
            (0..self.parents.len()).map(|id| closure(&self.parents, id, &every)).collect();
        let mut added = Vec::new();
        for (id, suffix, parts) in &self.suffixes {
            let belongs =
                |word: ConceptId| parts.iter().any(|part| reach[usize::from(word)].contains(part));
            for (key, word) in self.words.iter().filter(|(_, word)| belongs(*word)) {
                debug_assert!(usize::from(*word) < reach.len(), "every word has a concept");
                added.push((AtomKey { text: format!("{}{suffix}", key.text), ..key.clone() }, *id));
            }
        }
        self.words.extend(added);
    }

    /// The concepts a name stands for: one, or with `.*` all forms of a verb.
    fn lookup(&self, language: &str, name: &str) -> Result<Vec<ConceptId>, String> {
        if let Some(&edge) = self.ids.get(name).filter(|_| name.starts_with('@')) {
            return Ok(vec![edge]);
        }
        let (stem, forms): (&str, &[&str]) = match name.strip_suffix(".*") {
            Some(stem) => (stem, &["", ".s", ".ing", ".ed"]),
            None => (name, &[""]),
        };
        let found: Vec<ConceptId> = forms
            .iter()
            .filter_map(|form| {
                [
                    format!("{language}/{stem}{form}"),
                    format!("any/{stem}{form}"),
                    format!("{stem}{form}"),
                ]
                .iter()
                .find_map(|full| self.ids.get(full).copied())
            })
            .collect();
        if found.is_empty() {
            return Err(format!("there is no concept `{name}`"));
        }
        Ok(found)
    }

    /// The concept of a slot; `a|b` makes a concept that includes both.
    pub(super) fn slot(&mut self, language: &str, slot: &str) -> Result<ConceptId, String> {
        let mut members = BTreeSet::new();
        for name in slot.split('|') {
            members.extend(self.lookup(language, name.trim())?);
        }
        let id = match members.first() {
            Some(&only) if members.len() == 1 => only,
            _ => self.union(&members)?,
        };
        self.used.insert(id);
        Ok(id)
    }

    fn union(&mut self, members: &BTreeSet<ConceptId>) -> Result<ConceptId, String> {
        let name = members.iter().map(ToString::to_string).collect::<Vec<_>>().join("|");
        let id = self.id(name)?;
        for &member in members {
            self.parents[usize::from(member)].insert(id);
        }
        Ok(id)
    }

    /// The concepts of several slots.
    pub(super) fn slots(
        &mut self,
        language: &str,
        slots: &[String],
    ) -> Result<Box<[ConceptId]>, String> {
        slots.iter().map(|slot| self.slot(language, slot)).collect()
    }

    /// Puts all words into automata.
    pub(super) fn compile(&self) -> Result<Words, DetectError> {
        let reach: Vec<Box<[ConceptId]>> =
            (0..self.len()).map(|id| closure(&self.parents, id, &self.used)).collect();
        let mut vocabulary = Vocabulary::default();
        WORDS.lines().filter(|line| !line.starts_with('#')).for_each(|word| vocabulary.learn(word));
        let mut texts: HashMap<&AtomKey, BTreeSet<ConceptId>> = HashMap::new();
        for (key, id) in &self.words {
            self.teach(&mut vocabulary, &key.text, *id);
            texts.entry(key).or_default().extend(&reach[usize::from(*id)]);
        }
        vocabulary.sound.settle();
        let mut texts: Vec<_> = texts.into_iter().filter(|(_, ids)| !ids.is_empty()).collect();
        texts.sort_unstable_by(|(a, _), (b, _)| {
            a.text.is_ascii().cmp(&b.text.is_ascii()).reverse().then_with(|| a.cmp(b))
        });
        let words: Vec<&str> = texts.iter().map(|(key, _)| key.text.as_str()).collect();
        let automata = Automata::build(&words)?;
        let atoms = texts.into_iter().map(|(key, ids)| key.atom(&ids)).collect();
        let (starts, ends) = (reach[usize::from(START)].clone(), reach[usize::from(END)].clone());
        Ok(Words { automata, atoms, starts, ends, vocabulary })
    }

    /// Tells the vocabulary of disguised words about a phrase.
    fn teach(&self, vocabulary: &mut Vocabulary, phrase: &str, id: ConceptId) {
        if self.foreign.contains(&id) {
            for word in
                phrase.split(' ').filter(|word| word.bytes().all(|b| b.is_ascii_lowercase()))
            {
                if word.len() >= FOREIGN_LETTERS {
                    vocabulary.learn(word);
                } else {
                    vocabulary.sound.learn(word);
                }
            }
        } else if !self.is_marker(id) {
            vocabulary.learn(phrase);
        }
    }

    /// Whether its words are not language but signs of a turned text.
    fn is_marker(&self, id: ConceptId) -> bool {
        self.roles
            .iter()
            .any(|&(concept, role)| concept == id && matches!(role, Role::Rot13 | Role::Reversed))
    }
}

impl AtomKey {
    fn atom(&self, concepts: &BTreeSet<ConceptId>) -> Atom {
        Atom {
            concepts: concepts.iter().copied().collect(),
            left: self.left,
            right: self.right,
            not_after: self.not_after.as_str().into(),
            not_before: self.not_before.as_str().into(),
        }
    }
}

/// Whether folding would leave a word as it is.
fn is_plain(word: &str) -> bool {
    word.bytes().all(|byte| byte.is_ascii_lowercase() || byte == b' ') && !word.contains("  ")
}

/// Splits `自«殺す»ぞ` into what must not stand before, the word, and what must not stand after.
fn guards(word: &str) -> (&str, &str, &str) {
    let (before, rest) = word.split_once('«').unwrap_or(("", word));
    let (word, after) = rest.split_once('»').unwrap_or((rest, ""));
    (before, word, after)
}

/// A concept and all that include it, less those that nothing asks for.
fn closure(
    parents: &[BTreeSet<ConceptId>],
    id: usize,
    used: &BTreeSet<ConceptId>,
) -> Box<[ConceptId]> {
    let mut seen = BTreeSet::new();
    let mut open = ConceptId::try_from(id).into_iter().collect::<Vec<_>>();
    while let Some(next) = open.pop() {
        if seen.insert(next) {
            open.extend(&parents[usize::from(next)]);
        }
    }
    seen.intersection(used).copied().collect()
}

/// An error that names the file and what in it is wrong.
pub(super) fn fault(file: &str, item: &str, message: impl Into<String>) -> DetectError {
    DetectError::Rule { file: file.to_owned(), item: item.to_owned(), message: message.into() }
}

const fn frame_of(name: FrameName) -> Frame {
    match name {
        FrameName::Fiction => Frame::Fiction,
        FrameName::News => Frame::News,
        FrameName::Academic => Frame::Academic,
        FrameName::Technical => Frame::Technical,
        FrameName::Medical => Frame::Medical,
        FrameName::Game => Frame::Game,
    }
}

const fn role_of(name: RoleName) -> Role {
    match name {
        RoleName::Howto => Role::Howto,
        RoleName::Rot13 => Role::Rot13,
        RoleName::Reversed => Role::Reversed,
        RoleName::Cipher => Role::Cipher,
        RoleName::Scene => Role::Scene,
        RoleName::Careful => Role::Careful,
    }
}
