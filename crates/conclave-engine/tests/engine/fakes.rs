//! Ports that live in memory.

use conclave_core::{
    AuditId, Candidate, FinishReason, GenerationFailure, MicroUsd, Opinion, Priority, Reason, Seat,
    Usage, Vote,
};
use conclave_engine::{
    AppendError, Appended, Archive, ArchiveError, Clock, DecisionFilter, DecisionRow, Entropy,
    Ledger, Model, ModelDirectory, ModelError, ModelRequest, OfferedModel, StoredEntry, Tally,
    Verifier, VerifierError, Whose,
};
use conclave_ledger::{Body, Draft, EntryId, Kind, Leaf, leaf_hash};
use conclave_verifiers::Case;
use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

pub struct FixedClock;

impl Clock for FixedClock {
    fn now_ms(&self) -> u64 {
        1_800_000_000_000
    }
}

#[derive(Default)]
pub struct Counting(AtomicU64);

impl Entropy for Counting {
    fn fill(&self, bytes: &mut [u8]) {
        let next = self.0.fetch_add(1, Ordering::Relaxed).to_be_bytes();
        for (at, byte) in bytes.iter_mut().enumerate() {
            *byte = next[at % next.len()];
        }
    }
}

/// A ledger in memory that can be told to fail.
#[derive(Default)]
pub struct MemoryLedger {
    pub entries: Mutex<Vec<StoredEntry>>,
    /// Takes nothing.
    pub broken: AtomicBool,
    /// Says beforehand that it takes nothing.
    pub ill: AtomicBool,
    /// Finds that entries are not of the right form.
    pub picky: AtomicBool,
    /// Does not say what was before.
    pub mute: AtomicBool,
}

impl MemoryLedger {
    fn take(&self, draft: Draft, body: &Body) -> Appended {
        let mut entries = self.entries.lock().unwrap();
        let seq = entries.len() as u64;
        let id = EntryId { replica: [7; 8], epoch: 1, n: seq + 1 };
        let leaf =
            Leaf { id, ts_ms: 1_800_000_000_000, draft, commitments: body.commitments() }.encode();
        let hash = leaf_hash(&leaf);
        entries.push(StoredEntry { seq, leaf, body: Some(body.encode()) });
        Appended { id, leaf_hash: hash }
    }

    pub fn leaves(&self) -> Vec<Leaf> {
        let entries = self.entries.lock().unwrap();
        entries.iter().map(|entry| Leaf::decode(&entry.leaf).unwrap()).collect()
    }
}

impl Ledger for MemoryLedger {
    fn append(&self, draft: Draft, body: Body) -> BoxFuture<'_, Result<Appended, AppendError>> {
        let result = if self.picky.load(Ordering::Relaxed) {
            Err(AppendError::Refused("the entry is too large".into()))
        } else if self.broken.load(Ordering::Relaxed) {
            Err(AppendError::Unwritable("the disk is full".into()))
        } else {
            Ok(self.take(draft, &body))
        };
        std::future::ready(result).boxed()
    }

    fn append_soon(&self, draft: Draft, body: Body) {
        self.take(draft, &body);
    }

    fn dropped(&self) -> u64 {
        0
    }

    fn health(&self) -> Result<(), AppendError> {
        let trouble = self.ill.load(Ordering::Relaxed);
        if trouble { Err(AppendError::Unwritable("the disk is full".into())) } else { Ok(()) }
    }
}

impl Archive for MemoryLedger {
    fn find(&self, _: u64, id: AuditId) -> BoxFuture<'_, Result<Vec<StoredEntry>, ArchiveError>> {
        let entries = self.entries.lock().unwrap();
        let mine = entries.iter().filter(|entry| {
            Leaf::decode(&entry.leaf).unwrap().draft.audit == Some(id.0.into_bytes())
        });
        std::future::ready(Ok(mine.cloned().collect())).boxed()
    }

    fn list(
        &self,
        filter: DecisionFilter,
    ) -> BoxFuture<'_, Result<Vec<DecisionRow>, ArchiveError>> {
        let rows = self.leaves().into_iter().enumerate().rev();
        let rows = rows.filter(|(_, leaf)| leaf.draft.kind == Kind::Decision);
        let rows = rows.map(|(seq, leaf)| row(seq as u64, &leaf));
        let rows: Vec<_> = rows
            .skip_while(|row| filter.before.is_some_and(|before| row.id != before))
            .skip(usize::from(filter.before.is_some()))
            .filter(|row| filter.outcome.as_ref().is_none_or(|outcome| *outcome == row.outcome))
            .filter(|row| filter.action.as_ref().is_none_or(|action| *action == row.action))
            .take(filter.limit as usize)
            .collect();
        std::future::ready(Ok(rows)).boxed()
    }

    fn latest(
        &self,
        _: u64,
        whose: Whose,
        before: Option<u64>,
    ) -> BoxFuture<'_, Result<Option<StoredEntry>, ArchiveError>> {
        if self.mute.load(Ordering::Relaxed) {
            return std::future::ready(Err(ArchiveError("no answer".into()))).boxed();
        }
        let entries = self.entries.lock().unwrap();
        let earlier = |entry: &&StoredEntry| before.is_none_or(|before| entry.seq < before);
        let latest = entries.iter().rev().filter(earlier).find(|entry| {
            let draft = Leaf::decode(&entry.leaf).unwrap().draft;
            draft.kind == Kind::Decision
                && match whose {
                    Whose::Session(key) => draft.session == Some(key),
                    Whose::Subject(key) => draft.subject == Some(key),
                }
        });
        std::future::ready(Ok(latest.cloned())).boxed()
    }

    fn tally(&self, _: Option<u64>, _: u64) -> BoxFuture<'_, Result<Tally, ArchiveError>> {
        std::future::ready(Ok(Tally::default())).boxed()
    }

    fn health(&self) -> BoxFuture<'_, Result<(), ArchiveError>> {
        std::future::ready(Ok(())).boxed()
    }
}

