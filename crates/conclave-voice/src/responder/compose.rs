//! Putting a reply together out of sentences.
//!
//! **Invariant:** at most one question a reply, and no sentence that was said before in the
//! conversation while there is another that fits.

use super::memory::{Memory, is_question};
use super::reading::Named;
use super::script::Script;
use crate::draw::Draw;

/// A reply in the making.
pub(super) struct Composer<'a> {
    pub(super) script: &'a Script,
    pub(super) memory: &'a Memory,
    draw: Draw,
    parts: Vec<String>,
    templates: Vec<&'a str>,
    may_ask: bool,
    /// Who {who} is.
    who: Option<String>,
    /// What {topic} is.
    topic: Option<String>,
}

impl<'a> Composer<'a> {
    pub(super) fn new(script: &'a Script, memory: &'a Memory, seed: u64) -> Self {
        Self {
            script,
            memory,
            draw: Draw::new(seed),
            parts: Vec::new(),
            templates: Vec::new(),
            may_ask: true,
            who: None,
            topic: None,
        }
    }

    pub(super) fn name_person(&mut self, person: Option<&Named>) {
        self.who = person.map(|named| named.name.clone());
    }

    pub(super) fn name_topic(&mut self, topic: Option<&Named>) {
        self.topic = topic.map(|named| named.name.clone());
    }

    /// No question in this reply, or none any more.
    pub(super) const fn ask_nothing(&mut self) {
        self.may_ask = false;
    }

    /// A question is allowed again, unless one has been asked.
    pub(super) fn ask_again(&mut self) {
        self.may_ask = !self.templates.iter().any(|template| is_question(template));
    }

    pub(super) const fn may_ask(&self) -> bool {
        self.may_ask
    }

    /// One in `sides`, as the seed has it.
    pub(super) fn chance(&mut self, sides: usize) -> bool {
        self.draw.below(sides) == 0
    }

    pub(super) fn is_empty(&self) -> bool {
        self.parts.is_empty()
    }

    /// How many sentences there are so far.
    pub(super) fn sentences(&self) -> usize {
        self.parts.iter().map(|part| super::memory::sentences(part).count()).sum()
    }

    /// Adds a sentence of the pool that fits and is new; says whether there was one.
    pub(super) fn add(&mut self, pool: &'a [String]) -> bool {
        let fitting: Vec<&'a str> = pool
            .iter()
            .map(String::as_str)
            .filter(|template| self.fits(template) && !self.memory.has_said(template))
            .collect();
        self.add_one_of(&fitting)
    }

    /// Adds a sentence of the first pool that has one.
    pub(super) fn add_first(&mut self, pools: &[&'a [String]]) -> bool {
        pools.iter().any(|pool| self.add(pool))
    }

    /// Adds a sentence of the pool, an old one where there is no new one: for what must be said.
    pub(super) fn add_surely(&mut self, pool: &'a [String]) {
        if !self.add(pool) {
            let fitting: Vec<&'a str> =
                pool.iter().map(String::as_str).filter(|template| self.fits(template)).collect();
            self.add_one_of(&fitting);
        }
    }

    /// Adds a text as it is.
    pub(super) fn add_text(&mut self, text: &str) {
        self.parts.push(text.to_owned());
    }

    pub(super) fn finish(self) -> String {
        self.parts.join(self.script.joint())
    }

    fn fits(&self, template: &str) -> bool {
        let named = |slot: &str, name: &Option<String>| !template.contains(slot) || name.is_some();
        named("{who}", &self.who)
            && named("{Who}", &self.who)
            && named("{topic}", &self.topic)
            && named("{Topic}", &self.topic)
            && agrees(template, "ho", self.who.as_deref())
            && agrees(template, "opic", self.topic.as_deref())
            && (self.may_ask || !is_question(template))
            && !self.templates.contains(&template)
    }

    /// Chooses among those that begin least like what was said just before.
    fn add_one_of(&mut self, fitting: &[&'a str]) -> bool {
        let fresh: Vec<&'a str> = fitting
            .iter()
            .copied()
            .filter(|template| !self.memory.begins_alike(template))
            .collect();
        let fresh = if fresh.is_empty() { fitting } else { &fresh };
        // A sentence that names who or what it is about shows best that something was heard.
        let naming: Vec<&'a str> =
            fresh.iter().copied().filter(|template| template.contains('{')).collect();
        let pool = if naming.is_empty() || self.chance(3) { fresh } else { &naming };
        let at = self.draw.below(pool.len());
        let Some(template) = pool.get(at) else {
            return false;
        };
        self.may_ask &= !is_question(template);
        self.templates.push(template);
        self.parts.push(self.fill(template));
        true
    }

    fn fill(&self, template: &str) -> String {
        let mut text = template.to_owned();
        for (small, large, name) in
            [("{who}", "{Who}", &self.who), ("{topic}", "{Topic}", &self.topic)]
        {
            if let Some(name) = name {
                text = text.replace(small, name).replace(large, &capitalised(name));
            }
        }
        text
    }
}

/// Verbs that only one person or thing does.
const SINGULAR: [&str; 20] = [
    "is", "isn't", "has", "was", "does", "doesn't", "takes", "matters", "knows", "keeps", "gets",
    "throws", "brings", "sets", "asks", "sounds", "seems", "leans", "sits", "comes",
];

/// Whether a template fits the number of the name in the slot that ends so: "is" does not fit a
/// plural.
fn agrees(template: &str, slot_end: &str, name: Option<&str>) -> bool {
    let plural =
        name.is_some_and(|name| name.is_ascii() && name.ends_with('s') && !name.ends_with("ss"));
    if !plural {
        return true;
    }
    let mut pieces = template.split(['{', '}']);
    let before = pieces.next().unwrap_or_default();
    let slot = pieces.next().unwrap_or_default();
    let after = pieces.next().unwrap_or_default();
    let next = after.split_whitespace().next().unwrap_or_default();
    let previous = before.split_whitespace().next_back().unwrap_or_default().to_lowercase();
    !slot.ends_with(slot_end)
        || !(SINGULAR.contains(&next) || SINGULAR.contains(&previous.as_str()))
}

fn capitalised(name: &str) -> String {
    let mut letters = name.chars();
    letters.next().map_or_else(String::new, |first| first.to_uppercase().chain(letters).collect())
}
