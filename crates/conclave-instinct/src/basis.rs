//! Which directive a block, a refusal or a veto rests on.
//!
//! **Invariant:** every category and every duty rests on exactly one directive that is about it, so
//! that a lookup always has an answer and the answer is always to the point.

use crate::InstinctError;
use crate::directive::{Directive, Duty, Topic};
use conclave_core::{Category, DirectiveId, Reason};
use std::collections::BTreeMap;

/// The directive under every topic, in the order of declaration, and under the objections that have
/// one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Basis {
    hazards: [DirectiveId; Category::ALL.len()],
    duties: [DirectiveId; Duty::ALL.len()],
    objections: BTreeMap<Reason, DirectiveId>,
}

impl Basis {
    /// Reads what the directives claim; refuses gaps, quarrels and claims that are beside the
    /// point.
    pub(crate) fn of(directives: &[Directive]) -> Result<Self, InstinctError> {
        let claims = topics(directives)?;
        let find = |topic| claims.get(&topic).copied().ok_or(InstinctError::NoBasis { topic });
        let mut hazards = [DirectiveId(0); Category::ALL.len()];
        for (slot, &category) in hazards.iter_mut().zip(Category::ALL) {
            *slot = find(Topic::Hazard(category))?;
        }
        let mut duties = [DirectiveId(0); Duty::ALL.len()];
        for (slot, &duty) in duties.iter_mut().zip(Duty::ALL) {
            *slot = find(Topic::Duty(duty))?;
        }
        Ok(Self { hazards, duties, objections: objections(directives)? })
    }

    /// What a block of this category rests on.
    pub(crate) const fn hazard(&self, category: Category) -> DirectiveId {
        self.hazards[category as usize]
    }

    /// What a refusal out of this duty rests on.
    pub(crate) const fn duty(&self, duty: Duty) -> DirectiveId {
        self.duties[duty as usize]
    }

    /// What this objection rests on.
    pub(crate) fn objection(&self, reason: Reason) -> Option<DirectiveId> {
        self.objections.get(&reason).copied()
    }
}

fn topics(directives: &[Directive]) -> Result<BTreeMap<Topic, DirectiveId>, InstinctError> {
    let mut claims = BTreeMap::new();
    for directive in directives {
        let second = directive.id;
        for &topic in &directive.basis_for {
            if !directive.can_support(topic) {
                return Err(InstinctError::WrongBasis { id: second, topic });
            }
            if let Some(first) = claims.insert(topic, second) {
                return Err(InstinctError::TwoBases { topic, first, second });
            }
        }
    }
    Ok(claims)
}

fn objections(directives: &[Directive]) -> Result<BTreeMap<Reason, DirectiveId>, InstinctError> {
    let mut claims = BTreeMap::new();
    for directive in directives {
        let second = directive.id;
        for &reason in &directive.objections {
            if let Some(first) = claims.insert(reason, second) {
                return Err(InstinctError::TwoObjections { reason, first, second });
            }
        }
    }
    Ok(claims)
}
