//! Golden vectors of the sealed envelope, and everything that must not open.

use super::*;
use crate::{Draft, Kind, Value};
use std::sync::Arc;

const TENANT: u64 = 42;
const NONCE: [u8; 24] = [0x0e; 24];

fn id() -> EntryId {
    EntryId { replica: *b"replica1", epoch: 2, n: 7 }
}

fn key(byte: u8) -> Arc<SealingKey> {
    Arc::new(SealingKey::new([byte; 16], &[byte; 32]))
}

fn body() -> Body {
    let mut body = Body::empty();
    body.push("request", [1; 32], "hello");
    body.push("candidate.0.0", [2; 32], "");
    body
}

/// A sealed entry: its leaf and its stored bytes.
fn sealed() -> (Leaf, Vec<u8>) {
    let laid = body().lay_out([7; 16], &NONCE);
    let (commitments, bytes) = laid.seal(&key(7), id(), TENANT).unwrap();
    let draft = Draft { public: Value::Null, ..Draft::new(Kind::Decision, TENANT) };
    (Leaf { id: id(), ts_ms: 5, draft, commitments }, bytes)
}

fn open_with(leaf: &Leaf, bytes: &[u8], key: &Arc<SealingKey>) -> Result<Body, SealError> {
    StoredBody::decode(bytes).unwrap().unseal(leaf, |_| Some(Arc::clone(key)))
}

/// These bytes are a promise: what is sealed today must open for as long as its key exists.
#[test]
fn golden_bytes() {
    let (leaf, bytes) = sealed();
    let expected = concat!(
        "82",
        "82",
        "67",
        "72657175657374",
        "585e",
        "01",
        "07070707070707070707070707070707",
        "0e0e0e0e0e0e0e0e0e0e0e0e0e0e0e0e0e0e0e0e0e0e0e0e",
        "bad9e3cb305e06529b6c1c16333a90a672a7669af5270738c5bb477d2195fb3bed298fb2510b0f2c436d3bb7d8e0d891",
        "f5142ad377",
        "82",
        "6d",
        "63616e6469646174652e302e30",
        "5859",
        "01",
        "07070707070707070707070707070707",
        "0e0e0e0e0e0e0e0e0e0e0e0e0e0e0e0e0e0e0e0e0e0e0e0e",
        "12158eac016f76cd28e436e6804b4df62ac98565336fdbfb2565c541dc641e237f496aeae921c20463bc48f0b6c7869c",
    );
    assert_eq!(hex::encode(&bytes), expected);
    // The commitment to the text does not depend on how it is stored.
    let plain: Vec<_> = body().commitments().iter().map(|c| c.plain).collect();
    assert_eq!(leaf.commitments.iter().map(|c| c.plain).collect::<Vec<_>>(), plain);
}

#[test]
fn what_was_sealed_opens_again() {
    let (leaf, bytes) = sealed();
    let stored = StoredBody::decode(&bytes).unwrap();
    assert_eq!(stored.check(&leaf.commitments), Ok(()));
    assert_eq!(stored.keys(), [[7; 16]]);
    assert_eq!(stored.open("request"), None, "not without its key");
    assert_eq!(open_with(&leaf, &bytes, &key(7)), Ok(body()));
    let gone = stored.unseal(&leaf, |_| None::<Arc<SealingKey>>);
    assert_eq!(gone, Err(SealError::KeyGone("request".into())));
}

#[test]
fn plain_bodies_open_through_the_same_door() {
    let (mut leaf, _) = sealed();
    leaf.commitments = body().commitments();
    assert_eq!(open_with(&leaf, &body().encode(), &key(7)), Ok(body()));
}

