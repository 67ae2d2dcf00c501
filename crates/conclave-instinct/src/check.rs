//! What must hold of the directives in a set besides its signature.
//!
//! **Invariant:** a signature says who wrote a set, not that it is whole; a signer's slip is found
//! here.

use crate::InstinctError;
use crate::directive::{Core, Directive, Topic};
use crate::instinct::COUNT;
use conclave_core::DirectiveId;
use std::collections::HashMap;

/// The core that each of the first five directives states.
const CORES: [Core; 5] =
    [Core::ProtectLife, Core::OwnLife, Core::NoTerrorism, Core::NoMassHarm, Core::NoOverride];

/// Checks numbers, cores and texts.
pub(crate) fn check(directives: &[Directive]) -> Result<(), InstinctError> {
    numbers(directives)?;
    cores(directives)?;
    texts(directives, "en")?;
    texts(directives, "ja")
}

fn numbers(directives: &[Directive]) -> Result<(), InstinctError> {
    if directives.len() != usize::from(COUNT) {
        return Err(InstinctError::WrongCount { found: directives.len(), expected: COUNT });
    }
    for (directive, expected) in directives.iter().zip((1..=COUNT).map(DirectiveId)) {
        if directive.id != expected {
            return Err(InstinctError::WrongNumber { found: directive.id, expected });
        }
    }
    Ok(())
}

/// The first five state the cores in order; a duty stands under `duty`, a hazard under a core.
fn cores(directives: &[Directive]) -> Result<(), InstinctError> {
    for (index, directive) in directives.iter().enumerate() {
        let is_duty = matches!(directive.topic, Topic::Duty(_));
        let fits = is_duty == (directive.core == Core::Duty);
        let states = CORES.get(index).is_none_or(|&core| core == directive.core);
        if !(fits && states) {
            let Directive { id, topic, core, .. } = *directive;
            return Err(InstinctError::WrongCore { id, topic, core });
        }
    }
    Ok(())
}

fn texts(directives: &[Directive], language: &'static str) -> Result<(), InstinctError> {
    let mut seen = HashMap::with_capacity(directives.len());
    for directive in directives {
        let (id, gist) = (directive.id, gist(directive.text(language)));
        if gist.is_empty() {
            return Err(InstinctError::EmptyText { id, language });
        }
        if let Some(first) = seen.insert(gist, id) {
            return Err(InstinctError::Duplicate { first, second: id, language });
        }
    }
    Ok(())
}

/// A text without what does not change its meaning: letter case, spaces and punctuation.
fn gist(text: &str) -> String {
    text.chars().filter(|c| c.is_alphanumeric()).flat_map(char::to_lowercase).collect()
}
