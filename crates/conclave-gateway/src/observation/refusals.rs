//! Requests refused before any decision, as ledger entries.
//!
//! **Invariant:** a flood of refusals cannot fill the ledger: beyond a budget they are summed up and
//! written as one entry with a count, so that the sum still tells the truth.

use conclave_engine::{Engine, Ledger};
use conclave_ledger::{Body, Draft, Kind, Value, tenant_number};
use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};
use std::time::Instant;

/// Entries written at once after a quiet time.
const BURST: f64 = 20_000.0;
/// Entries a second in a lasting flood.
const PER_SECOND: f64 = 50.0;

/// A request that was refused: what refusals are summed up by.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct RequestRefusal {
    pub status: u16,
    pub code: &'static str,
    /// The route, as declared.
    pub route: String,
    /// Whose key, if one was valid.
    pub tenant: Option<String>,
}

/// Writes refusals to the ledger, within a budget.
pub(crate) struct RefusalLog {
    state: Mutex<RefusalBudget>,
}

struct RefusalBudget {
    tokens: f64,
    refilled: Instant,
    overflow: BTreeMap<RequestRefusal, u64>,
}

impl Default for RefusalLog {
    fn default() -> Self {
        let budget =
            RefusalBudget { tokens: BURST, refilled: Instant::now(), overflow: BTreeMap::new() };
        Self { state: Mutex::new(budget) }
    }
}

impl RefusalLog {
    pub(crate) fn note(&self, engine: &Engine, refusal: RequestRefusal) {
        let due = {
            let mut budget = self.state.lock().unwrap_or_else(PoisonError::into_inner);
            budget.refill(Instant::now());
            budget.spend_or_sum_up(refusal)
        };
        if let Some(refusal) = due {
            write_refusal(engine, &refusal, 1);
        }
    }

    /// Writes what was summed up; called every second and at the end.
    pub(crate) fn flush(&self, engine: &Engine) {
        let overflow = {
            let mut budget = self.state.lock().unwrap_or_else(PoisonError::into_inner);
            std::mem::take(&mut budget.overflow)
        };
        for (refusal, count) in overflow {
            write_refusal(engine, &refusal, count);
        }
    }
}

impl RefusalBudget {
    fn refill(&mut self, now: Instant) {
        let elapsed = now.saturating_duration_since(self.refilled).as_secs_f64();
        self.tokens = (self.tokens + elapsed * PER_SECOND).min(BURST);
        self.refilled = now;
    }

    /// The refusal, where it may be an entry of its own.
    fn spend_or_sum_up(&mut self, refusal: RequestRefusal) -> Option<RequestRefusal> {
        if self.tokens >= 1.0 {
            self.tokens -= 1.0;
            return Some(refusal);
        }
        *self.overflow.entry(refusal).or_default() += 1;
        None
    }
}

fn write_refusal(engine: &Engine, refusal: &RequestRefusal, count: u64) {
    let draft = Draft {
        kind: Kind::RequestRefused,
        audit: None,
        tenant: refusal.tenant.as_deref().map_or(0, tenant_number),
        subject: None,
        session: None,
        parent: None,
        policy: engine.settings.policy,
        directives: engine.settings.directives,
        build: engine.settings.build.clone(),
        public: Value::map([
            ("status", Value::Uint(u64::from(refusal.status))),
            ("code", Value::from(refusal.code)),
            ("route", Value::from(refusal.route.as_str())),
            ("count", Value::Uint(count)),
        ]),
    };
    let ledger: &dyn Ledger = &*engine.ledger;
    ledger.append_soon(draft, Body::empty());
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[test]
    fn a_flood_is_summed_up_and_nothing_is_lost() {
        let now = Instant::now();
        let mut budget = RefusalBudget { tokens: 2.0, refilled: now, overflow: BTreeMap::new() };
        let refusal =
            || RequestRefusal { status: 401, code: "x", route: "/v1".into(), tenant: None };
        let written = (0..10).filter(|_| budget.spend_or_sum_up(refusal()).is_some()).count();
        assert_eq!(written, 2);
        assert_eq!(budget.overflow.values().sum::<u64>(), 8);
        budget.refill(now + Duration::from_secs(1));
        assert!((budget.tokens - PER_SECOND).abs() < 1e-6);
    }
}
