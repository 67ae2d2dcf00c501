//! Every altered byte is found and named.

use super::*;
use crate::body::Body;
use crate::coverage::Gap;
use crate::leaf::Draft;
use crate::tree::root_of;
use proptest::prelude::*;

#[derive(Clone)]
struct Row {
    leaf: Vec<u8>,
    hash: Vec<u8>,
    body: Option<Vec<u8>>,
}

const REPLICA: [u8; 8] = *b"tester01";

fn id(n: u64) -> EntryId {
    EntryId { replica: REPLICA, epoch: 1, n }
}

fn row(n: u64, draft: Draft, body: &Body) -> Row {
    let (commitments, stored) = (body.commitments(), body.encode());
    let leaf = Leaf { id: id(n), ts_ms: 1_000 + n, draft, commitments }.encode();
    let body = (!stored.is_empty()).then_some(stored);
    Row { hash: leaf_hash(&leaf).to_vec(), leaf, body }
}

fn decision(n: u64, outcome: &str) -> Row {
    let mut draft = Draft::new(Kind::Decision, 1);
    draft.public = Value::map([("outcome", outcome.into())]);
    let mut body = Body::empty();
    body.push("request", [4; 32], format!("question {n}"));
    body.push("candidate.0", [5; 32], format!("answer {n}"));
    row(n, draft, &body)
}

fn delivery(n: u64, parent: Option<u64>) -> Row {
    let draft = Draft { parent: parent.map(id), ..Draft::new(Kind::Delivery, 1) };
    row(n, draft, &Body::empty())
}

fn refused(n: u64, status: u64, count: u64) -> Row {
    let mut draft = Draft::new(Kind::RequestRefused, 1);
    draft.public = Value::map([("status", status.into()), ("count", count.into())]);
    row(n, draft, &Body::empty())
}

fn gap(n: u64, from: u64, to: u64) -> Row {
    let gap = Gap { replica: REPLICA, epoch: 1, from, to, reason: "test".into() };
    let draft = Draft { public: gap.to_public(), ..Draft::new(Kind::CoverageGap, 0) };
    row(n, draft, &Body::empty())
}

fn log() -> Vec<Row> {
    vec![
        row(1, Draft::new(Kind::Genesis, 0), &Body::empty()),
        decision(2, "delivered"),
        delivery(3, Some(2)),
        decision(4, "blocked"),
        refused(5, 401, 3),
        delivery(6, Some(4)),
        refused(7, 429, 2),
        refused(8, 401, 1),
    ]
}

fn head_of(rows: &[Row]) -> Head {
    let hashes: Vec<Hash> = rows.iter().map(|row| leaf_hash(&row.leaf)).collect();
    Head { size: rows.len() as u64, root: root_of(&hashes) }
}

fn audit_with<'a>(mut auditor: Auditor<'a>, rows: &[Row], head: &Head) -> Report {
    for (seq, row) in (0..).zip(rows) {
        let (leaf, leaf_hash, body) = (&*row.leaf, &*row.hash, row.body.as_deref());
        auditor.feed(&Entry { seq, leaf, leaf_hash, body });
    }
    auditor.finish(Some(head))
}

fn audit(rows: &[Row], head: &Head) -> Report {
    audit_with(Auditor::new(), rows, head)
}

fn problem(rows: &[Row], head: &Head) -> (u64, String) {
    let report = audit(rows, head);
    assert!(!report.ok);
    let bad = report.first_bad.unwrap();
    (bad.seq, bad.problem)
}

#[test]
fn a_sound_log_is_counted() {
    let (rows, head) = (log(), head_of(&log()));
    let report = audit(&rows, &head);
    assert!(report.ok, "{:?}", report.first_bad);
    assert_eq!((report.entries, report.bodies), (8, 2));
    assert_eq!(report.root, hex::encode(head.root));
    assert_eq!((report.kinds["decision"], report.kinds["genesis"]), (2, 1));
    assert_eq!((report.outcomes["delivered"], report.outcomes["blocked"]), (1, 1));
    assert_eq!((report.refused["401"], report.refused["429"]), (4, 2));
}

#[test]
fn an_empty_log_is_sound() {
    let report = audit(&[], &head_of(&[]));
    assert!(report.ok);
    assert_eq!(report.root, hex::encode(crate::tree::empty_root()));
}

