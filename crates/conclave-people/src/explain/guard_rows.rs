//! What guards did, as a leaf keeps it: `[guard, phase, disposition, code]` each.
//!
//! **Invariant:** what guards found that only watch is read apart, and is never taken for what was done.

use conclave_core::{Disposition, GuardCode, Outcome, Phase};
use conclave_ledger::Value;
use conclave_ports::{StoredDecision, array};
use serde_json::{Value as Json, json};

/// What one guard did.
#[derive(Clone, Copy)]
pub(super) struct GuardRow<'a> {
    pub guard: &'a str,
    pub phase: &'a str,
    pub disposition: Disposition,
    pub code: &'a str,
}

impl GuardRow<'_> {
    pub(super) fn is(&self, disposition: Disposition, code: GuardCode) -> bool {
        self.disposition == disposition && self.code == code.as_str()
    }

    pub(super) fn is_at(&self, disposition: Disposition, phase: Phase) -> bool {
        self.disposition == disposition && self.phase == phase.as_str()
    }
}

/// What guards did; a row of another form says nothing.
pub(super) fn guard_rows(stored: &StoredDecision) -> Vec<GuardRow<'_>> {
    let rows = array(stored.public("guards")).iter().filter_map(Value::as_array);
    let rows = rows.filter_map(|row| {
        let word = |at: usize| row.get(at).and_then(Value::as_str).unwrap_or_default();
        let disposition = Disposition::parse(word(2))?;
        Some(GuardRow { guard: word(0), phase: word(1), disposition, code: word(3) })
    });
    rows.collect()
}

/// The guard that had the last word where guards, and not the panel, ended a matter.
pub(super) fn stopping_guard(
    stored: &StoredDecision,
    outcome: Option<Outcome>,
) -> Option<GuardRow<'_>> {
    let least = match outcome {
        Some(Outcome::Blocked | Outcome::Held) => Disposition::Held,
        Some(Outcome::GuardUnavailable) => Disposition::Failed,
        _ => return None,
    };
    let rows = guard_rows(stored).into_iter().filter(|row| row.disposition >= least);
    rows.max_by_key(|row| row.disposition)
}

/// The rows under a name of the leaf, as JSON: `guards` for what was done, `monitored` for what guards found
/// that only watch.
pub(super) fn guard_views(stored: &StoredDecision, name: &str) -> Json {
    let rows = array(stored.public(name)).iter().filter_map(Value::as_array);
    let views = rows.map(|row| {
        let word = |at: usize| row.get(at).and_then(Value::as_str);
        json!({"guard": word(0), "phase": word(1), "outcome": word(2), "code": word(3)})
    });
    views.collect()
}
