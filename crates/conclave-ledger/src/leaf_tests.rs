//! Golden vectors and round trips of the leaf.

use super::*;
use proptest::prelude::*;

fn example() -> Leaf {
    let id = EntryId { replica: *b"replica1", epoch: 2, n: 7 };
    let draft = Draft {
        kind: Kind::Decision,
        audit: Some([0xa1; 16]),
        tenant: 42,
        subject: None,
        session: Some([0x5e; 16]),
        parent: Some(EntryId { n: 6, ..id }),
        policy: [0x01; 32],
        directives: [0xf1; 32],
        build: "abc123".into(),
        public: Value::map([
            ("outcome", "delivered".into()),
            ("score", 9_200_u64.into()),
            ("crisis", false.into()),
        ]),
    };
    let commitments =
        vec![Commitment { field: "request".into(), plain: [0xcc; 32], blob: [0xbb; 32], len: 5 }];
    Leaf { id, ts_ms: 1_794_000_000_000, draft, commitments }
}

/// These bytes are a promise: a log written today must verify for ever.
#[test]
fn golden_bytes() {
    let expected = concat!(
        "ae",
        "6176",
        "01",
        "626964",
        "54",
        "7265706c6963613100000002",
        "0000000000000007",
        "627473",
        "1b000001a1b2bb9400",
        "63617564",
        "50",
        "a1a1a1a1a1a1a1a1a1a1a1a1a1a1a1a1",
        "63626c64",
        "66",
        "616263313233",
        "63636f6d",
        "81",
        "a4",
        "6162",
        "5820",
        "bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb",
        "6163",
        "5820",
        "cccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccc",
        "6166",
        "67",
        "72657175657374",
        "636c656e",
        "05",
        "6366696c",
        "5820",
        "f1f1f1f1f1f1f1f1f1f1f1f1f1f1f1f1f1f1f1f1f1f1f1f1f1f1f1f1f1f1f1f1",
        "63706172",
        "54",
        "7265706c6963613100000002",
        "0000000000000006",
        "63706f6c",
        "5820",
        "0101010101010101010101010101010101010101010101010101010101010101",
        "63707562",
        "a3",
        "6573636f7265",
        "1923f0",
        "66637269736973",
        "f4",
        "676f7574636f6d65",
        "69",
        "64656c697665726564",
        "63736573",
        "50",
        "5e5e5e5e5e5e5e5e5e5e5e5e5e5e5e5e",
        "63737562",
        "f6",
        "6374656e",
        "182a",
        "646b696e64",
        "68",
        "6465636973696f6e",
    );
    let bytes = example().encode();
    assert_eq!(hex::encode(&bytes), expected);
    assert_eq!(Leaf::decode(&bytes), Ok(example()));
    assert_eq!(
        hex::encode(leaf_hash(&bytes)),
        "3953bcdf497c24ecaf22886c8ee7c0aa70ef1c0a75df871bc11e3fd0ce4a8c79"
    );
}

#[test]
fn tenants_have_stable_numbers_that_fit_a_signed_column() {
    assert_eq!(tenant_number("default"), 1_158_405_113_505_878_870);
    assert_ne!(tenant_number("a"), tenant_number("b"));
    for name in 0..1_000 {
        assert!(i64::try_from(tenant_number(&name.to_string())).is_ok());
    }
}

#[test]
fn ids_go_through_their_bytes_and_sort_alike() {
    let id = EntryId { replica: [3; 8], epoch: 9, n: 0x0102_0304 };
    assert_eq!(EntryId::from_bytes(id.to_bytes()), id);
    assert_eq!(id.to_string(), "0303030303030303000000090000000001020304");
    let later = EntryId { epoch: 10, n: 1, ..id };
    assert!(id < later && id.to_bytes() < later.to_bytes());
}

#[test]
fn kinds_keep_their_names() {
    let names = [
        "genesis",
        "decision",
        "delivery",
        "request.refused",
        "request.abandoned",
        "admin.action",
        "policy.set",
        "coverage.gap",
        "key.change",
        "store.down",
        "store.up",
    ];
    for name in names {
        let kind = Kind::parse(name);
        assert!(!matches!(kind, Kind::Other(_)), "{name}");
        assert_eq!(kind.to_string(), name);
    }
    assert_eq!(Kind::parse("appeal.open"), Kind::Other("appeal.open".into()));
}

