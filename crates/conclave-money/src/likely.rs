//! What requests are likely to cost, by what the latest of the same tenant and model did cost.
//!
//! A bound counts a token for every byte, every attempt and the longest reply; what is paid in the end is a part of
//! it, and much the same part from one request of a tenant to the next. The least of the latest parts decides, so that
//! a request that would have fitted is not turned away.

use conclave_core::MicroUsd;
use std::collections::{HashMap, VecDeque};
use std::sync::{Mutex, PoisonError};

/// So many of the latest requests are known of each.
const LATEST_MAX: usize = 16;
/// So many tenants and models are known at once.
const KNOWN_MAX: usize = 10_000;
/// The part of its bound that a request costs of which nothing is known, in millionths: a sixteenth.
const PART_UNKNOWN: u64 = 62_500;
const WHOLE: u64 = 1_000_000;

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Spender {
    tenant: u64,
    model: String,
}

/// The parts of their bounds that the latest requests did cost, in millionths.
#[derive(Debug, Default)]
pub(crate) struct RecentCosts(Mutex<HashMap<Spender, VecDeque<u64>>>);

impl RecentCosts {
    /// What a request is likely to cost that costs so much at most.
    pub(crate) fn likely(&self, tenant: u64, model: &str, most: MicroUsd) -> MicroUsd {
        let known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let latest = known.get(&Spender { tenant, model: model.to_owned() });
        let part = latest.and_then(|parts| parts.iter().min().copied()).unwrap_or(PART_UNKNOWN);
        let likely = u128::from(most.0) * u128::from(part) / u128::from(WHOLE);
        MicroUsd(u64::try_from(likely).unwrap_or(most.0).clamp(most.0.min(1), most.0))
    }

    /// Learns what one did cost. One that cost nothing was not answered, and says nothing of those that are.
    pub(crate) fn learn(&self, tenant: u64, model: &str, most: MicroUsd, spent: MicroUsd) {
        if spent.0 == 0 || most.0 == 0 {
            return;
        }
        let part = u128::from(spent.0) * u128::from(WHOLE) / u128::from(most.0);
        let part = u64::try_from(part).unwrap_or(WHOLE).min(WHOLE);
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let spender = Spender { tenant, model: model.to_owned() };
        if known.len() >= KNOWN_MAX && !known.contains_key(&spender) {
            known.clear();
        }
        let latest = known.entry(spender).or_default();
        if latest.len() >= LATEST_MAX {
            latest.pop_front();
        }
        latest.push_back(part);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_least_of_the_latest_parts_decides_for_the_same_tenant_and_model() {
        let recent = RecentCosts::default();
        let likely = |model: &str, most| recent.likely(7, model, MicroUsd(most)).0;
        assert_eq!(likely("m", 28_800), 1_800, "a sixteenth where nothing is known");
        recent.learn(7, "m", MicroUsd(28_800), MicroUsd(0));
        assert_eq!(likely("m", 28_800), 1_800);
        recent.learn(7, "m", MicroUsd(1_000), MicroUsd(500));
        recent.learn(7, "m", MicroUsd(1_000), MicroUsd(300));
        assert_eq!((likely("m", 2_000), likely("other", 1_600)), (600, 100));
        assert_eq!(recent.likely(8, "m", MicroUsd(1_600)), MicroUsd(100), "another tenant");
        for _ in 0..LATEST_MAX {
            recent.learn(7, "m", MicroUsd(1_000), MicroUsd(2_000));
        }
        assert_eq!(likely("m", 2_000), 2_000, "never more than the most");
        assert_eq!((likely("m", 0), likely("new", 3)), (0, 1), "and never nothing for something");
    }
}
