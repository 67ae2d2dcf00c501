//! Notes against a published example and an independent implementation.

use super::*;
use signed_note::{Note, StandardSigner, StandardVerifier, VerifierList};

const PUBLISHED_KEY: &str = "PeterNeumann+c74f20a3+ARpc2QcUPDhMQegwxbzhKqiBfsVkmqq/LDE4izWy10TW";
const PUBLISHED_NOTE: &str = "If you think cryptography is the answer to your problem,\n\
    then you don't know what your problem is.\n\n\
    \u{2014} PeterNeumann x08go/ZJkuBS9UG/SffcvIAQxVBtiFupLLr8pAcElZInNIuGUgYN1FFYC2pZSNXgKvqfqdngotpRZb6KE6RyyBwJnAM=\n";

fn signer(seed: u8) -> NoteSigner {
    NoteSigner::new("log.example/one", &[seed; 32]).unwrap()
}

#[test]
fn the_published_note_opens() {
    let key = VerifierKey::parse(PUBLISHED_KEY).unwrap();
    assert_eq!(key.to_string(), PUBLISHED_KEY);
    let note = SignedNote::parse(PUBLISHED_NOTE).unwrap();
    assert_eq!(note.signed_by(std::slice::from_ref(&key)).unwrap(), [&key]);
    assert_eq!(note.to_string(), PUBLISHED_NOTE);
}

#[test]
fn an_independent_implementation_opens_our_notes() {
    let note = SignedNote::sign("first line\nsecond line\n", &[signer(1), signer(2)]).to_string();
    for seed in [1, 2] {
        let vkey = signer(seed).verifier().to_string();
        let known = VerifierList::new(vec![Box::new(StandardVerifier::new(&vkey).unwrap())]);
        let (verified, others) = Note::from_bytes(note.as_bytes()).unwrap().verify(&known).unwrap();
        assert_eq!((verified.len(), others.len()), (1, 1));
    }
}

#[test]
fn we_open_the_notes_of_an_independent_implementation() {
    let ours = signer(5);
    let mut secret = vec![ED25519];
    secret.extend_from_slice(&[5; 32]);
    let id = hex::encode(ours.verifier().id());
    let skey = format!("PRIVATE+KEY+log.example/one+{id}+{}", STANDARD.encode(secret));
    let mut note = Note::new(b"said by them\n", &[]).unwrap();
    note.add_sigs(&[&StandardSigner::new(&skey).unwrap()]).unwrap();
    let text = String::from_utf8(note.to_bytes()).unwrap();
    let keys = [ours.verifier()];
    assert!(SignedNote::parse(&text).unwrap().signed_by(&keys).is_ok());
    assert_eq!(text, SignedNote::sign("said by them\n", &[ours]).to_string());
}

#[test]
fn every_changed_byte_of_a_note_is_noticed() {
    let note = SignedNote::sign("a text\n", &[signer(1)]).to_string();
    let keys = [signer(1).verifier()];
    for at in 0..note.len() {
        for bit in 0..8 {
            let mut bytes = note.clone().into_bytes();
            bytes[at] ^= 1 << bit;
            let Ok(text) = String::from_utf8(bytes) else { continue };
            let opened = SignedNote::parse(&text).map(|note| note.signed_by(&keys).is_ok());
            assert_ne!(opened, Ok(true), "byte {at}, bit {bit}");
        }
    }
}

#[test]
fn odd_keys_are_refused_with_a_reason() {
    use VerifierKeyError::{Algorithm, Form, Id, Name};
    let good = signer(1).verifier().to_string();
    let (name, rest) = good.split_once('+').unwrap();
    let (id, key) = rest.split_once('+').unwrap();
    let other = STANDARD.encode([[2_u8].as_slice(), &[7; 32]].concat());
    for (text, why) in [
        (String::new(), Form),
        (format!("{name}+{id}"), Form),
        (format!("+{id}+{key}"), Name),
        (format!("a b+{id}+{key}"), Name),
        (format!("{}+{id}+{key}", "n".repeat(257)), Name),
        (format!("{name}+{id}+!!"), Form),
        (format!("{name}+{id}+AQ=="), Form),
        (format!("{name}+00000000+{key}"), Id),
        (format!("{name}+{id}+{other}"), Algorithm),
    ] {
        assert_eq!(VerifierKey::parse(&text), Err(why), "{text}");
    }
    assert!(VerifierKey::parse(&format!(" {good}\n")).is_ok());
}

#[test]
fn odd_notes_are_refused_and_never_panic() {
    let good = SignedNote::sign("a\n", &[signer(1)]).to_string();
    let line = good.lines().last().unwrap();
    let crowd = format!("a\n\n{}", format!("{line}\n").repeat(SIGNATURES_MAX + 1));
    for bad in [
        "",
        "a",
        "a\n",
        "a\n\n",
        "a\n\n\u{2014} x",
        "a\n\n\u{2014} x \n",
        "a\n\n\u{2014} x AAAA\n",
        "a\n\nx AAAAAAAA\n",
        "a\r\n\n\u{2014} x AAAAAAAA\n",
        good.trim_end(),
        &crowd,
        &"a".repeat(NOTE_BYTES_MAX + 1),
    ] {
        assert!(SignedNote::parse(bad).is_err(), "{bad:?}");
    }
}
