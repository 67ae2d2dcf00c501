//! What an action does: by its name first, because arguments often only name what it is about.
//!
//! **Invariant:** the verb decides. A word for looking elsewhere in the name ("send_status") excuses
//! nothing.

use super::facts::{Facts, any};
use super::words::{Effect, Words};
use std::collections::BTreeMap;

/// What the action does.
#[must_use]
pub fn of(words: &Words, facts: &Facts) -> Effect {
    let named = Named::of(words, facts);
    if named.looks {
        return Effect::Read;
    }
    match named.gravest {
        Some(effect) if effect < Effect::Control => effect,
        first => {
            let told = told(words, facts, first.is_none());
            match (told, first) {
                // A tool that changes is not believed to look because of a word beside.
                (Some(told), Some(Effect::Change)) if is_look(told) => Effect::Change,
                (Some(told), _) => told,
                (None, first) => first.unwrap_or(Effect::Change),
            }
        }
    }
}

const fn is_look(effect: Effect) -> bool {
    matches!(effect, Effect::Read | Effect::Draft)
}

/// What the name says.
struct Named {
    looks: bool,
    gravest: Option<Effect>,
}

impl Named {
    fn of(words: &Words, facts: &Facts) -> Self {
        let mut hits = Vec::new();
        for word in &facts.name_order {
            if word.is_ascii() {
                hits.extend(latin(words, word));
            } else {
                hits.extend(inside(words, word));
            }
        }
        // Neighbours that are one word ("turn_off") are deeds, and none of them looks.
        let pairs = facts.name_order.windows(2).map(<[String]>::concat);
        let joined: Vec<_> = pairs.flat_map(|pair| latin(words, &pair)).map(|hit| hit.0).collect();
        let looks = joined.is_empty() && looks(words, facts, &hits);
        let does = hits.iter().map(|hit| hit.0).chain(joined).filter(|effect| !is_look(*effect));
        let gravest = does.min().or_else(|| hits.first().map(|hit| hit.0));
        Self { looks, gravest }
    }
}

/// An effect of the name and whether its word is a thing as often as a deed.
type Hit = (Effect, bool);

fn latin(words: &Words, word: &str) -> Vec<Hit> {
    let thing = words.names.things.iter().any(|thing| thing == word);
    let mut hits: Vec<_> = words
        .effects
        .iter()
        .filter(|(_, list)| list.iter().any(|known| known == word))
        .map(|(effect, _)| (*effect, thing))
        .collect();
    hits.sort_unstable();
    hits
}

/// The effects of a run without spaces, in the order their words end; of those that end together the
/// longest counts, because "ロック解除" opens and "解除" alone switches off.
fn inside(words: &Words, run: &str) -> Vec<Hit> {
    let mut found = BTreeMap::new();
    for (effect, list) in &words.effects {
        for word in list.iter().filter(|word| !word.is_ascii()) {
            if let Some(at) = run.rfind(word.as_str()) {
                let hit = found.entry(at + word.len()).or_insert((word.len(), *effect));
                *hit = (*hit).max((word.len(), *effect));
            }
        }
    }
    found.into_values().map(|(_, effect)| (effect, true)).collect()
}

/// Whether the name says that the action only looks or prepares.
fn looks(words: &Words, facts: &Facts, hits: &[Hit]) -> bool {
    if any(&facts.name, &words.names.joins) {
        return hits.iter().all(|hit| is_look(hit.0));
    }
    if let Some((effect, _)) = hits.iter().find(|hit| !hit.1) {
        return is_look(*effect);
    }
    // Without a verb the last word tells what the name is a name of, unless money is to be moved.
    let ends = facts.name_order.last().is_some_and(|last| {
        let ends = if last.is_ascii() { latin(words, last) } else { inside(words, last) };
        ends.last().is_some_and(|hit| is_look(hit.0))
    });
    ends && facts.number(&["amount", "金額"]).is_none()
}

/// What the arguments say is to be done; all of them where the name says nothing.
fn told(words: &Words, facts: &Facts, all: bool) -> Option<Effect> {
    let says = |list: &[String]| {
        any(&facts.deeds, list) || any(&facts.keys, list) || all && any(&facts.words, list)
    };
    let lists = words.effects.iter().filter(|(_, list)| says(list));
    let off = switched_off(facts).then_some(Effect::Disable);
    lists.map(|(effect, _)| *effect).chain(off).min()
}

/// "state: off", "enabled: no".
fn switched_off(facts: &Facts) -> bool {
    let switches = ["enabled", "active", "armed", "on"];
    facts.deeds.contains("off")
        || facts.flags.iter().any(|(key, yes)| !yes && switches.contains(&key.as_str()))
}
