//! How often decisions were wrong, as far as rulings on appeals tell.
//!
//! **Invariant:** the share is one of decisions that somebody appealed, and says so: people appeal what they
//! think was wrong, so it is no share of all decisions.

use super::Appeals;
use crate::people::PeopleError;
use conclave_core::TenantId;
use conclave_eval::Estimate;
use conclave_govern::RulingCount;
use serde::Serialize;

/// How often decisions that were appealed turned out to be wrong.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct AppealEstimates {
    /// Replies that were withheld and should not have been.
    pub false_alarms: ErrorRate,
    /// Replies that were sent and should not have been.
    pub misses: ErrorRate,
}

/// A share of the appeals that were ruled on, with its 95 % interval.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct ErrorRate {
    /// How many appeals were ruled on.
    pub ruled: u64,
    /// How many of them found the decision wrong, at least in part.
    pub wrong: u64,
    /// The share, with Wilson's interval; absent where nothing was ruled on.
    pub share: Option<Estimate>,
}

impl ErrorRate {
    fn of_count(count: RulingCount) -> Self {
        let size = |number: u64| usize::try_from(number).unwrap_or(usize::MAX);
        let (ruled, wrong) = (count.all(), count.wrong());
        Self { ruled, wrong, share: Estimate::share(size(wrong), size(ruled)) }
    }
}

impl Appeals {
    /// What the rulings of a tenant tell so far.
    ///
    /// # Errors
    /// When the records do not answer.
    pub async fn estimates(&self, tenant: &TenantId) -> Result<AppealEstimates, PeopleError> {
        let tally = self.people.appeal_tally(tenant).await?;
        Ok(AppealEstimates {
            false_alarms: ErrorRate::of_count(tally.withheld),
            misses: ErrorRate::of_count(tally.sent),
        })
    }
}
