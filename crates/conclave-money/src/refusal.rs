//! Why a request may not spend money.

use crate::{Crossing, LineExceeded, Outlook};
use conclave_core::MicroUsd;
use thiserror::Error;

/// How long requests that run take to be settled, about.
const SETTLED_WITHIN_MS: u64 = 1_000;

/// Why nothing was reserved for a request.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum BudgetRefusal {
    /// One request would cost more than one may.
    #[error("this request is likely to cost {likely}, and the request limit is {limit}")]
    RequestLimit {
        /// What it is likely to cost, with the cheaper model where there is one.
        likely: MicroUsd,
        /// What a request may cost.
        limit: MicroUsd,
    },
    /// A limit of a day or month would be exceeded.
    #[error("{}", line_sentence(.0))]
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
    pub fn retry_at_ms(&self, now_ms: u64) -> Option<u64> {
        match self {
            Self::LineExceeded(exceeded) => match exceeded.outlook {
                Outlook::Soon => Some(now_ms.saturating_add(SETTLED_WITHIN_MS)),
                Outlook::NextPeriod => Some(exceeded.line.key.ends_ms()),
                Outlook::Never => None,
            },
            Self::RunningAway { until_ms } => Some(*until_ms),
            Self::RequestLimit { .. } | Self::Unpriced { .. } | Self::Unavailable => None,
        }
    }

    pub(crate) fn unpriced(model: &str) -> Self {
        Self::Unpriced { model: model.to_owned() }
    }

    /// Whether whoever asks again and again after it runs away. What is no fault of theirs does not count:
    /// a database that is away, and money that other requests have reserved for a moment.
    pub(crate) fn is_over_limit(&self) -> bool {
        match self {
            Self::RequestLimit { .. } => true,
            Self::LineExceeded(exceeded) => exceeded.outlook != Outlook::Soon,
            Self::RunningAway { .. } | Self::Unpriced { .. } | Self::Unavailable => false,
        }
    }
}

fn line_sentence(exceeded: &LineExceeded) -> String {
    let LineExceeded { line, left, likely, outlook, .. } = exceeded;
    let (scope, limit, period) = (line.key.scope.as_str(), line.limit, line.key.period.as_str());
    match outlook {
        Outlook::Soon => format!(
            "of the {scope} limit of {limit} a {period} {left} are left while other requests run, and this \
             one is likely to cost {likely}"
        ),
        Outlook::NextPeriod => format!(
            "the {scope} limit of {limit} a {period} would be exceeded: {left} are left, and this request \
             is likely to cost {likely}"
        ),
        Outlook::Never => format!(
            "this request is likely to cost {likely}, more than the whole {scope} limit of {limit} a {period}"
        ),
    }
}
