//! Counters in the Prometheus text format.
//!
//! **Invariant:** every label value comes from a closed list, so that nobody can grow the page.

mod panels;
mod server;

pub(crate) use server::{ServerCounters, ServerGauges};

use conclave_core::Outcome;
use conclave_engine::{Decision, LedgerState};
use panels::PanelCounters;
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

/// Upper bounds of the latency buckets, in milliseconds.
const BUCKETS_MS: [u64; 13] = [1, 2, 5, 10, 25, 50, 100, 250, 500, 1_000, 2_500, 10_000, 30_000];

/// Everything that is counted.
#[derive(Default)]
pub(crate) struct Metrics {
    /// By route, then by status.
    requests: Mutex<BTreeMap<String, BTreeMap<u16, u64>>>,
    outcomes: [AtomicU64; Outcome::ALL.len()],
    unrecorded: AtomicU64,
    attempts: AtomicU64,
    input_tokens: AtomicU64,
    output_tokens: AtomicU64,
    cost_microusd: AtomicU64,
    in_flight: AtomicU64,
    duration: Histogram,
    overhead: Histogram,
    first_window: Histogram,
    refusals: Mutex<BTreeMap<&'static str, u64>>,
    panels: PanelCounters,
}

/// What one decision adds to the counters.
pub(crate) struct DecisionCount {
    pub recorded: bool,
    pub outcome: Outcome,
    pub attempts: u32,
    pub usage: conclave_core::Usage,
    pub cost: conclave_core::MicroUsd,
    pub overhead: Duration,
}

impl Metrics {
    pub(crate) fn count_request(&self, route: &str, status: u16, took: Duration) {
        let mut requests = self.requests.lock().unwrap_or_else(PoisonError::into_inner);
        // A route is known after its first request, and its name is not copied again.
        if let Some(by_status) = requests.get_mut(route) {
            *by_status.entry(status).or_default() += 1;
        } else {
            requests.insert(route.to_owned(), BTreeMap::from([(status, 1)]));
        }
        drop(requests);
        self.duration.observe(took);
    }

    pub(crate) fn count_decision(&self, counted: &DecisionCount) {
        if let Some(at) = Outcome::ALL.iter().position(|outcome| *outcome == counted.outcome) {
            self.outcomes[at].fetch_add(1, Ordering::Relaxed);
        }
        self.unrecorded.fetch_add(u64::from(!counted.recorded), Ordering::Relaxed);
        self.attempts.fetch_add(u64::from(counted.attempts), Ordering::Relaxed);
        self.input_tokens.fetch_add(counted.usage.input_tokens, Ordering::Relaxed);
        self.output_tokens.fetch_add(counted.usage.output_tokens, Ordering::Relaxed);
        self.cost_microusd.fetch_add(counted.cost.0, Ordering::Relaxed);
        self.overhead.observe(counted.overhead);
    }

    /// Who voted what in it, and how the model did.
    pub(crate) fn count_deliberation(&self, decision: &Decision) {
        self.panels.count_decision(decision);
    }

    /// A request was refused with a code of the closed list.
    pub(crate) fn count_refusal(&self, code: &'static str) {
        let mut refusals = self.refusals.lock().unwrap_or_else(PoisonError::into_inner);
        *refusals.entry(code).or_default() += 1;
    }

    /// The first verified sentence of a streamed reply may leave.
    pub(crate) fn observe_first_window(&self, took: Duration) {
        self.first_window.observe(took);
    }

