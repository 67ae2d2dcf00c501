//! What came back, counted.

use crate::exchange::LoadAnswer;
use std::time::{Duration, Instant};

/// A stall: what Nagle and delayed acknowledgements make of small replies.
const STALL: Duration = Duration::from_millis(40);

/// Answers, by what became of them.
#[derive(Default)]
pub struct LoadTally {
    /// How long each answer with 200 took.
    times: Vec<Duration>,
    /// How long each refusal took.
    refusals: Vec<Duration>,
    /// How long the first sentence took.
    sentences: Vec<Duration>,
    /// Ids of decisions.
    pub ids: Vec<String>,
    /// Requests without an answer.
    pub failed: u64,
    /// Answers with 429 or 503.
    pub refused: u64,
    /// Answers with any other status.
    other: u64,
    /// Answers in which nothing came for a while.
    stalls: u64,
    /// Whether the last answer was a refusal.
    pub last_was_refused: bool,
    /// Answers with 200 in each second.
    by_second: Vec<u64>,
}

impl LoadTally {
    /// Counts an answer.
    pub fn note(&mut self, asked: Instant, answer: &LoadAnswer, started: Instant, ids: bool) {
        let took = answer.ended.saturating_duration_since(asked);
        self.last_was_refused = matches!(answer.status, 429 | 503);
        if self.last_was_refused {
            self.refused += 1;
            self.refusals.push(took);
            return;
        }
        if !crate::is_ok(answer) {
            self.other += 1;
            return;
        }
        self.times.push(took);
        self.stalls += u64::from(answer.gap >= STALL);
        self.sentences.extend(answer.sentence_at.map(|at| at.saturating_duration_since(asked)));
        if ids {
            self.ids.extend(answer.id.clone());
        }
        let second =
            usize::try_from(answer.ended.saturating_duration_since(started).as_secs()).unwrap_or(0);
        if self.by_second.len() <= second {
            self.by_second.resize(second + 1, 0);
        }
        self.by_second[second] += 1;
    }

    /// Adds another's.
    pub fn take(&mut self, other: Self) {
        self.times.extend(other.times);
        self.refusals.extend(other.refusals);
        self.sentences.extend(other.sentences);
        self.ids.extend(other.ids);
        self.failed += other.failed;
        self.refused += other.refused;
        self.other += other.other;
        self.stalls += other.stalls;
        let seconds = self.by_second.len().max(other.by_second.len());
        self.by_second.resize(seconds, 0);
        for (mine, theirs) in self.by_second.iter_mut().zip(other.by_second) {
            *mine += theirs;
        }
    }

    /// Everything as one JSON object.
    pub fn into_json(mut self, elapsed: Duration) -> serde_json::Value {
        #[expect(clippy::cast_precision_loss, reason = "a rate")]
        let rate = self.times.len() as f64 / elapsed.as_secs_f64();
        serde_json::json!({
            "requests": self.times.len(),
            "failed": self.failed,
            "refused": self.refused,
            "other": self.other,
            "errors": self.failed + self.refused + self.other,
            "per_second": rate,
            "p50_ms": at(&mut self.times, 0.5),
            "p95_ms": at(&mut self.times, 0.95),
            "p99_ms": at(&mut self.times, 0.99),
            "refused_p50_ms": at(&mut self.refusals, 0.5),
            "refused_p99_ms": at(&mut self.refusals, 0.99),
            "sentence_p50_ms": at(&mut self.sentences, 0.5),
            "sentence_p99_ms": at(&mut self.sentences, 0.99),
            "stalls": self.stalls,
            "by_second": self.by_second,
        })
    }
}

/// A percentile in milliseconds; 0 where there is nothing.
fn at(times: &mut [Duration], share: f64) -> f64 {
    times.sort_unstable();
    #[expect(
        clippy::cast_precision_loss,
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "an index within the list"
    )]
    let index = ((times.len() as f64 - 1.0).max(0.0) * share) as usize;
    times.get(index).copied().unwrap_or_default().as_secs_f64() * 1e3
}
