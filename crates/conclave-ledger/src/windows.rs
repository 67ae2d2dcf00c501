//! Windows of a reply that left before its decision did, and the decision that commits to them.
//!
//! **Invariant:** a decision names exactly the windows that the log holds of it, in their order. Windows
//! without a decision are of a turn that a crash ended; their words were never kept.

use crate::cbor::Value;
use crate::leaf::{Leaf, leaf_hash};
use crate::tree::Hash;
use std::collections::HashMap;

/// Windows whose decision has not been met yet.
#[derive(Debug, Default)]
pub(crate) struct Windows {
    open: HashMap<[u8; 16], Vec<Hash>>,
}

impl Windows {
    /// Takes a window.
    pub(crate) fn open(&mut self, leaf: &Leaf) -> Result<(), String> {
        let audit = leaf.draft.audit.ok_or("the window names no decision")?;
        let before = self.open.entry(audit).or_default();
        let index = leaf.draft.public.get("index").and_then(Value::as_u64);
        if index != u64::try_from(before.len()).ok() {
            return Err(format!("it is not window {} of its decision", before.len()));
        }
        before.push(leaf_hash(&leaf.encode()));
        Ok(())
    }

    /// Takes a decision, which must commit to every window of it.
    pub(crate) fn close(&mut self, leaf: &Leaf) -> Result<(), String> {
        let met = leaf.draft.audit.and_then(|audit| self.open.remove(&audit)).unwrap_or_default();
        let choices = leaf.draft.public.get("choices").and_then(Value::as_array);
        let windows = choices.into_iter().flatten().filter_map(|choice| choice.get("windows"));
        let named = windows.filter_map(Value::as_array).flatten();
        let same = named.map(Value::as_bytes).eq(met.iter().map(|hash| Some(hash.as_slice())));
        if same { Ok(()) } else { Err("it commits to other windows than left".to_owned()) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::leaf::{Draft, EntryId, Kind};

    fn leaf(kind: Kind, n: u64, public: Value) -> Leaf {
        let id = EntryId { replica: [1; 8], epoch: 1, n };
        let draft = Draft { audit: Some([7; 16]), public, ..Draft::new(kind, 1) };
        Leaf { id, ts_ms: 0, draft, commitments: Vec::new() }
    }

    fn window(n: u64, index: u64) -> Leaf {
        leaf(Kind::Window, n, Value::map([("index", Value::Uint(index))]))
    }

    fn decision(hashes: &[Hash]) -> Leaf {
        let windows = hashes.iter().map(|hash| Value::Bytes(hash.to_vec())).collect();
        let choice = Value::map([("windows", Value::Array(windows))]);
        leaf(Kind::Decision, 9, Value::map([("choices", Value::Array(vec![choice]))]))
    }

    #[test]
    fn a_decision_names_its_windows_and_no_others() {
        let (first, second) = (window(1, 0), window(2, 1));
        let hashes = [&first, &second].map(|leaf| leaf_hash(&leaf.encode()));
        let met = |named: &[Hash]| {
            let mut windows = Windows::default();
            windows.open(&first).unwrap();
            windows.open(&second).unwrap();
            windows.close(&decision(named))
        };
        assert_eq!(met(&hashes), Ok(()));
        for wrong in [&hashes[..1], &[], &[hashes[1], hashes[0]], &[hashes[0], [0; 32]]] {
            assert!(met(wrong).is_err(), "{wrong:?}");
        }
        assert!(Windows::default().close(&decision(&hashes)).is_err(), "a window is missing");
        assert_eq!(Windows::default().close(&decision(&[])), Ok(()));
    }

    #[test]
    fn a_window_that_was_taken_out_shows_in_the_next() {
        let mut windows = Windows::default();
        assert!(windows.open(&window(2, 1)).is_err());
    }
}