#[test]
fn another_key_entry_tenant_or_field_does_not_open_it() {
    let (leaf, bytes) = sealed();
    let forged = Err(SealError::Forged("request".into()));
    assert_eq!(open_with(&leaf, &bytes, &key(8)), forged);
    let mut elsewhere = leaf.clone();
    elsewhere.id.n += 1;
    assert_eq!(open_with(&elsewhere, &bytes, &key(7)), forged);
    let mut elsewhere = leaf.clone();
    elsewhere.draft.tenant += 1;
    assert_eq!(open_with(&elsewhere, &bytes, &key(7)), forged);
    // The same sealed bytes under another name, with commitments that agree.
    let renamed = String::from_utf8_lossy(&bytes).contains("request");
    assert!(renamed);
    let at = bytes.windows(7).position(|w| w == b"request").unwrap();
    let mut moved = bytes.clone();
    moved[at..at + 7].copy_from_slice(b"sequert");
    let mut elsewhere = leaf;
    elsewhere.commitments[0].field = "sequert".into();
    let forged = Err(SealError::Forged("sequert".into()));
    assert_eq!(open_with(&elsewhere, &moved, &key(7)), forged);
}

#[test]
fn no_bit_can_be_changed() {
    let (leaf, bytes) = sealed();
    for at in 0..bytes.len() {
        let mut changed = bytes.clone();
        changed[at] ^= 1;
        let Ok(stored) = StoredBody::decode(&changed) else { continue };
        assert!(stored.check(&leaf.commitments).is_err(), "byte {at}");
        // Whoever can change the bytes may change their hash as well.
        let mut agreeing = leaf.clone();
        for (commitment, (_, blob)) in agreeing.commitments.iter_mut().zip(stored.fields()) {
            commitment.blob = sha256(&[blob]);
        }
        let opened = stored.unseal(&agreeing, |name| (name == [7; 16]).then(|| key(7)));
        assert!(opened.is_err(), "byte {at} opens to {opened:?}");
    }
}

/// the cipher would accept a text made to open under a second key; the commitment does not.
#[test]
fn a_text_that_opens_under_its_key_but_is_not_committed_to_is_refused() {
    let (leaf, _) = sealed();
    let mut other = body();
    other.fields[0].text = b"HELLO".to_vec();
    let (commitments, bytes) = other.lay_out([7; 16], &NONCE).seal(&key(7), id(), TENANT).unwrap();
    let mut second_meaning = leaf;
    for (ours, theirs) in second_meaning.commitments.iter_mut().zip(commitments) {
        ours.blob = theirs.blob;
    }
    let refused = Err(SealError::NotCommitted("request".into()));
    assert_eq!(open_with(&second_meaning, &bytes, &key(7)), refused);
}

#[test]
fn a_body_is_sealed_only_with_the_key_it_was_laid_out_for() {
    let laid = body().lay_out([7; 16], &NONCE);
    assert_eq!(laid.len(), sealed().1.len());
    let refused = laid.seal(&key(8), id(), TENANT);
    assert_eq!(refused, Err(SealError::Unsealable("request".into())));
    let nothing = Body::empty().lay_out([7; 16], &NONCE);
    assert!(nothing.is_empty());
    assert_eq!(nothing.seal(&key(7), id(), TENANT), Ok((vec![], vec![])));
}

/// short and likely texts cannot be found by trying, because the salt is sealed with them.
#[test]
fn nobody_finds_a_text_by_guessing_it() {
    let guesses: [&[u8]; 3] = [b"yes", b"no", b"hello"];
    let (leaf, bytes) = sealed();
    for guess in guesses {
        let digest = sha256(&[guess]);
        for commitment in &leaf.commitments {
            assert!(commitment.plain != digest && commitment.blob != digest);
            assert_ne!(commitment.plain, sha256(&[&[0; 32], guess]));
        }
    }
    let salt = [1_u8; 32];
    assert!(!bytes.windows(salt.len()).any(|window| window == salt), "the salt is sealed as well");
}

#[test]
fn secrets_for_other_purposes_differ_from_each_other() {
    let key = key(7);
    assert_ne!(*key.derived(b"session"), *key.derived(b"name"));
    assert_ne!(*key.derived(b"session"), [7; 32]);
    assert_eq!(format!("{key:?}"), "SealingKey { .. }");
}
