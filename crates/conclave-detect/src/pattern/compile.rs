//! From files to one automaton and a list of rules over concept numbers.
//!
//! **Invariant:** every name in a rule was found, or the whole set is refused with the file and rule
//! named; a broken file never silently weakens the detector.

use super::book::{Book, Condition, Reading, Rule, Shape};
use super::concepts::{Concepts, fault};
use super::file::{ConceptSpec, ItemSpec, PatternFile, Several};
use super::index::Index;
use super::words::{Word, written_out};
use crate::DetectError;
use conclave_core::Category;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicUsize, Ordering};

/// More threads than this do not read the files any sooner.
const THREADS_MAX: usize = 4;

impl Book {
    /// Compiles the built-in files and those of one's own, given as (name, TOML text).
    pub(crate) fn compile(
        builtin: &[(&str, &str)],
        own: &[(&str, &str)],
    ) -> Result<Self, DetectError> {
        let files = [builtin, own].concat();
        let mut compiler = Compiler::default();
        let mut parsed = Vec::new();
        for (at, (&(name, _), file)) in files.iter().zip(in_parallel(&files, read)).enumerate() {
            let (file, words) = file?;
            if at >= builtin.len() {
                check_only_adds(name, &file)?;
            }
            compiler.concepts.declare(name, &file, words)?;
            parsed.push((name, file));
        }
        for (name, file) in &parsed {
            compiler.concepts.include(name, file)?;
        }
        compiler.concepts.add_suffixes();
        for (at, (name, file)) in parsed.iter().enumerate() {
            let first = compiler.rules.len();
            compiler.items(name, file)?;
            if at >= builtin.len() {
                compiler.rules[first..].iter_mut().for_each(|rule| rule.is_own = true);
            }
        }
        compiler.finish()
    }
}

/// Refuses a file of one's own that could make the built-in rules see less: no configuration lowers the floor.
fn check_only_adds(name: &str, file: &PatternFile) -> Result<(), DetectError> {
    let refused = |item: String, what: &str| {
        let why =
            format!("a file of your own cannot have {what}: the built-in rules would see less");
        Err(fault(name, &item, why))
    };
    if let Some(reading) = file.reading.first() {
        return refused(format!("reading {}", reading.id), "readings");
    }
    for (concept, spec) in &file.concept {
        let item = format!("concept {concept}");
        match spec {
            ConceptSpec { extend: true, .. } => return refused(item, "`extend`"),
            ConceptSpec { mask: Some(_), .. } => return refused(item, "`mask`"),
            ConceptSpec { frame: Some(_), .. } => return refused(item, "`frame`"),
            ConceptSpec { role: Some(_), .. } => return refused(item, "`role`"),
            _ => {}
        }
    }
    Ok(())
}

type Words = BTreeMap<String, Vec<Word>>;

/// Reads one file and writes out the words of its concepts.
fn read(&(name, text): &(&str, &str)) -> Result<(PatternFile, Words), DetectError> {
    let file: PatternFile = toml::from_str(text).map_err(|error| DetectError::Syntax {
        file: name.to_owned(),
        message: error.to_string(),
    })?;
    let written = |(concept, spec): (&String, &ConceptSpec)| {
        let words = written_out(spec);
        let words = words.map_err(|message| fault(name, &format!("concept {concept}"), message))?;
        Ok((concept.clone(), words))
    };
    let words = file.concept.iter().map(written).collect::<Result<_, _>>()?;
    Ok((file, words))
}

/// Does the same with each of a list, on as many threads as there are cores; results are in order.
fn in_parallel<T: Sync, R: Send>(list: &[T], each: impl Fn(&T) -> R + Sync) -> Vec<R> {
    let next = AtomicUsize::new(0);
    let work = || {
        let mut done = Vec::new();
        while let Some((at, one)) =
            Some(next.fetch_add(1, Ordering::Relaxed)).and_then(|at| Some((at, list.get(at)?)))
        {
            done.push((at, each(one)));
        }
        done
    };
    let threads = std::thread::available_parallelism().map_or(1, usize::from).min(THREADS_MAX);
    let mut done = std::thread::scope(|scope| {
        let others: Vec<_> = (1..threads).map(|_| scope.spawn(work)).collect();
        let mut done = work();
        for other in others {
            match other.join() {
                Ok(more) => done.extend(more),
                Err(panic) => std::panic::resume_unwind(panic),
            }
        }
        done
    });
    done.sort_unstable_by_key(|(at, _)| *at);
    done.into_iter().map(|(_, result)| result).collect()
}

#[derive(Default)]
struct Compiler {
    concepts: Concepts,
    readings: Vec<Reading>,
    rules: Vec<Rule>,
}

impl Compiler {
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
        if item.class.is_some() || item.category.is_some() || item.hint {
            return Err("a reading has no class and no category, and is no hint".into());
        }
        let slots = if item.seq.is_empty() { &item.all } else { &item.seq };
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
            hint: item.hint,
            is_own: false,
            condition: self.condition(&file.language, item)?,
            categories,
        })
    }

    fn condition(&mut self, language: &str, item: &ItemSpec) -> Result<Condition, String> {
        Ok(Condition {
            shape: self.shape(language, item)?,
            unless: self.concepts.slots(language, &item.unless)?,
            unless_before: self.concepts.slots(language, &item.unless_before)?,
            unless_after: self.concepts.slots(language, &item.unless_after)?,
            unless_text: self.concepts.slots(language, &item.unless_text)?,
            needs_text: self.concepts.slots(language, &item.needs_text)?,
            reach: u32::from(item.reach.unwrap_or(3)),
            units_max: item.units_max.unwrap_or(u32::MAX),
            quoted: item.quoted,
        })
    }

    fn shape(&mut self, language: &str, item: &ItemSpec) -> Result<Shape, String> {
        match (item.any.is_empty(), item.seq.len(), item.all.len()) {
            (false, 0, 0) => Ok(Shape::Any(self.concepts.slot(language, &item.any.join("|"))?)),
            (true, 2.., 0) => {
                let slots = self.concepts.slots(language, &item.seq)?;
                let gaps = gaps(item, slots.len())?;
                Ok(Shape::Seq(slots.iter().copied().zip(gaps).collect()))
            }
            (true, 0, 2..) => {
                let slots = self.concepts.slots(language, &item.all)?;
                Ok(Shape::All(slots, u32::from(item.window.unwrap_or(10))))
            }
            _ => Err("needs one of `any`, `seq` (two or more) and `all` (two or more)".into()),
        }
    }

    fn finish(self) -> Result<Book, DetectError> {
        let words = self.concepts.compile()?;
        let concepts = self.concepts.len();
        let index = Index::of(&self.readings, &self.rules, &words.atoms, concepts);
        Ok(Book {
            automata: words.automata,
            atoms: words.atoms,
            concepts,
            starts: words.starts,
            ends: words.ends,
            masks: self.concepts.masks,
            frames: self.concepts.frames,
            roles: self.concepts.roles,
            readings: self.readings,
            rules: self.rules,
            index,
            vocabulary: words.vocabulary,
        })
    }
}

/// The greatest distance before each slot.
fn gaps(item: &ItemSpec, slots: usize) -> Result<Vec<u32>, String> {
    let given = item.gap.clone().map_or_else(|| vec![4], Several::into_vec);
    let between: Vec<u32> = match given.as_slice() {
        [one] => vec![u32::from(*one); slots - 1],
        many if many.len() == slots - 1 => many.iter().copied().map(u32::from).collect(),
        many => return Err(format!("{} gaps for {slots} slots", many.len())),
    };
    Ok(std::iter::once(0).chain(between).collect())
}
