//! Why a request may not spend money.

use crate::{Crossing, LineExceeded};
use conclave_core::MicroUsd;
use thiserror::Error;

/// Why nothing was reserved for a request.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum BudgetRefusal {
    /// One request would cost more than one may.
    #[error(
        "this request could cost up to {} micro-USD, and the request limit is {}", most.0, limit.0
    )]
    RequestLimit {
        /// What it could cost, with the cheaper model where there is one.
        most: MicroUsd,
        /// What a request may cost.
        limit: MicroUsd,
    },
    /// A limit of a day or month would be exceeded.
    #[error(
        "the {} limit of {} micro-USD a {} would be exceeded: {} are left",
        .0.line.key.scope.as_str(), .0.line.limit.0, .0.line.key.period.as_str(), .0.left.0
    )]
    LineExceeded(Box<LineExceeded>),
    /// Whoever asks was refused too often or spent too fast, and is stopped for a while.
    #[error("this session was refused or spent too much within a minute; it may go on later")]
    RunningAway {
        /// Until when.
        until_ms: u64,
    },
    /// A budget is in force and nobody knows what a model costs that may be asked.
    #[error("the price of the model `{model}` is not known, and a budget is in force")]
    Unpriced {
        /// Which model.
        model: String,
    },
    /// A limit is in force and cannot be checked.
    #[error("budgets cannot be checked right now")]
    Unavailable,
}

impl BudgetRefusal {
    /// The alert that is due with this refusal.
    #[must_use]
    pub fn crossing(&self) -> Option<&Crossing> {
        match self {
            Self::LineExceeded(exceeded) => exceeded.crossing.as_ref(),
            _ => None,
        }
    }

    /// When it is worth while to ask again, where that is known.
    #[must_use]
    pub fn retry_at_ms(&self) -> Option<u64> {
        match self {
            Self::LineExceeded(exceeded) => Some(exceeded.line.key.ends_ms()),
            Self::RunningAway { until_ms } => Some(*until_ms),
            Self::RequestLimit { .. } | Self::Unpriced { .. } | Self::Unavailable => None,
        }
    }

    pub(crate) fn unpriced(model: &str) -> Self {
        Self::Unpriced { model: model.to_owned() }
    }

    /// Whether whoever asks again and again after it runs away. What is no fault of theirs, such as a
    /// database that is away, does not count.
    pub(crate) const fn is_over_limit(&self) -> bool {
        matches!(self, Self::RequestLimit { .. } | Self::LineExceeded(_))
    }
}
