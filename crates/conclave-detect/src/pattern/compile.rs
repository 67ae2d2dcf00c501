//! From files to one automaton and a list of rules over concept numbers.
//!
//! **Invariant:** every name in a rule was found, or the whole set is refused with the file and rule
//! named; a broken file never silently weakens the detector.

use super::expand::expand;
use super::file::{Class, ConceptSpec, FrameName, ItemSpec, PatternFile, RoleName};
use super::inflect::inflect;
use crate::fold::chars::is_word;
use crate::fold::{Vocabulary, fold};
use crate::{DetectError, Frame};
use aho_corasick::{AhoCorasick, AhoCorasickKind, MatchKind};
use conclave_core::Category;
use std::collections::{BTreeSet, HashMap};

/// The number of a concept.
pub(crate) type ConceptId = u16;

/// The built-in concept that stands at the start of each sentence.
const START: ConceptId = 0;
/// The built-in concept that stands at the end of each sentence.
const END: ConceptId = 1;

/// Everything the files say, ready for use.
#[derive(Debug)]
pub(crate) struct Book {
    pub(crate) automaton: AhoCorasick,
    pub(crate) atoms: Vec<Atom>,
    pub(crate) concepts: usize,
    /// What the start of a sentence counts as.
    pub(crate) starts: Box<[ConceptId]>,
    /// What the end of a sentence counts as.
    pub(crate) ends: Box<[ConceptId]>,
    pub(crate) masks: Vec<(ConceptId, String)>,
    pub(crate) frames: Vec<(ConceptId, Frame)>,
    pub(crate) roles: Vec<(ConceptId, Role)>,
    pub(crate) readings: Vec<Reading>,
    pub(crate) rules: Vec<Rule>,
    pub(crate) vocabulary: Vocabulary,
}

/// One word or phrase of the automaton.
#[derive(Debug)]
pub(crate) struct Atom {
    /// What it counts as.
    pub(crate) concepts: Box<[ConceptId]>,
    /// Whether a word must begin where it begins.
    pub(crate) left: bool,
    /// Whether a word must end where it ends.
    pub(crate) right: bool,
    /// Characters that must not stand before it.
    pub(crate) not_after: Box<str>,
    /// Characters that must not stand after it.
    pub(crate) not_before: Box<str>,
}

/// What the engine itself uses a concept for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Role {
    /// Asking how something is done.
    Howto,
    /// The text may be rot13.
    Rot13,
    /// The text may stand backwards.
    Reversed,
    /// The text may be a shifted alphabet.
    Cipher,
}

/// Where concepts must stand to each other.
#[derive(Clone, Debug)]
pub(crate) enum Shape {
    /// One of them.
    Any(ConceptId),
    /// In order, with the greatest distance before each but the first.
    Seq(Box<[(ConceptId, u32)]>),
    /// All within a distance of the first.
    All(Box<[ConceptId]>, u32),
}

/// When a shape counts.
#[derive(Clone, Debug)]
pub(crate) struct Condition {
    pub(crate) shape: Shape,
    pub(crate) unless: Box<[ConceptId]>,
    pub(crate) unless_before: Box<[ConceptId]>,
    pub(crate) unless_after: Box<[ConceptId]>,
    pub(crate) unless_text: Box<[ConceptId]>,
    pub(crate) needs_text: Box<[ConceptId]>,
    pub(crate) reach: u32,
    pub(crate) units_max: u32,
    pub(crate) quoted: bool,
}

/// When a dangerous word is meant harmlessly.
#[derive(Clone, Debug)]
pub(crate) struct Reading {
    pub(crate) source: String,
    pub(crate) kind: String,
    pub(crate) condition: Condition,
    /// Which slots of the shape are replaced.
    pub(crate) replaces: Box<[usize]>,
}

/// What means something.
#[derive(Clone, Debug)]
pub(crate) struct Rule {
    pub(crate) source: String,
    pub(crate) categories: Box<[Category]>,
    pub(crate) class: Class,
    pub(crate) condition: Condition,
}

