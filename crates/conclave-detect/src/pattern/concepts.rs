//! Concepts: their numbers, their words, and which of them include which.

use super::automata::{Automata, automaton};
use super::book::{Atom, ConceptId, END, Role, START};
use super::file::{ConceptSpec, FrameName, PatternFile, RoleName};
use super::words::{AtomKey, Word};
use crate::fold::Vocabulary;
use crate::{DetectError, Frame};
use aho_corasick::AhoCorasick;
use std::collections::{BTreeMap, BTreeSet, HashMap};

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
        // The last number stays free, so that concepts can be counted in numbers of the same size.
        let id = ConceptId::try_from(self.parents.len()).ok().filter(|id| *id < ConceptId::MAX);
        let id = id.ok_or("too many concepts")?;
        self.parents.push(BTreeSet::new());
        self.ids.insert(name, id);
        Ok(id)
    }

    /// Gives the concepts of a file their numbers and words.
    pub(super) fn declare(
        &mut self,
        file: &str,
        spec: &PatternFile,
        mut words: BTreeMap<String, Vec<Word>>,
    ) -> Result<(), DetectError> {
        for (name, concept) in &spec.concept {
            let words = words.remove(name).unwrap_or_default();
            self.concept(&spec.language, name, concept, words)
                .map_err(|message| fault(file, &format!("concept {name}"), message))?;
        }
        Ok(())
    }

    fn concept(
        &mut self,
        language: &str,
        name: &str,
        spec: &ConceptSpec,
        words: Vec<Word>,
    ) -> Result<(), String> {
        let full = format!("{language}/{name}");
        if self.ids.contains_key(&full) != spec.extend {
            let found = if spec.extend { "is not there to extend" } else { "is there already" };
            return Err(format!("the concept {found}; `extend = true` adds to one"));
        }
        let id = self.id(full.clone())?;
        if !matches!(language, "en" | "ja" | "any") {
            self.foreign.insert(id);
        }
        for (key, form) in words {
            let of = if form.is_empty() { id } else { self.id(format!("{full}.{form}"))? };
            self.words.push((key, of));
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
        let reach = closures(&self.parents, |_| true);
        let mut added = Vec::new();
        for (id, suffix, parts) in &self.suffixes {
            let belongs =
                |word: ConceptId| parts.iter().any(|part| reach[usize::from(word)].contains(part));
            for (key, _) in self.words.iter().filter(|(_, word)| belongs(*word)) {
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

    /// Puts all words into automata: three pieces of work, done side by side because a command that
    /// reads one text waits for little else.
    pub(super) fn compile(&self) -> Result<Words, DetectError> {
        let reach = closures(&self.parents, |id| self.used.contains(&id));
        let found = self.words.iter().map(|(key, id)| (key, &*reach[usize::from(*id)]));
        let (plain, other) =
            found.filter(|(_, ids)| !ids.is_empty()).partition(|(key, _)| key.text.is_ascii());
        let (plain, other, vocabulary) = std::thread::scope(|scope| {
            let other = scope.spawn(|| Atoms::of(other));
            let vocabulary = scope.spawn(|| self.vocabulary());
            (Atoms::of(plain), other.join(), vocabulary.join())
        });
        let interrupted = |_| DetectError::Automaton("building it was interrupted".into());
        let (plain, other) = (plain?, other.map_err(interrupted)??);
        let vocabulary = vocabulary.map_err(interrupted)?;
        let automata = Automata::new(plain.automaton, other.automaton);
        let atoms = plain.list.into_iter().chain(other.list).collect();
        let (starts, ends) = (reach[usize::from(START)].clone(), reach[usize::from(END)].clone());
        Ok(Words { automata, atoms, starts, ends, vocabulary })
    }

    fn vocabulary(&self) -> Vocabulary {
        let mut vocabulary = Vocabulary::default();
        WORDS.lines().filter(|line| !line.starts_with('#')).for_each(|word| vocabulary.learn(word));
        for (key, id) in &self.words {
            self.teach(&mut vocabulary, &key.text, *id);
        }
        vocabulary.settle();
        vocabulary
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

/// Words of one kind of script, numbered, and the automaton that finds them.
struct Atoms {
    list: Vec<Atom>,
    automaton: AhoCorasick,
}

impl Atoms {
    /// Puts together what is the same word of several concepts.
    fn of(mut words: Vec<(&AtomKey, &[ConceptId])>) -> Result<Self, DetectError> {
        words.sort_unstable_by_key(|(key, _)| *key);
        let same = || words.chunk_by(|(a, _), (b, _)| a == b);
        let texts: Vec<&str> = same().map(|of_one| of_one[0].0.text.as_str()).collect();
        Ok(Self { automaton: automaton(&texts)?, list: same().map(atom).collect() })
    }
}

/// One word, and all that it counts as.
fn atom(of_one: &[(&AtomKey, &[ConceptId])]) -> Atom {
    let mut concepts: Vec<ConceptId> =
        of_one.iter().flat_map(|(_, ids)| ids.iter().copied()).collect();
    concepts.sort_unstable();
    concepts.dedup();
    let key = of_one[0].0;
    Atom {
        concepts: concepts.into(),
        left: key.left,
        right: key.right,
        not_after: key.not_after.as_str().into(),
        not_before: key.not_before.as_str().into(),
    }
}

/// For each concept, itself and all that include it, in order, less those that nothing asks for.
fn closures(
    parents: &[BTreeSet<ConceptId>],
    used: impl Fn(ConceptId) -> bool,
) -> Vec<Box<[ConceptId]>> {
    let used: Vec<bool> =
        (0..parents.len()).map(|id| ConceptId::try_from(id).is_ok_and(&used)).collect();
    let mut seen_from = vec![usize::MAX; parents.len()];
    let mut open = Vec::new();
    let closure = |id: usize| {
        let mut reached = Vec::new();
        open.extend(ConceptId::try_from(id));
        while let Some(next) = open.pop() {
            let at = usize::from(next);
            if std::mem::replace(&mut seen_from[at], id) != id {
                open.extend(&parents[at]);
                if used[at] {
                    reached.push(next);
                }
            }
        }
        reached.sort_unstable();
        reached.into()
    };
    (0..parents.len()).map(closure).collect()
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