    pub(crate) fn request_began(&self) {
        self.in_flight.fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn request_ended(&self) {
        self.in_flight.fetch_sub(1, Ordering::Relaxed);
    }

    #[must_use]
    pub(crate) fn render(&self, dropped_entries: u64, ledger: &LedgerState) -> String {
        let mut page = String::new();
        self.render_counters(&mut page, dropped_entries);
        render_ledger(&mut page, ledger, read_counter(&self.unrecorded));
        self.duration.render(&mut page, "conclave_request_duration_seconds", "Time to answer.");
        self.overhead.render(&mut page, "conclave_overhead_seconds", "Time added to the model's.");
        let help = "Time to the first verified sentence of a stream by windows.";
        self.first_window.render(&mut page, "conclave_first_window_seconds", help);
        let name = "conclave_refusals_total";
        write_head(&mut page, name, "counter", "Requests answered with an error, by its code.");
        for (code, count) in &*self.refusals.lock().unwrap_or_else(PoisonError::into_inner) {
            let _ = writeln!(page, "{name}{{code=\"{code}\"}} {count}");
        }
        self.panels.render(&mut page);
        page
    }

    fn render_counters(&self, page: &mut String, dropped_entries: u64) {
        write_head(page, "conclave_requests_total", "counter", "Requests by route and status.");
        for (route, by_status) in &*self.requests.lock().unwrap_or_else(PoisonError::into_inner) {
            for (status, count) in by_status {
                let labels = format!("route=\"{route}\",status=\"{status}\"");
                let _ = writeln!(page, "conclave_requests_total{{{labels}}} {count}");
            }
        }
        write_head(page, "conclave_decisions_total", "counter", "Decisions by outcome.");
        for (outcome, count) in Outcome::ALL.iter().zip(&self.outcomes) {
            let count = count.load(Ordering::Relaxed);
            let name = outcome.as_str();
            let _ = writeln!(page, "conclave_decisions_total{{outcome=\"{name}\"}} {count}");
        }
        write_head(page, "conclave_tokens_total", "counter", "Tokens of all attempts.");
        for (kind, tokens) in [("input", &self.input_tokens), ("output", &self.output_tokens)] {
            let tokens = tokens.load(Ordering::Relaxed);
            let _ = writeln!(page, "conclave_tokens_total{{type=\"{kind}\"}} {tokens}");
        }
        for (name, kind, help, value) in [
            (
                "conclave_attempts_total",
                "counter",
                "Candidates asked for.",
                read_counter(&self.attempts),
            ),
            (
                "conclave_cost_microusd_total",
                "counter",
                "Cost in millionths of a dollar.",
                read_counter(&self.cost_microusd),
            ),
            (
                "conclave_requests_in_flight",
                "gauge",
                "Requests being answered.",
                read_counter(&self.in_flight),
            ),
            (
                "conclave_ledger_dropped_total",
                "counter",
                "Entries nobody waited for that found the queue full.",
                dropped_entries,
            ),
        ] {
            write_head(page, name, kind, help);
            let _ = writeln!(page, "{name} {value}");
        }
    }
}

/// How the ledger's way to the disk is doing.
fn render_ledger(page: &mut String, ledger: &LedgerState, unrecorded: u64) {
    for (name, kind, help, value) in [
        (
            "conclave_unrecorded_replies_total",
            "counter",
            "Replies delivered although their decision could not be recorded.",
            unrecorded,
        ),
        (
            "conclave_spool_bytes",
            "gauge",
            "Durable bytes that wait for the database.",
            ledger.waiting_bytes,
        ),
        ("conclave_spool_bytes_max", "gauge", "How many may wait.", ledger.waiting_bytes_max),
        (
            "conclave_spool_oldest_seconds",
            "gauge",
            "How long the oldest entry has waited for the database.",
            ledger.oldest_waiting_ms / 1_000,
        ),
        (
            "conclave_spool_failed_segments_total",
            "counter",
            "Spool files given up because a write or sync failed.",
            ledger.failed_segments,
        ),
        (
            "conclave_ledger_lost_total",
            "counter",
            "Numbers whose entries could not be written anywhere.",
            ledger.lost_entries,
        ),
        (
            "conclave_clock_behind_total",
            "counter",
            "Entries written while the clock stood behind the entry before.",
            ledger.clock_behind,
        ),
        (
            "conclave_witness_failures_total",
            "counter",
            "Questions to witnesses that brought no cosignature.",
            ledger.witness_failures,
        ),
        (
            "conclave_witnessed_entries",
            "gauge",
            "How many entries the last cosigned checkpoint covers.",
            ledger.witnessed_size,
        ),
    ] {
        write_head(page, name, kind, help);
        let _ = writeln!(page, "{name} {value}");
    }
    write_head(
        page,
        "conclave_ledger_alert",
        "gauge",
        "1 for each alert of the ledger that is raised.",
    );
    for alert in &ledger.alerts {
        let _ = writeln!(page, "conclave_ledger_alert{{code=\"{}\"}} 1", alert.code);
    }
}

fn read_counter(counter: &AtomicU64) -> u64 {
    counter.load(Ordering::Relaxed)
}

fn write_head(page: &mut String, name: &str, kind: &str, help: &str) {
    let _ = writeln!(page, "# HELP {name} {help}\n# TYPE {name} {kind}");
}

#[derive(Default)]
struct Histogram {
    buckets: [AtomicU64; BUCKETS_MS.len()],
    count: AtomicU64,
    sum_us: AtomicU64,
}

impl Histogram {
    fn observe(&self, took: Duration) {
        let micros = u64::try_from(took.as_micros()).unwrap_or(u64::MAX);
        if let Some(at) = BUCKETS_MS.iter().position(|bound| micros <= bound * 1_000) {
            self.buckets[at].fetch_add(1, Ordering::Relaxed);
        }
        self.count.fetch_add(1, Ordering::Relaxed);
        self.sum_us.fetch_add(micros, Ordering::Relaxed);
    }

    fn render(&self, page: &mut String, name: &str, help: &str) {
        write_head(page, name, "histogram", help);
        self.render_labelled(page, name, "");
    }

    #[expect(clippy::cast_precision_loss, reason = "only shown")]
    fn render_labelled(&self, page: &mut String, name: &str, labels: &str) {
        let before = if labels.is_empty() { String::new() } else { format!("{labels},") };
        let around = if labels.is_empty() { String::new() } else { format!("{{{labels}}}") };
        let mut below = 0;
        for (bound, bucket) in BUCKETS_MS.iter().zip(&self.buckets) {
            below += read_counter(bucket);
            let bound = *bound as f64 / 1e3;
            let _ = writeln!(page, "{name}_bucket{{{before}le=\"{bound}\"}} {below}");
        }
        let count = read_counter(&self.count);
        let _ = writeln!(page, "{name}_bucket{{{before}le=\"+Inf\"}} {count}");
        let _ = writeln!(page, "{name}_sum{around} {}", read_counter(&self.sum_us) as f64 / 1e6);
        let _ = writeln!(page, "{name}_count{around} {count}");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn buckets_are_cumulative_and_counts_agree() {
        let metrics = Metrics::default();
        for ms in [1, 3, 40, 60_000] {
            metrics.count_request("/v1/chat/completions", 200, Duration::from_millis(ms));
        }
        let page = metrics.render(0, &LedgerState::default());
        assert!(
            page.contains(
                "conclave_requests_total{route=\"/v1/chat/completions\",status=\"200\"} 4"
            )
        );
        assert!(page.contains("conclave_request_duration_seconds_bucket{le=\"0.005\"} 2"));
        assert!(page.contains("conclave_request_duration_seconds_bucket{le=\"+Inf\"} 4"));
        assert!(page.contains("conclave_decisions_total{outcome=\"escalated\"} 0"));
    }
}