impl Book {
    /// Compiles files, given as (name, TOML text).
    pub(crate) fn compile(files: &[(&str, &str)]) -> Result<Self, DetectError> {
        let parsed = files
            .iter()
            .map(|&(name, text)| parse(name, text))
            .collect::<Result<Vec<_>, _>>()?;
        let mut compiler = Compiler::default();
        for (name, file) in &parsed {
            compiler.declare(name, file)?;
        }
        for (name, file) in &parsed {
            compiler.include(name, file)?;
        }
        compiler.add_suffixes();
        for (name, file) in &parsed {
            compiler.items(name, file)?;
        }
        compiler.finish()
    }
}

fn parse<'a>(name: &'a str, text: &str) -> Result<(&'a str, PatternFile), DetectError> {
    let file = toml::from_str(text).map_err(|error| DetectError::Syntax {
        file: name.to_owned(),
        message: error.to_string(),
    })?;
    Ok((name, file))
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

struct Compiler {
    ids: HashMap<String, ConceptId>,
    /// For each concept, those that include it.
    parents: Vec<BTreeSet<ConceptId>>,
    words: Vec<(AtomKey, ConceptId)>,
    /// Concepts that take the words of others with an ending.
    suffixes: Vec<(ConceptId, String, Vec<ConceptId>)>,
    used: BTreeSet<ConceptId>,
    masks: Vec<(ConceptId, String)>,
    frames: Vec<(ConceptId, Frame)>,
    roles: Vec<(ConceptId, Role)>,
    readings: Vec<Reading>,
    rules: Vec<Rule>,
}

impl Default for Compiler {
    fn default() -> Self {
        Self {
            ids: HashMap::from([("@start".to_owned(), START), ("@end".to_owned(), END)]),
            parents: vec![BTreeSet::new(); 2],
            words: Vec::new(),
            suffixes: Vec::new(),
            used: BTreeSet::new(),
            masks: Vec::new(),
            frames: Vec::new(),
            roles: Vec::new(),
            readings: Vec::new(),
            rules: Vec::new(),
        }
    }
}

impl Compiler {
    fn id(&mut self, name: String) -> Result<ConceptId, String> {
        if let Some(&id) = self.ids.get(&name) {
            return Ok(id);
        }
        let id = ConceptId::try_from(self.parents.len()).map_err(|_| "too many concepts")?;
        self.parents.push(BTreeSet::new());
        self.ids.insert(name, id);
        Ok(id)
    }

    fn declare(&mut self, file: &str, spec: &PatternFile) -> Result<(), DetectError> {
        for (name, concept) in &spec.concept {
            self.concept(&spec.language, name, concept)
                .map_err(|message| fault(file, &format!("concept {name}"), message))?;
        }
        Ok(())
    }

    fn concept(&mut self, language: &str, name: &str, spec: &ConceptSpec) -> Result<(), String> {
        let full = format!("{language}/{name}");
        if self.ids.contains_key(&full) != spec.extend {
            let found = if spec.extend {
                "is not there to extend"
            } else {
                "is there already"
            };
            return Err(format!("the concept {found}; `extend = true` adds to one"));
        }
        let id = self.id(full.clone())?;
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
        for (suffix, words) in [
            ("s", vec![forms.third]),
            ("ing", vec![forms.ing]),
            ("ed", forms.past),
        ] {
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
        let text = fold(word.trim_matches('*').trim()).text;
        let (Some(first), Some(last)) = (text.chars().next(), text.chars().next_back()) else {
            return Err(format!("`{word}` is empty once folded"));
        };
        let left = !open_left && is_word(first);
        let right = !open_right && is_word(last);
        let (not_after, not_before) = (not_after.to_owned(), not_before.to_owned());
        self.words.push((
            AtomKey {
                text,
                left,
                right,
                not_after,
                not_before,
            },
            id,
        ));
        Ok(())
    }

    fn include(&mut self, file: &str, spec: &PatternFile) -> Result<(), DetectError> {
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
    fn add_suffixes(&mut self) {
        let every: BTreeSet<ConceptId> = (0..self.parents.len())
            .filter_map(|id| ConceptId::try_from(id).ok())
            .collect();
        let reach: Vec<Box<[ConceptId]>> = (0..self.parents.len())
            .map(|id| closure(&self.parents, id, &every))
            .collect();
        let mut added = Vec::new();
        for (id, suffix, parts) in &self.suffixes {
            let belongs = |word: ConceptId| {
                parts
                    .iter()
                    .any(|part| reach[usize::from(word)].contains(part))
            };
            for (key, word) in self.words.iter().filter(|(_, word)| belongs(*word)) {
                debug_assert!(usize::from(*word) < reach.len(), "every word has a concept");
                added.push((
                    AtomKey {
                        text: format!("{}{suffix}", key.text),
                        ..key.clone()
                    },
                    *id,
                ));
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
    fn slot(&mut self, language: &str, slot: &str) -> Result<ConceptId, String> {
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
        let name = members
            .iter()
            .map(ToString::to_string)
            .collect::<Vec<_>>()
            .join("|");
        let id = self.id(name)?;
        for &member in members {
            self.parents[usize::from(member)].insert(id);
        }
        Ok(id)
    }

    fn slots(&mut self, language: &str, slots: &[String]) -> Result<Box<[ConceptId]>, String> {
        slots.iter().map(|slot| self.slot(language, slot)).collect()
    }

    fn items(&mut self, file: &str, spec: &PatternFile) -> Result<(), DetectError> {
        for item in &spec.reading {
            let reading = self
                .reading(&spec.language, item)
                .map_err(|message| fault(file, &format!("reading {}", item.id), message))?;
            self.readings.push(reading);
        }
        for item in &spec.rule {
            let rule = self
                .rule(spec, item)
                .map_err(|message| fault(file, &format!("rule {}", item.id), message))?;
            self.rules.push(rule);
        }
        Ok(())
    }

    fn reading(&mut self, language: &str, item: &ItemSpec) -> Result<Reading, String> {
        let kind = item.kind.clone().ok_or("a reading needs a `kind`")?;
        if item.class.is_some() || item.category.is_some() {
            return Err("a reading has no class and no category".into());
        }
        let slots = if item.seq.is_empty() {
            &item.all
        } else {
            &item.seq
        };
        let replaces = if item.replaces.is_empty() || !item.any.is_empty() {
            (0..slots.len().max(1)).collect()
        } else {
            item.replaces
                .iter()
                .map(|name| {
                    slots
                        .iter()
                        .position(|slot| slot == name)
                        .ok_or_else(|| format!("`{name}` is not one of its slots"))
                })
                .collect::<Result<_, _>>()?
        };
        Ok(Reading {
            source: format!("{language}/{kind}/{}", item.id),
            kind,
            condition: self.condition(language, item)?,
            replaces,
        })
    }

    fn rule(&mut self, file: &PatternFile, item: &ItemSpec) -> Result<Rule, String> {
        if item.kind.is_some() || !item.replaces.is_empty() {
            return Err("a rule has no kind and replaces nothing".into());
        }
        let names = match &item.category {
            Some(several) => several.clone().into_vec(),
            None => file.category.iter().cloned().collect(),
        };
        let categories = names
            .iter()
            .map(|name| Category::parse(name).ok_or_else(|| format!("unknown category `{name}`")))
            .collect::<Result<Box<[_]>, _>>()?;
        let first = categories.first().ok_or("a rule needs a category")?;
        Ok(Rule {
            source: format!("{}/{}/{}", file.language, first.as_str(), item.id),
            class: item.class.ok_or("a rule needs a class")?,
            condition: self.condition(&file.language, item)?,
            categories,
        })
    }

    fn condition(&mut self, language: &str, item: &ItemSpec) -> Result<Condition, String> {
        Ok(Condition {
            shape: self.shape(language, item)?,
            unless: self.slots(language, &item.unless)?,
            unless_before: self.slots(language, &item.unless_before)?,
            unless_after: self.slots(language, &item.unless_after)?,
            unless_text: self.slots(language, &item.unless_text)?,
            needs_text: self.slots(language, &item.needs_text)?,
            reach: u32::from(item.reach.unwrap_or(3)),
            units_max: item.units_max.unwrap_or(u32::MAX),
            quoted: item.quoted,
        })
    }

    fn shape(&mut self, language: &str, item: &ItemSpec) -> Result<Shape, String> {
        match (item.any.is_empty(), item.seq.len(), item.all.len()) {
            (false, 0, 0) => Ok(Shape::Any(self.slot(language, &item.any.join("|"))?)),
            (true, 2.., 0) => {
                let slots = self.slots(language, &item.seq)?;
                let gaps = gaps(item, slots.len())?;
                Ok(Shape::Seq(slots.iter().copied().zip(gaps).collect()))
            }
            (true, 0, 2..) => {
                let slots = self.slots(language, &item.all)?;
                Ok(Shape::All(slots, u32::from(item.window.unwrap_or(10))))
            }
            _ => Err("needs one of `any`, `seq` (two or more) and `all` (two or more)".into()),
        }
    }

    fn finish(self) -> Result<Book, DetectError> {
        let reach: Vec<Box<[ConceptId]>> = (0..self.parents.len())
            .map(|id| closure(&self.parents, id, &self.used))
            .collect();
        let mut vocabulary = Vocabulary::default();
        let mut texts: HashMap<AtomKey, BTreeSet<ConceptId>> = HashMap::new();
        let markers = |id: ConceptId| {
            self.roles.iter().any(|&(concept, role)| {
                concept == id && matches!(role, Role::Rot13 | Role::Reversed)
            })
        };
        for (key, id) in self.words {
            if !markers(id) {
                vocabulary.learn(&key.text);
            }
            texts
                .entry(key)
                .or_default()
                .extend(&reach[usize::from(id)]);
        }
        let mut texts: Vec<_> = texts
            .into_iter()
            .filter(|(_, ids)| !ids.is_empty())
            .collect();
        texts.sort();
        let automaton = AhoCorasick::builder()
            .kind(Some(AhoCorasickKind::ContiguousNFA))
            .match_kind(MatchKind::Standard)
            .build(texts.iter().map(|(key, _)| &key.text))
            .map_err(|error| DetectError::Automaton(error.to_string()))?;
        let atoms = texts
            .into_iter()
            .map(|(key, ids)| Atom {
                concepts: ids.into_iter().collect(),
                left: key.left,
                right: key.right,
                not_after: key.not_after.into(),
                not_before: key.not_before.into(),
            })
            .collect();
        Ok(Book {
            automaton,
            atoms,
            concepts: self.parents.len(),
            starts: reach[usize::from(START)].clone(),
            ends: reach[usize::from(END)].clone(),
            masks: self.masks,
            frames: self.frames,
            roles: self.roles,
            readings: self.readings,
            rules: self.rules,
            vocabulary,
        })
    }
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

/// The greatest distance before each slot.
fn gaps(item: &ItemSpec, slots: usize) -> Result<Vec<u32>, String> {
    let given = item
        .gap
        .clone()
        .map_or_else(|| vec![4], super::file::Several::into_vec);
    let between: Vec<u32> = match given.as_slice() {
        [one] => vec![u32::from(*one); slots - 1],
        many if many.len() == slots - 1 => many.iter().copied().map(u32::from).collect(),
        many => return Err(format!("{} gaps for {slots} slots", many.len())),
    };
    Ok(std::iter::once(0).chain(between).collect())
}

fn fault(file: &str, item: &str, message: impl Into<String>) -> DetectError {
    DetectError::Rule {
        file: file.to_owned(),
        item: item.to_owned(),
        message: message.into(),
    }
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
    }
}
