//! What was counted for a rule, and what follows from it.
//!
//! **Invariant:** precision compares the share of harmful texts with the share of ordinary texts, so that it does
//! not depend on how many of each there are.

use super::side::{RuleGroups, Side};
use crate::rows::Row;
use conclave_detect::RuleSummary;
use serde::Serialize;
use std::cmp::Ordering;

/// A rule that decides fires on ordinary text at most once in so many.
pub const ORDINARY_PER_ALARM: usize = 5000;
/// A rule that decides is at least so precise.
pub const LEAST_PRECISION: f64 = 0.6;
/// Fewer alarms say nothing about a rate or a precision.
const ALARMS_THAT_COUNT: usize = 3;

/// Texts on each side.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    pub ordinary: usize,
    pub harmful: usize,
}

impl Tally {
    pub fn of_rows<'a>(rows: impl Iterator<Item = &'a Row>, groups: &RuleGroups) -> Self {
        let mut tally = Self::default();
        for row in rows {
            match groups.side_of(row) {
                Side::Ordinary => tally.ordinary += 1,
                Side::Harmful => tally.harmful += 1,
                Side::Neither => {}
            }
        }
        tally
    }
}

/// Why a rule may not decide by itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum RuleFault {
    /// It fires on ordinary text and never on what it is about.
    OnlyOrdinary,
    /// It is not precise enough.
    Imprecise,
    /// It fires on ordinary text too often.
    TooOften,
}

/// One rule and how often it fired.
#[derive(Clone, Debug, Serialize)]
pub struct RuleRecord {
    pub rule: String,
    pub is_hint: bool,
    /// Ordinary texts it fired on, and how many it was tried on.
    pub alarms: usize,
    pub ordinary: usize,
    /// Harmful texts it fired on, and how many it was tried on.
    pub hits: usize,
    pub harmful: usize,
    pub alarms_per_5000: f64,
    /// Absent where it never fired.
    pub precision: Option<f64>,
    pub fault: Option<RuleFault>,
}

impl RuleRecord {
    pub fn new(rule: RuleSummary<'_>, fired: Tally, tried: Tally) -> Self {
        let alarm_rate = share(fired.ordinary, tried.ordinary);
        let hit_rate = share(fired.harmful, tried.harmful);
        let fires = fired != Tally::default();
        let mut record = Self {
            rule: rule.source.to_owned(),
            is_hint: rule.is_hint,
            alarms: fired.ordinary,
            ordinary: tried.ordinary,
            hits: fired.harmful,
            harmful: tried.harmful,
            alarms_per_5000: share(fired.ordinary * ORDINARY_PER_ALARM, tried.ordinary),
            precision: fires.then(|| hit_rate / (hit_rate + alarm_rate)),
            fault: None,
        };
        record.fault = record.find_fault();
        record
    }

    fn find_fault(&self) -> Option<RuleFault> {
        let counts = self.alarms >= ALARMS_THAT_COUNT;
        if self.hits == 0 && self.alarms > 0 {
            Some(RuleFault::OnlyOrdinary)
        } else if counts && self.precision.is_some_and(|precision| precision < LEAST_PRECISION) {
            Some(RuleFault::Imprecise)
        } else if counts && self.alarms * ORDINARY_PER_ALARM > self.ordinary {
            Some(RuleFault::TooOften)
        } else {
            None
        }
    }

    /// Whether it decides by itself and may not.
    pub const fn breaks_limits(&self) -> bool {
        self.fault.is_some() && !self.is_hint
    }

    /// Rules that break the limits, then by how often each fires on ordinary text, then the less precise.
    pub fn worst_first(&self, other: &Self) -> Ordering {
        let precision = |one: &Self| one.precision.unwrap_or(1.0);
        (other.breaks_limits().cmp(&self.breaks_limits()))
            .then(other.alarms.cmp(&self.alarms))
            .then(precision(self).total_cmp(&precision(other)))
            .then_with(|| self.rule.cmp(&other.rule))
    }
}

#[expect(clippy::cast_precision_loss, reason = "counts of rows are far below 2^52")]
fn share(part: usize, whole: usize) -> f64 {
    part as f64 / whole.max(1) as f64
}
