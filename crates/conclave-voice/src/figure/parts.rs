//! The parts messages are made of, and how a vector chooses among them.
//!
//! **Invariant:** verbosity only ever adds parts, so that a more verbose voice is never shorter.

use super::{Situation, Vector, vector::Register};
use crate::{VoiceError, error};
use conclave_core::Category;
use serde::Deserialize;

/// Every situation's parts in one language.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Script {
    refusal: Parts,
    safe_completion: Parts,
    crisis_support: Parts,
    escalation_notice: Parts,
    hold_notice: Parts,
    exhausted: Parts,
    guard_unavailable: Parts,
    no_elders: Parts,
}

impl Script {
    pub(super) fn parse(file: &str, text: &str) -> Result<Self, VoiceError> {
        let script: Self = error::parse(file, text)?;
        for situation in Situation::ALL {
            let what = script.of(situation).lacking();
            if let Some(what) = what {
                let name = situation.as_str();
                return Err(VoiceError::missing(file, format!("{what} for {name}")));
            }
        }
        Ok(script)
    }

    pub(super) const fn of(&self, situation: Situation) -> &Parts {
        match situation {
            Situation::Refusal => &self.refusal,
            Situation::SafeCompletion => &self.safe_completion,
            Situation::CrisisSupport => &self.crisis_support,
            Situation::EscalationNotice => &self.escalation_notice,
            Situation::HoldNotice => &self.hold_notice,
            Situation::Exhausted => &self.exhausted,
            Situation::GuardUnavailable => &self.guard_unavailable,
            Situation::NoElders => &self.no_elders,
        }
    }
}

/// The parts of one situation.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Parts {
    #[serde(default)]
    opening: Vec<Part>,
    core: Vec<Part>,
    #[serde(default)]
    elaboration: Vec<Part>,
    closing: Vec<Part>,
}

/// One sentence or two, in three registers.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Part {
    /// The empathy (openings) or verbosity (elaborations) from which it is said.
    #[serde(default)]
    at: f32,
    /// Only with, or only without, people on duty.
    when: Option<Staffing>,
    /// Only for these categories; empty is for all.
    #[serde(default)]
    category: Vec<Category>,
    casual: String,
    plain: String,
    formal: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Staffing {
    Staffed,
    Unstaffed,
}

/// What a message is asked for.
#[derive(Clone, Copy, Debug)]
pub(super) struct Query {
    pub(super) category: Option<Category>,
    pub(super) staffed: bool,
    pub(super) vector: Vector,
}

impl Part {
    fn fits(&self, query: &Query) -> bool {
        let staffing = match self.when {
            None => true,
            Some(when) => (when == Staffing::Staffed) == query.staffed,
        };
        staffing && (self.category.is_empty() || self.is_specific(query))
    }

    fn is_specific(&self, query: &Query) -> bool {
        query.category.is_some_and(|category| self.category.contains(&category))
    }

    fn is_general_for(&self, staffed: bool) -> bool {
        self.category.is_empty()
            && self.when.is_none_or(|when| (when == Staffing::Staffed) == staffed)
    }

    fn worded(&self, register: Register) -> &str {
        match register {
            Register::Casual => &self.casual,
            Register::Plain => &self.plain,
            Register::Formal => &self.formal,
        }
    }
}

impl Parts {
    /// The parts of a message, in order.
    pub(super) fn compose(&self, query: &Query) -> Vec<&str> {
        let vector = query.vector;
        let register = vector.register();
        highest(&self.opening, query, vector.empathy)
            .into_iter()
            .chain(highest(&self.core, query, 0.0))
            .chain(rungs(&self.elaboration, query, vector.verbosity))
            .chain(highest(&self.closing, query, 0.0))
            .map(|part| part.worded(register))
            .collect()
    }

    /// What this situation cannot do without and has not.
    fn lacking(&self) -> Option<&'static str> {
        let covers = |parts: &[Part]| {
            [true, false]
                .into_iter()
                .all(|staffed| parts.iter().any(|part| part.is_general_for(staffed)))
        };
        if !covers(&self.core) {
            Some("a general core")
        } else if !covers(&self.closing) {
            Some("a general closing")
        } else {
            None
        }
    }
}

/// The part on the highest rung the value reaches; on one rung, the specific one.
fn highest<'a>(parts: &'a [Part], query: &Query, value: f32) -> Option<&'a Part> {
    let mut best: Option<&Part> = None;
    for part in reached(parts, query, value) {
        let better = best.is_none_or(|best| {
            part.at > best.at
                || (same_rung(part, best) && part.is_specific(query) && !best.is_specific(query))
        });
        if better {
            best = Some(part);
        }
    }
    best
}

/// One part for every rung the value reaches, in the order of the file; the specific one where
/// there is.
fn rungs<'a>(parts: &'a [Part], query: &Query, value: f32) -> Vec<&'a Part> {
    let mut chosen: Vec<&Part> = Vec::new();
    for part in reached(parts, query, value) {
        match chosen.iter_mut().find(|other| same_rung(other, part)) {
            None => chosen.push(part),
            Some(other) if part.is_specific(query) && !other.is_specific(query) => *other = part,
            Some(_) => {}
        }
    }
    chosen
}

fn reached<'a>(parts: &'a [Part], query: &Query, value: f32) -> impl Iterator<Item = &'a Part> {
    parts.iter().filter(move |part| part.at <= value && part.fits(query))
}

fn same_rung(one: &Part, other: &Part) -> bool {
    (one.at - other.at).abs() < f32::EPSILON
}
