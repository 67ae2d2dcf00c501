//! How full the spool is, how old what waits in it is, and what a person should know of it.
//!
//! **Invariant:** what is remembered about age is bounded: one mark a second at most, and no more
//! marks than a long outage needs.

use super::progress::Position;
use conclave_engine::{LedgerAlert, LedgerState};
use std::collections::{BTreeMap, VecDeque};
use std::time::{Duration, Instant};

/// Entries that became durable within this time share a mark.
const MARK_EVERY: Duration = Duration::from_secs(1);
/// Later marks than these are not kept: the oldest is what counts.
const MARKS_MAX: usize = 4_096;
/// How long entries may wait for the database before somebody is told.
const AGE_MAX: Duration = Duration::from_secs(60);
/// From which share of the spool's limit on somebody is told, in hundredths.
const FILLED: [(u64, &str); 3] = [(80, "spool_80"), (50, "spool_50"), (10, "spool_10")];

/// When what stands at a place of the spool, and behind it, became durable.
#[derive(Debug, Default)]
pub(super) struct Ages(VecDeque<(Position, Instant)>);

impl Ages {
    /// Something became durable from this place on.
    pub(super) fn note(&mut self, from: Position, now: Instant) {
        let recent = self.0.back().is_some_and(|(_, at)| now - *at < MARK_EVERY);
        if !recent && self.0.len() < MARKS_MAX {
            self.0.push_back((from, now));
        }
    }

    /// Everything before this place is in the database; `all` says that nothing is behind it.
    pub(super) fn drained(&mut self, to: Position, all: bool) {
        while self.0.get(1).is_some_and(|(next, _)| *next <= to) {
            self.0.pop_front();
        }
        if all {
            self.0.clear();
        }
    }

    /// How long the oldest entry has waited.
    pub(super) fn oldest(&self, now: Instant) -> Duration {
        self.0.front().map_or(Duration::ZERO, |(_, at)| now.saturating_duration_since(*at))
    }
}

/// What the spool counts beside its progress.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Counts {
    /// Segments that were given up because a write or sync failed.
    pub(super) failed_segments: u64,
    /// Numbers whose entries could not be written anywhere.
    pub(super) lost_entries: u64,
    /// Entries written while the clock stood behind the entry before.
    pub(super) clock_behind: u64,
    /// Questions to witnesses that brought no cosignature.
    pub(super) witness_failures: u64,
    /// How many entries the last cosigned checkpoint covers.
    pub(super) witnessed_size: u64,
    /// Whether numbers are missing that no entry states yet.
    pub(super) gap_open: bool,
    /// Whether the second directory is written to.
    pub(super) on_fallback: bool,
}

/// What is known of the spool at one moment.
#[derive(Debug, Default)]
pub(super) struct Pressure {
    pub(super) waiting_bytes: u64,
    pub(super) bytes_max: u64,
    pub(super) oldest: Duration,
    pub(super) counts: Counts,
    pub(super) damage: Option<String>,
    pub(super) restored: Option<String>,
    pub(super) clock_doubt: Option<String>,
    pub(super) overtaken: Option<String>,
    pub(super) missing: Vec<String>,
    pub(super) pages: BTreeMap<&'static str, String>,
    pub(super) write_error: Option<String>,
    pub(super) room_error: Option<String>,
    pub(super) store_error: Option<String>,
}

impl Pressure {
    /// For people and monitoring.
    pub(super) fn state(self) -> LedgerState {
        LedgerState {
            waiting_bytes: self.waiting_bytes,
            waiting_bytes_max: self.bytes_max,
            oldest_waiting_ms: u64::try_from(self.oldest.as_millis()).unwrap_or(u64::MAX),
            failed_segments: self.counts.failed_segments,
            lost_entries: self.counts.lost_entries,
            clock_behind: self.counts.clock_behind,
            witness_failures: self.counts.witness_failures,
            witnessed_size: self.counts.witnessed_size,
            alerts: self.alerts(),
        }
    }

