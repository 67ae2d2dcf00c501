//! A decision read back from the ledger.
//!
//! **Invariant:** a leaf that does not decode gives an error, never a panic: it may have been altered.

use crate::archive::StoredEntry;
use crate::hand_out::HELD_WORDS;
use conclave_core::{
    Abstention, Ballot, Bars, Cast, Confidence, Consensus, MicroUsd, Priority, Seat, Shortfall,
    Vote, decide,
};
use conclave_ledger::{Kind, Leaf, StoredBody, Value, leaf_hash};
use serde_json::Value as Json;
use thiserror::Error;

/// Why stored bytes are no decision.
#[derive(Debug, Error)]
pub enum StoredError {
    /// The leaf does not decode.
    #[error("the leaf does not decode: {0}")]
    Leaf(#[from] conclave_ledger::LeafError),
    /// The body does not decode.
    #[error("the body does not decode: {0}")]
    Body(#[from] conclave_ledger::BodyError),
    /// A field is missing or of the wrong type.
    #[error("the field `{0}` is missing or of the wrong type")]
    Field(&'static str),
    /// The stored ballots do not add up to the stored consensus.
    #[error("the stored ballots do not come to the stored consensus")]
    Replay,
    /// A part of a reply left that the panel had not passed.
    #[error("the window left although its panel had not passed it")]
    Unpassed,
}

/// A decision, and what became of its reply.
#[derive(Debug)]
pub struct StoredDecision {
    /// Its position in the log.
    pub seq: u64,
    /// The leaf.
    pub leaf: Leaf,
    /// The leaf's hash.
    pub leaf_hash: [u8; 32],
    /// The delivery entry's leaf, once there is one.
    pub delivery: Option<Leaf>,
    body: Option<Vec<u8>>,
}

impl StoredDecision {
    /// Puts a decision together from its entries.
    ///
    /// # Errors
    /// When a leaf does not decode. `Ok(None)` when there is no decision among them.
    pub fn from_entries(entries: Vec<StoredEntry>) -> Result<Option<Self>, StoredError> {
        let (mut decision, mut delivery) = (None, None);
        for entry in entries {
            let leaf = Leaf::decode(&entry.leaf)?;
            match leaf.draft.kind {
                Kind::Decision => {
                    let hash = leaf_hash(&entry.leaf);
                    decision = Some((entry.seq, leaf, hash, entry.body));
                }
                Kind::Delivery => delivery = Some(leaf),
                _ => {}
            }
        }
        Ok(decision.map(|(seq, leaf, leaf_hash, body)| Self {
            seq,
            leaf,
            leaf_hash,
            delivery,
            body,
        }))
    }

    /// A public field.
    #[must_use]
    pub fn public(&self, name: &str) -> Option<&Value> {
        self.leaf.draft.public.get(name)
    }

    /// A public text; empty when missing.
    #[must_use]
    pub fn text(&self, name: &str) -> &str {
        self.public(name).and_then(Value::as_str).unwrap_or_default()
    }

    /// A public number; 0 when missing.
    #[must_use]
    pub fn number(&self, name: &str) -> u64 {
        self.public(name).and_then(Value::as_u64).unwrap_or_default()
    }

    /// One of the words beside the leaf, as JSON; `None` when it was erased or never there.
    #[must_use]
    pub fn words(&self, field: &str) -> Option<Json> {
        let body = StoredBody::decode(self.body.as_deref()?).ok()?;
        serde_json::from_slice(&body.open(field)?).ok()
    }

    /// The result that a held run waits with, for whoever may decide about it. Runs of earlier versions have
    /// it where results stand that may leave.
    #[must_use]
    pub fn held_result(&self) -> Option<Json> {
        self.words(HELD_WORDS).or_else(|| self.words("response"))
    }

    /// Whether there were words beside the leaf that are gone.
    #[must_use]
    pub fn is_erased(&self) -> bool {
        self.body.is_none() && !self.leaf.commitments.is_empty()
    }

    /// The choices as stored.
    #[must_use]
    pub fn choices(&self) -> &[Value] {
        array(self.public("choices"))
    }
}

/// What the verifiers said of an attempt beside their votes, but for those that only watch: what they say
/// changed nothing, so nobody was answered differently for it.
#[must_use]
pub fn objections(stored: &StoredDecision, c: usize, a: usize) -> Vec<Json> {
    let attempt = stored.choices().get(c).and_then(|choice| array(choice.get("attempts")).get(a));
    let panels = array(attempt.and_then(|attempt| attempt.get("panels")));
    let ballots = panels.iter().flat_map(|panel| array(panel.get("ballots")));
    let watching: Vec<_> = ballots.filter_map(ballot_of).filter(|one| one.seat.monitor).collect();
    let watches = |said: &Json| watching.iter().any(|one| said["verifier"] == *one.seat.verifier);
    let mut spoken = match stored.words(&format!("votes.{c}.{a}")) {
        Some(Json::Array(spoken)) => spoken,
        _ => Vec::new(),
    };
    spoken.retain(|said| !watches(said));
    spoken
}

/// The elements of an array; none where it is missing or something else.
#[must_use]
pub fn array(value: Option<&Value>) -> &[Value] {
    value.and_then(Value::as_array).unwrap_or_default()
}

/// Runs the consensus of every stored panel again and compares.
///
/// # Errors
/// When a ballot cannot be read or the sums differ, or a window left that its panel had not passed.
pub fn replay(leaf: &Leaf) -> Result<(), StoredError> {
    let public = &leaf.draft.public;
    let panels: Vec<&Value> = match leaf.draft.kind {
        Kind::Decision => {
            let choices = array(public.get("choices")).iter();
            let attempts = choices.flat_map(|choice| array(choice.get("attempts")));
            attempts.flat_map(|attempt| array(attempt.get("panels"))).collect()
        }
        Kind::Window => {
            let whole = public.get("panel").ok_or(StoredError::Field("panel"))?;
            let tail = public.get("tail").ok_or(StoredError::Field("tail"))?;
            std::iter::once(whole).chain((*tail != Value::Null).then_some(tail)).collect()
        }
        _ => return Ok(()),
    };
    let bars = bars_of(public).ok_or(StoredError::Field("bars"))?;
    let crisis =
        public.get("crisis").and_then(Value::as_bool).ok_or(StoredError::Field("crisis"))?;
    for (at, panel) in panels.into_iter().enumerate() {
        let ballots = array(panel.get("ballots"))
            .iter()
            .map(|stored| ballot_of(stored).ok_or(StoredError::Field("ballots")))
            .collect::<Result<Vec<_>, _>>()?;
        let consensus = decide(&ballots, bars, crisis);
        if panel.get("sums") != Some(&sums(&consensus)) {
            return Err(StoredError::Replay);
        }
        // The text so far must have passed; in its end by itself, nobody may have seen harm.
        let passed = if at == 0 {
            consensus.delivers()
        } else {
            !consensus.shortfalls.contains(&Shortfall::Harmful)
        };
        if leaf.draft.kind == Kind::Window && !passed {
            return Err(StoredError::Unpassed);
        }
    }
    Ok(())
}

fn bars_of(public: &Value) -> Option<Bars> {
    let [quorum, score, assurance] = public.get("bars")?.as_array()? else {
        return None;
    };
    let small = |value: &Value| u8::try_from(value.as_u64()?).ok();
    Some(Bars { quorum: small(quorum)?, score: small(score)?, assurance: small(assurance)? })
}

/// A ballot as it was stored; `None` where it cannot be one.
#[must_use]
pub fn ballot_of(stored: &Value) -> Option<Ballot> {
    let [verifier, cast, detail, priority, weight, required, monitor, latency, more @ ..] =
        stored.as_array()?
    else {
        return None;
    };
    let (cost, basis) = match more {
        [] => (MicroUsd(0), None),
        [cost, Value::Null] => (MicroUsd(cost.as_u64()?), None),
        [cost, basis] => (MicroUsd(cost.as_u64()?), Some(basis.as_bytes()?.try_into().ok()?)),
        _ => return None,
    };
    let cast = match cast.as_str()? {
        "abstained" => Cast::Abstained(abstention(detail.as_str()?)?),
        "excused" => Cast::Excused(abstention(detail.as_str()?)?),
        "not_applicable" => Cast::NotApplicable,
        vote => Cast::Voted {
            vote: [Vote::Safe, Vote::Concern, Vote::Harmful]
                .into_iter()
                .find(|known| known.as_str() == vote)?,
            confidence: Confidence::from_hundredths(u8::try_from(detail.as_u64()?).ok()?)?,
        },
    };
    let seat = Seat {
        verifier: verifier.as_str()?.into(),
        priority: Priority::from_number(u8::try_from(priority.as_u64()?).ok()?)?,
        weight: u16::try_from(weight.as_u64()?).ok()?,
        required: required.as_bool()?,
        monitor: monitor.as_bool()?,
    };
    let latency_ms = u32::try_from(latency.as_u64()?).ok()?;
    Some(Ballot { latency_ms, cost, basis, ..Ballot::bare(seat, cast) })
}

fn abstention(name: &str) -> Option<Abstention> {
    use Abstention::{Duplicate, Failed, Invalid, Late, Panicked};
    [Failed, Late, Panicked, Invalid, Duplicate].into_iter().find(|known| known.as_str() == name)
}

/// `[S, D, W, votes cast, delivers]`: what a replay must come to again.
#[must_use]
pub fn sums(consensus: &Consensus) -> Value {
    Value::Array(vec![
        Value::Uint(consensus.safe_mass),
        Value::Uint(consensus.dissent_mass),
        Value::Uint(consensus.seated_weight),
        Value::Uint(u64::from(consensus.votes_cast)),
        Value::Bool(consensus.delivers()),
    ])
}