#[test]
fn what_an_administrator_could_try_is_named() {
    let head = head_of(&log());
    let bad = |change: fn(&mut Vec<Row>)| {
        let mut rows = log();
        change(&mut rows);
        problem(&rows, &head)
    };
    let (seq, sentence) = bad(|rows| rows[3].hash[0] ^= 1);
    assert_eq!((seq, &*sentence), (3, "the leaf does not have the hash that is stored for it"));
    assert_eq!(
        bad(|rows| rows.truncate(6)),
        (6, "the head counts 8 entries, the log has 6".into())
    );
    assert_eq!(bad(|rows| rows.push(refused(9, 400, 1))).0, 8);
    assert_eq!(bad(|rows| rows.swap(2, 3)).0, 2, "reordered");
    assert_eq!(bad(|rows| drop(rows.remove(0))).0, 0, "the first is gone");
    assert_eq!(bad(|rows| drop(rows.remove(4))).0, 4, "one in the middle is gone");
    assert_eq!(bad(|rows| rows[1] = decision(2, "failed")).1, {
        "the root of the entries is not the root of the head"
    });
    assert_eq!(bad(|rows| rows[1].body = None), (1, "the body is missing".into()));
    assert_eq!(bad(|rows| rows[1].body = rows[3].body.clone()).0, 1, "another's body");
    assert_eq!(bad(|rows| rows[2].body = Some(vec![])).0, 2, "a body from nowhere");
}

#[test]
fn a_missing_position_is_named() {
    let (rows, head) = (log(), head_of(&log()));
    let mut auditor = Auditor::new();
    for (seq, row) in (0..).zip(&rows).filter(|(seq, _)| *seq != 3) {
        let (leaf, leaf_hash, body) = (&*row.leaf, &*row.hash, row.body.as_deref());
        auditor.feed(&Entry { seq, leaf, leaf_hash, body });
    }
    let bad = auditor.finish(Some(&head)).first_bad.unwrap();
    assert_eq!((bad.seq, &*bad.problem), (3, "entry 3 is missing: the next one is 4"));
}

#[test]
fn a_delivery_needs_an_earlier_decision() {
    let rows = vec![decision(1, "delivered"), delivery(2, Some(3)), decision(3, "delivered")];
    let (seq, sentence) = problem(&rows, &head_of(&rows));
    assert!(seq == 1 && sentence.contains("no earlier decision"), "{sentence}");
    let rows = vec![delivery(1, None)];
    assert_eq!(problem(&rows, &head_of(&rows)).1, "the delivery names no decision");
    let rows = vec![refused(1, 400, 1), delivery(2, Some(1))];
    assert_eq!(problem(&rows, &head_of(&rows)).0, 1);
}

#[test]
fn the_decision_of_a_delivery_may_be_among_what_is_stated_as_missing() {
    let lost = vec![decision(1, "delivered"), delivery(3, Some(2)), gap(4, 2, 2)];
    let report = audit(&lost, &head_of(&lost));
    assert!(report.ok, "{:?}", report.first_bad);
    let other = vec![decision(1, "delivered"), delivery(3, Some(9)), gap(4, 2, 2)];
    assert!(problem(&other, &head_of(&other)).1.contains("no earlier decision"));
    // Saying so does not help where it stands behind its delivery.
    let there = vec![delivery(2, Some(3)), decision(3, "delivered"), gap(4, 1, 3)];
    assert!(problem(&there, &head_of(&there)).1.contains("no earlier decision"));
}

#[test]
fn missing_numbers_need_a_statement() {
    let rows = vec![refused(1, 400, 1), refused(4, 400, 1), refused(5, 400, 1)];
    let (seq, sentence) = problem(&rows, &head_of(&rows));
    assert_eq!((seq, &*sentence), (1, "entries 2 to 3 of this replica are missing"));
    let rows = vec![refused(1, 400, 1), refused(4, 400, 1), gap(5, 2, 3)];
    assert!(audit(&rows, &head_of(&rows)).ok);
    let rows = vec![refused(1, 400, 1), refused(4, 400, 1), gap(5, 2, 2)];
    assert_eq!(problem(&rows, &head_of(&rows)).0, 1);
}

#[test]
fn the_callers_own_check_is_run_on_sound_entries() {
    let (rows, head) = (log(), head_of(&log()));
    let mut seen = Vec::new();
    let check: ExtraCheck<'_> = Box::new(|seq, leaf, body| {
        seen.push((seq, leaf.draft.kind.clone(), body.and_then(|body| body.open("request"))));
        if seq == 3 { Err("the votes do not give this outcome".into()) } else { Ok(()) }
    });
    let bad = audit_with(Auditor::with_check(check), &rows, &head).first_bad.unwrap();
    assert_eq!((bad.seq, bad.id), (3, Some(id(4))));
    assert_eq!(bad.problem, "the votes do not give this outcome");
    assert_eq!(seen.len(), 8);
    assert_eq!(seen[1], (1, Kind::Decision, Some(b"question 2".to_vec())));
}