fn row(seq: u64, leaf: &Leaf) -> DecisionRow {
    let text = |key: &str| {
        let found = leaf.draft.public.get(key).and_then(conclave_ledger::Value::as_str);
        found.unwrap_or_default().to_owned()
    };
    DecisionRow {
        id: AuditId(uuid::Uuid::from_bytes(leaf.draft.audit.unwrap())),
        seq,
        timestamp_ms: leaf.ts_ms,
        outcome: text("outcome"),
        action: text("action"),
        safety_score: None,
        attempts: 0,
        crisis: false,
        scrutiny: text("scrutiny"),
        model: text("model"),
        latency_ms: 0,
        tenant: leaf.draft.tenant,
    }
}

/// A model that says its lines one after the other, then repeats the last.
pub struct Scripted {
    lines: Mutex<VecDeque<Result<&'static str, GenerationFailure>>>,
    pub asked: Mutex<Vec<ModelRequest>>,
    pub delay: Duration,
}

impl Scripted {
    pub fn saying(lines: &[Result<&'static str, GenerationFailure>]) -> Arc<Self> {
        Self::slowly(lines, Duration::ZERO)
    }

    pub fn slowly(lines: &[Result<&'static str, GenerationFailure>], delay: Duration) -> Arc<Self> {
        let lines = Mutex::new(lines.iter().copied().collect());
        Arc::new(Self { lines, asked: Mutex::new(Vec::new()), delay })
    }
}

impl Model for Scripted {
    fn generate(&self, request: ModelRequest) -> BoxFuture<'_, Result<Candidate, ModelError>> {
        self.asked.lock().unwrap().push(request);
        let mut lines = self.lines.lock().unwrap();
        let line = if lines.len() > 1 { lines.pop_front() } else { lines.front().copied() };
        drop(lines);
        async move {
            if !self.delay.is_zero() {
                tokio::time::sleep(self.delay).await;
            }
            match line.unwrap() {
                Ok(text) => Ok(Candidate {
                    text: text.into(),
                    model: "scripted-1".into(),
                    finish: FinishReason::Stop,
                    usage: Usage { input_tokens: 10, output_tokens: 5 },
                    ..Candidate::default()
                }),
                Err(failure) => Err(ModelError::new(failure, "scripted")),
            }
        }
        .boxed()
    }
}

pub struct OneModel(pub Arc<Scripted>);

impl ModelDirectory for OneModel {
    fn find(&self, name: &str) -> Option<OfferedModel> {
        (name == "scripted").then(|| OfferedModel {
            model: self.0.clone(),
            provider: "test".into(),
            input_price: MicroUsd(1_000_000),
            output_price: MicroUsd(2_000_000),
        })
    }

    fn names(&self) -> Vec<(String, Arc<str>)> {
        vec![("scripted".into(), "test".into())]
    }
}

/// A verifier that judges by a function of the reply's text, after a while.
pub struct Juror {
    seat: Seat,
    delay: Duration,
    judge: fn(&str) -> Result<Option<Opinion>, VerifierError>,
}

impl Juror {
    pub fn seated(
        name: &str,
        priority: u8,
        delay: Duration,
        judge: fn(&str) -> Result<Option<Opinion>, VerifierError>,
    ) -> Arc<dyn Verifier> {
        let seat = Seat::new(name, Priority::from_number(priority).unwrap());
        Arc::new(Self { seat, delay, judge })
    }
}

impl Verifier for Juror {
    fn seat(&self) -> &Seat {
        &self.seat
    }

    fn timeout(&self) -> Duration {
        Duration::from_millis(400)
    }

    fn judge(&self, case: Arc<Case>) -> BoxFuture<'_, Result<Option<Opinion>, VerifierError>> {
        async move {
            tokio::time::sleep(self.delay).await;
            (self.judge)(&case.candidate.text)
        }
        .boxed()
    }
}

pub fn opinion(vote: Vote, confidence: f64, reasons: &[Reason]) -> Option<Opinion> {
    Some(Opinion {
        vote,
        confidence,
        reasons: reasons.to_vec(),
        reasoning: String::new(),
        flagged_patterns: Vec::new(),
    })
}