    fn alerts(&self) -> Vec<LedgerAlert> {
        let mut alerts = Vec::new();
        let mut tell = |code, message: String| alerts.push(LedgerAlert { code, message });
        if let Some(why) = &self.overtaken {
            tell("overtaken", why.clone());
        }
        if !self.missing.is_empty() {
            let files = self.missing.join(", ");
            let message = format!(
                "{files}: removed or replaced while in use; what is written there now is gone at the next \
                 start: stop the gateway, put them back, and run `conclave ledger verify`"
            );
            tell("files_missing", message);
        }
        for (database, problem) in &self.pages {
            tell("database_damaged", format!("{database}: {problem}"));
        }
        if let Some(damage) = &self.damage {
            tell("log_damaged", damage.clone());
        }
        if let Some(what) = &self.restored {
            tell("restored_database", what.clone());
        }
        if let Some(error) = &self.write_error {
            tell("spool_failed", error.clone());
        }
        if let Some(error) = &self.room_error {
            tell("spool_no_room", error.clone());
        }
        if self.counts.gap_open {
            let count = self.counts.lost_entries;
            tell("entries_lost", format!("{count} entries could not be written since start"));
        }
        if self.counts.on_fallback {
            let message = "entries are written to the second spool directory";
            tell("spool_fallback", message.to_owned());
        }
        if let Some(error) = &self.store_error {
            tell("store_down", format!("the database does not take entries: {error}"));
        }
        if let Some(doubt) = &self.clock_doubt {
            tell("clock_jumped", doubt.clone());
        }
        let percent = self.waiting_bytes.saturating_mul(100) / self.bytes_max.max(1);
        if let Some((_, code)) = FILLED.iter().find(|(least, _)| percent >= *least) {
            let (waiting, most) = (self.waiting_bytes, self.bytes_max);
            tell(code, format!("{waiting} of {most} bytes wait for the database"));
        }
        if self.oldest > AGE_MAX {
            let seconds = self.oldest.as_secs();
            tell("spool_old", format!("entries have waited {seconds} s for the database"));
        }
        alerts
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(segment: u64, offset: u64) -> Position {
        Position { segment, offset }
    }

    #[test]
    fn the_oldest_mark_is_the_one_that_is_not_drained_yet() {
        let start = Instant::now();
        let after = |seconds: u64| start + Duration::from_secs(seconds);
        let mut ages = Ages::default();
        assert_eq!(ages.oldest(after(5)), Duration::ZERO);
        ages.note(at(1, 0), after(0));
        ages.note(at(1, 10), after(0));
        ages.note(at(1, 50), after(10));
        ages.note(at(2, 0), after(20));
        assert_eq!(ages.oldest(after(30)), Duration::from_secs(30));
        ages.drained(at(1, 40), false);
        assert_eq!(ages.oldest(after(30)), Duration::from_secs(30), "still within the first");
        ages.drained(at(1, 50), false);
        assert_eq!(ages.oldest(after(30)), Duration::from_secs(20));
        ages.drained(at(2, 7), true);
        assert_eq!(ages.oldest(after(30)), Duration::ZERO);
    }

    #[test]
    fn marks_are_bounded() {
        let start = Instant::now();
        let mut ages = Ages::default();
        for n in 0..3 * MARKS_MAX as u64 {
            ages.note(at(1, n), start + Duration::from_secs(2 * n));
        }
        assert_eq!(ages.0.len(), MARKS_MAX);
    }

    #[test]
    fn alerts_come_at_ten_fifty_and_eighty_percent_and_after_a_minute() {
        let codes = |percent: u64, seconds: u64| {
            let pressure = Pressure {
                waiting_bytes: percent * 10,
                bytes_max: 1_000,
                oldest: Duration::from_secs(seconds),
                ..Pressure::default()
            };
            let alerts = pressure.state().alerts;
            alerts.into_iter().map(|alert| alert.code).collect::<Vec<_>>()
        };
        for (percent, seconds, expected) in [
            (9, 60, vec![]),
            (10, 0, vec!["spool_10"]),
            (49, 0, vec!["spool_10"]),
            (50, 0, vec!["spool_50"]),
            (80, 0, vec!["spool_80"]),
            (200, 61, vec!["spool_80", "spool_old"]),
        ] {
            assert_eq!(codes(percent, seconds), expected, "{percent} % after {seconds} s");
        }
    }

    #[test]
    fn every_trouble_has_its_code() {
        let pressure = Pressure {
            overtaken: Some("f".into()),
            missing: vec!["ops.db".into()],
            pages: BTreeMap::from([("keys.db", "page 3".into())]),
            damage: Some("entry 7".into()),
            restored: Some("d".into()),
            write_error: Some("a".into()),
            room_error: Some("b".into()),
            store_error: Some("c".into()),
            clock_doubt: Some("e".into()),
            counts: Counts { gap_open: true, on_fallback: true, ..Counts::default() },
            ..Pressure::default()
        };
        let codes: Vec<_> = pressure.alerts().into_iter().map(|alert| alert.code).collect();
        let all = [
            "overtaken",
            "files_missing",
            "database_damaged",
            "log_damaged",
            "restored_database",
            "spool_failed",
            "spool_no_room",
            "entries_lost",
            "spool_fallback",
            "store_down",
            "clock_jumped",
        ];
        assert_eq!(codes, all);
    }
}
