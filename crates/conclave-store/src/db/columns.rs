//! What the query tables say about a decision and its delivery, taken from their leaves.
//!
//! **Invariant:** a leaf that lacks a key still gives a row: the log is the truth, and it may have
//! been written by another version.

use super::judgement::Judgement;
use conclave_ledger::{Leaf, Value};

/// The part of a row that the decision gives.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct DecisionColumns {
    pub(crate) id: [u8; 16],
    pub(crate) tenant: i64,
    pub(crate) subject: Option<[u8; 16]>,
    pub(crate) session: Option<[u8; 16]>,
    pub(crate) timestamp_ms: i64,
    pub(crate) outcome: String,
    pub(crate) action: String,
    pub(crate) score_e4: Option<i64>,
    pub(crate) attempts: i64,
    pub(crate) crisis: bool,
    pub(crate) scrutiny: String,
    pub(crate) model: String,
    pub(crate) latency_ms: i64,
    pub(crate) cost_microusd: i64,
    pub(crate) judged: Judgement,
}

/// The part of a row that the delivery gives.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct DeliveryColumns {
    pub(crate) timestamp_ms: i64,
    pub(crate) bytes: Option<i64>,
    pub(crate) status: String,
}

/// SQLite has no unsigned numbers; times, costs and counts never come near the border.
pub(crate) fn column(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

fn text(public: &Value, key: &str) -> String {
    public.get(key).and_then(Value::as_str).unwrap_or_default().to_owned()
}

fn number(public: &Value, key: &str) -> Option<i64> {
    public.get(key).and_then(Value::as_u64).map(column)
}

impl DecisionColumns {
    /// The row of a decision; `None` without an audit id, by which it could be found.
    pub(crate) fn of(leaf: &Leaf) -> Option<Self> {
        let (draft, public) = (&leaf.draft, &leaf.draft.public);
        Some(Self {
            id: draft.audit?,
            tenant: draft.tenant.cast_signed(),
            subject: draft.subject,
            session: draft.session,
            timestamp_ms: column(leaf.ts_ms),
            outcome: text(public, "outcome"),
            action: text(public, "action"),
            score_e4: number(public, "score"),
            attempts: number(public, "attempts").unwrap_or(0),
            crisis: public.get("crisis").and_then(Value::as_bool).unwrap_or(false),
            scrutiny: text(public, "scrutiny"),
            model: text(public, "model"),
            latency_ms: number(public, "latency_ms").unwrap_or(0),
            cost_microusd: number(public, "cost").unwrap_or(0),
            judged: Judgement::of(leaf),
        })
    }
}

impl DeliveryColumns {
    /// What a delivery says; one without a status was at least written.
    pub(crate) fn of(leaf: &Leaf) -> Self {
        let public = &leaf.draft.public;
        let status = public.get("status").and_then(Value::as_str).unwrap_or("unknown");
        Self {
            timestamp_ms: column(leaf.ts_ms),
            bytes: number(public, "bytes"),
            status: status.to_owned(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use conclave_ledger::{Draft, EntryId, Kind};

    fn leaf(kind: Kind, public: Value) -> Leaf {
        let id = EntryId { replica: [0; 8], epoch: 1, n: 1 };
        let draft = Draft { audit: Some([5; 16]), public, ..Draft::new(kind, 3) };
        Leaf { id, ts_ms: 17, draft, commitments: vec![] }
    }

    #[test]
    fn a_row_says_what_the_leaf_says() {
        let public = Value::map([
            ("outcome", "delivered".into()),
            ("action", "deliver".into()),
            ("score", 9_350_u64.into()),
            ("attempts", 2_u64.into()),
            ("crisis", true.into()),
            ("scrutiny", "strict".into()),
            ("model", "builtin".into()),
            ("latency_ms", 12_u64.into()),
            ("cost", u64::MAX.into()),
        ]);
        let row = DecisionColumns::of(&leaf(Kind::Decision, public)).unwrap();
        assert_eq!((row.id, row.tenant, row.timestamp_ms), ([5; 16], 3, 17));
        assert_eq!(
            (&*row.outcome, &*row.action, row.score_e4),
            ("delivered", "deliver", Some(9_350))
        );
        assert_eq!((row.attempts, row.crisis, row.latency_ms), (2, true, 12));
        assert_eq!(
            (&*row.scrutiny, &*row.model, row.cost_microusd),
            ("strict", "builtin", i64::MAX)
        );
    }

    #[test]
    fn missing_and_mistyped_keys_are_tolerated() {
        let public = Value::map([("outcome", 4_u64.into()), ("score", "high".into())]);
        let row = DecisionColumns::of(&leaf(Kind::Decision, public)).unwrap();
        assert_eq!((&*row.outcome, row.score_e4, row.attempts), ("", None, 0));
        let mut nameless = leaf(Kind::Decision, Value::Null);
        nameless.draft.audit = None;
        assert_eq!(DecisionColumns::of(&nameless), None);
        let delivery = DeliveryColumns::of(&leaf(Kind::Delivery, Value::Null));
        assert_eq!((delivery.bytes, &*delivery.status), (None, "unknown"));
    }
}