#[test]
fn bytes_of_another_form_are_refused() {
    let good = example().encode();
    let refused = |change: fn(&mut Vec<u8>)| {
        let mut bytes = good.clone();
        change(&mut bytes);
        Leaf::decode(&bytes).unwrap_err()
    };
    assert_eq!(refused(|bytes| bytes[0] = 0xad), LeafError::Keys(13));
    assert_eq!(refused(|bytes| bytes[3] = 2), LeafError::Version(2));
    assert!(matches!(refused(|bytes| bytes.push(0)), LeafError::Encoding(_)));
    let mut unnumbered = example();
    unnumbered.id.n = 0;
    assert_eq!(Leaf::decode(&unnumbered.encode()), Err(LeafError::Unnumbered));
    for cut in 0..good.len() {
        assert!(Leaf::decode(&good[..cut]).is_err(), "cut at {cut}");
    }
}

#[test]
fn a_draft_that_would_not_decode_is_refused_before_it_is_written() {
    let mut draft = Draft::new(Kind::Genesis, 0);
    assert_eq!(draft.check(), Ok(()));
    draft.public = (0..40).fold(Value::Null, |inner, _| Value::Array(vec![inner]));
    assert_eq!(draft.check(), Err(LeafError::TooDeep));
    assert!(Draft::new(Kind::Other(String::new()), 0).check().is_err());
    draft = Draft::new(Kind::Genesis, 0);
    draft.build = "x".repeat(200);
    assert_eq!(draft.check(), Err(LeafError::Name("build")));
}

fn any_id() -> impl Strategy<Value = EntryId> {
    (any::<[u8; 8]>(), any::<u32>(), 1..=u64::MAX).prop_map(|(replica, epoch, n)| EntryId {
        replica,
        epoch,
        n,
    })
}

prop_compose! {
    fn any_draft()(
        kind in "[a-z.]{1,16}",
        audit in any::<Option<[u8; 16]>>(),
        tenant in any::<u64>(),
        subject in any::<Option<[u8; 16]>>(),
        session in any::<Option<[u8; 16]>>(),
        parent in prop::option::of(any_id()),
        digests in any::<([u8; 32], [u8; 32])>(),
        build in ".{0,20}",
        public in crate::cbor::any_value(),
    ) -> Draft {
        let (kind, (policy, directives)) = (Kind::parse(&kind), digests);
        Draft { kind, audit, tenant, subject, session, parent, policy, directives, build, public }
    }
}

prop_compose! {
    fn any_commitment()(
        field in "[a-z0-9.]{1,20}",
        hashes in any::<([u8; 32], [u8; 32])>(),
        len in any::<u64>(),
    ) -> Commitment {
        Commitment { field, plain: hashes.0, blob: hashes.1, len }
    }
}

prop_compose! {
    fn any_leaf()(
        id in any_id(),
        ts_ms in any::<u64>(),
        draft in any_draft(),
        commitments in prop::collection::vec(any_commitment(), 0..4),
    ) -> Leaf {
        Leaf { id, ts_ms, draft, commitments }
    }
}

proptest! {
    #[test]
    fn a_leaf_decodes_to_itself(leaf in any_leaf()) {
        prop_assert_eq!(Leaf::decode(&leaf.encode()), Ok(leaf));
    }

    /// No two sequences of bytes mean the same leaf.
    #[test]
    fn a_leaf_has_one_spelling(
        leaf in any_leaf(),
        at in any::<prop::sample::Index>(),
        byte in any::<u8>(),
    ) {
        let mut bytes = leaf.encode();
        let at = at.index(bytes.len());
        let changed = bytes[at] != byte;
        bytes[at] = byte;
        match Leaf::decode(&bytes) {
            Ok(read) => {
                prop_assert_eq!(read.encode(), bytes);
                prop_assert_eq!(read != leaf, changed);
            }
            Err(_) => prop_assert!(changed),
        }
    }

    #[test]
    fn arbitrary_bytes_never_panic(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
        let _ = Leaf::decode(&bytes);
    }
}