#[test]
fn pending_entries_are_counted_but_not_part_of_the_tree() {
    let rows = log();
    let head = head_of(&rows[..5]);
    let mut auditor = Auditor::new();
    for (seq, row) in (0..).zip(&rows[..5]) {
        let (leaf, leaf_hash, body) = (&*row.leaf, &*row.hash, row.body.as_deref());
        auditor.feed(&Entry { seq, leaf, leaf_hash, body });
    }
    for row in &rows[5..] {
        auditor.feed_pending(&row.leaf, row.body.as_deref());
    }
    let report = auditor.finish(Some(&head));
    assert!(report.ok, "{:?}", report.first_bad);
    assert_eq!((report.entries, report.pending, report.kinds["request.refused"]), (5, 3, 3));
    assert_eq!(report.root, hex::encode(head.root));
}

#[test]
fn milestones_narrow_down_what_was_changed() {
    let good = log();
    let mut rows = good.clone();
    rows[5] = row(6, Draft { parent: Some(id(4)), tenant: 9, ..Draft::new(Kind::Delivery, 1) }, &{
        Body::empty()
    });
    let mut auditor = Auditor::new();
    for (seq, row) in (0..).zip(&rows) {
        let (leaf, leaf_hash, body) = (&*row.leaf, &*row.hash, row.body.as_deref());
        auditor.feed(&Entry { seq, leaf, leaf_hash, body });
        if seq % 2 == 1 {
            auditor.milestone(&head_of(&good[..=usize::try_from(seq).unwrap()]).root);
        }
    }
    let bad = auditor.finish(Some(&head_of(&good))).first_bad.unwrap();
    assert_eq!((bad.seq, &*bad.problem), (4, "one of the entries 4 to 5 was changed"));
}

#[test]
fn a_hostile_log_does_not_fill_the_memory_with_names() {
    let rows: Vec<Row> = (1..=1_500).map(|n| decision(n, &format!("outcome {n}"))).collect();
    let report = audit(&rows, &head_of(&rows));
    assert_eq!((report.outcomes.len(), report.outcomes["(others)"]), (1_001, 500));
}

#[test]
fn every_flipped_byte_of_a_log_is_found_where_it_is() {
    let (good, head) = (log(), head_of(&log()));
    for seq in 0..good.len() {
        let lengths = [good[seq].leaf.len(), good[seq].body.as_ref().map_or(0, Vec::len)];
        for (part, length) in lengths.into_iter().enumerate() {
            for at in 0..length {
                let mut rows = good.clone();
                let bytes =
                    if part == 0 { &mut rows[seq].leaf } else { rows[seq].body.as_mut().unwrap() };
                bytes[at] ^= 0x40;
                let report = audit(&rows, &head);
                let bad = report.first_bad.map(|bad| bad.seq);
                assert_eq!(bad, Some(seq as u64), "entry {seq}, part {part}, byte {at}");
            }
        }
    }
}

proptest! {
    /// Whatever is done to the rows, the auditor ends and notices.
    #[test]
    fn garbage_is_refused_without_a_panic(
        leaf in prop::collection::vec(any::<u8>(), 0..200),
        hash in prop::collection::vec(any::<u8>(), 0..40),
        body in prop::option::of(prop::collection::vec(any::<u8>(), 0..60)),
        seq in any::<u64>(),
    ) {
        let mut auditor = Auditor::new();
        auditor.feed(&Entry { seq, leaf: &leaf, leaf_hash: &hash, body: body.as_deref() });
        auditor.feed_pending(&leaf, body.as_deref());
        prop_assert!(!auditor.finish(None).ok);
    }

    #[test]
    fn any_bit_of_any_leaf_or_body_counts(
        at in any::<prop::sample::Index>(),
        seq in 0..8_usize,
        in_body in any::<bool>(),
        bit in 0..8_u8,
    ) {
        let mut rows = log();
        let head = head_of(&rows);
        let row = &mut rows[seq];
        let bytes = match &mut row.body {
            Some(body) if in_body => body,
            _ => &mut row.leaf,
        };
        let at = at.index(bytes.len());
        bytes[at] ^= 1 << bit;
        prop_assert!(!audit(&rows, &head).ok);
    }
}
