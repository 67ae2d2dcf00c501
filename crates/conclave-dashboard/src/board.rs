//! The figures of the overview.
//!
//! **Invariant:** two questions to the archive, asked at once, whatever the number of decisions.

use crate::chart::since_ms;
use crate::dashboard::Dashboard;
use crate::figure::{Moment, count, share};
use crate::page::{Trouble, archive_trouble};
use conclave_core::Outcome;
use conclave_engine::{DecisionFilter, DecisionRow, Tally};
use serde::Serialize;

/// The latest decisions that are looked at one by one.
const LATEST_MAX: u32 = 1_000;

/// What the overview knows.
pub(crate) struct Board {
    pub(crate) tally: Tally,
    /// Newest first; also older ones than the chart shows.
    pub(crate) latest: Vec<DecisionRow>,
    pub(crate) now_ms: u64,
}

/// The figures as they are shown.
#[derive(Debug, PartialEq, Eq, Serialize)]
pub(crate) struct Figures {
    pub(crate) decisions: String,
    pub(crate) delivered_share: String,
    pub(crate) delivered: String,
    pub(crate) regenerated: String,
    pub(crate) regenerated_of: String,
    pub(crate) withheld: String,
    pub(crate) crisis: String,
    pub(crate) crisis_of: String,
    pub(crate) entries: String,
    pub(crate) root: String,
    pub(crate) clock: String,
    /// The id of the newest decision.
    pub(crate) newest: String,
}

impl Board {
    /// Asks the archive.
    ///
    /// # Errors
    /// When it does not answer.
    pub(crate) async fn read(dashboard: &Dashboard, tenant: u64) -> Result<Self, Trouble> {
        let now_ms = dashboard.now_ms();
        let archive = &dashboard.ports().archive;
        let newest =
            DecisionFilter { tenant: Some(tenant), limit: LATEST_MAX, ..DecisionFilter::default() };
        let (tally, latest) = futures_util::future::join(
            archive.tally(Some(tenant), since_ms(now_ms)),
            archive.list(newest),
        )
        .await;
        let tally = tally.map_err(|error| archive_trouble(&error))?;
        let latest = latest.map_err(|error| archive_trouble(&error))?;
        Ok(Self { tally, latest, now_ms })
    }

    /// Decisions since the chart begins.
    pub(crate) fn decisions(&self) -> u64 {
        self.tally.outcomes.iter().map(|(_, count)| count).sum()
    }

    /// Those whose reply left.
    pub(crate) fn delivered(&self) -> u64 {
        let left = |name: &str| Outcome::parse(name).is_some_and(Outcome::is_verified);
        self.tally.outcomes.iter().filter(|(name, _)| left(name)).map(|(_, count)| count).sum()
    }

    /// The figures as they are shown.
    pub(crate) fn figures(&self) -> Figures {
        let (decisions, delivered) = (self.decisions(), self.delivered());
        let recent = self.recent();
        let of_all = |row: fn(&DecisionRow) -> bool| {
            recent.iter().filter(|decision| row(decision)).count() as u64
        };
        let regenerated = of_all(|row| row.attempts > 1);
        let looked_at = recent.len() as u64;
        Figures {
            decisions: count(decisions),
            delivered_share: share(delivered, decisions),
            delivered: count(delivered),
            regenerated: count(regenerated),
            regenerated_of: self.scope(regenerated, looked_at),
            withheld: count(decisions.saturating_sub(delivered)),
            crisis: count(of_all(|row| row.crisis)),
            crisis_of: self.scope(of_all(|row| row.crisis), looked_at),
            entries: count(self.tally.entries),
            root: hex::encode(&self.tally.root[..6]),
            clock: Moment::at(self.now_ms).clock().to_owned(),
            newest: self.latest.first().map(|row| row.id.to_string()).unwrap_or_default(),
        }
    }

    /// The latest decisions that the chart shows.
    fn recent(&self) -> &[DecisionRow] {
        let since_ms = since_ms(self.now_ms);
        let end = self.latest.partition_point(|row| row.timestamp_ms >= since_ms);
        self.latest.get(..end).unwrap_or_default()
    }

    /// What a count of single decisions was counted among.
    fn scope(&self, part: u64, looked_at: u64) -> String {
        if looked_at == 0 {
            "none yet".into()
        } else if looked_at < u64::from(LATEST_MAX) {
            format!("{} of decisions", share(part, looked_at))
        } else {
            format!("among the latest {}", count(looked_at))
        }
    }
}
