//! a ciphertext that opens under two keys can be made, because the cipher does not bind its key.
//! The commitment of the leaf lets only one of the two texts through.

use super::*;
use crate::{Draft, Kind, Value};
use std::sync::Arc;

/// A number modulo 2^130 - 5, as Poly1305 counts: what is above 2^128, and the rest.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Number(u128, u128);

const MODULUS: Number = Number(3, u128::MAX - 4);
const ZERO: Number = Number(0, 0);

impl Number {
    fn plus(self, other: Self) -> Self {
        let (low, carry) = self.1.overflowing_add(other.1);
        let sum = Self(self.0 + other.0 + u128::from(carry), low);
        if (sum.0, sum.1) < (MODULUS.0, MODULUS.1) { sum } else { sum.less(MODULUS) }
    }

    fn less(self, other: Self) -> Self {
        let (low, borrow) = self.1.overflowing_sub(other.1);
        Self(self.0 - other.0 - u128::from(borrow), low)
    }

    fn minus(self, other: Self) -> Self {
        if other == ZERO { self } else { self.plus(MODULUS.less(other)) }
    }

    fn bits(self) -> impl Iterator<Item = bool> {
        let bit = |of: u128, at: u32| of >> at & 1 == 1;
        let high = (0..2).rev().map(move |at| bit(self.0, at));
        high.chain((0..128).rev().map(move |at| bit(self.1, at)))
    }

    fn times(self, other: Self) -> Self {
        other.bits().fold(ZERO, |sum, bit| {
            let twice = sum.plus(sum);
            if bit { twice.plus(self) } else { twice }
        })
    }

    /// By Fermat: the power by the modulus less two.
    fn inverse(self) -> Self {
        MODULUS.less(Self(0, 2)).bits().fold(Self(0, 1), |power, bit| {
            let square = power.times(power);
            if bit { square.times(self) } else { square }
        })
    }
}

fn rounds(mut state: [u32; 16]) -> [u32; 16] {
    let mut quarter = |a: usize, b: usize, c: usize, d: usize| {
        for (x, y, z, by) in [(a, b, d, 16), (c, d, b, 12), (a, b, d, 8), (c, d, b, 7)] {
            state[x] = state[x].wrapping_add(state[y]);
            state[z] = (state[z] ^ state[x]).rotate_left(by);
        }
    };
    for _ in 0..10 {
        (0..4).for_each(|at| quarter(at, at + 4, at + 8, at + 12));
        (0..4).for_each(|at| quarter(at, 4 + (at + 1) % 4, 8 + (at + 2) % 4, 12 + (at + 3) % 4));
    }
    state
}

fn words(bytes: &[u8]) -> impl Iterator<Item = u32> {
    bytes.chunks_exact(4).map(|word| u32::from_le_bytes(word.try_into().unwrap()))
}

fn state_of(parts: [&[u8]; 2]) -> [u32; 16] {
    let constants = words(b"expand 32-byte k");
    let all: Vec<u32> = constants.chain(parts.into_iter().flat_map(words)).collect();
    all.try_into().unwrap()
}

/// What Poly1305 multiplies by and adds, under a key and a nonce of XChaCha20.
fn authenticator(key: &[u8; 32], nonce: &[u8; 24]) -> (Number, Number) {
    let mixed = rounds(state_of([key, &nonce[..16]]));
    let inner: Vec<u8> =
        mixed[..4].iter().chain(&mixed[12..]).flat_map(|word| word.to_le_bytes()).collect();
    let start = state_of([&inner, &[&[0; 8], &nonce[16..]].concat()]);
    let block = rounds(start).into_iter().zip(start).map(|(word, first)| word.wrapping_add(first));
    let bytes: Vec<u8> = block.flat_map(u32::to_le_bytes).collect();
    let number = |from: usize| u128::from_le_bytes(bytes[from..from + 16].try_into().unwrap());
    (Number(0, number(0) & 0x0fff_fffc_0fff_fffc_0fff_fffc_0fff_ffff), Number(0, number(16)))
}

/// The blocks that are authenticated: bound data, ciphertext, lengths.
fn blocks(bound: &[u8], text: &[u8]) -> Vec<Number> {
    let lengths = [(bound.len() as u64).to_le_bytes(), (text.len() as u64).to_le_bytes()].concat();
    let padded = |bytes: &[u8]| {
        let blocks = bytes.chunks(16).map(|chunk| {
            let mut block = [0; 16];
            block[..chunk.len()].copy_from_slice(chunk);
            Number(1, u128::from_le_bytes(block))
        });
        blocks.collect::<Vec<_>>()
    };
    [padded(bound), padded(text), padded(&lengths)].concat()
}

fn evaluate(blocks: &[Number], r: Number) -> Number {
    blocks.iter().fold(ZERO, |sum, block| sum.plus(*block).times(r))
}

/// Three blocks of ciphertext and one tag that hold under both authenticators.
fn collision(bound: &[u8], keys: [(Number, Number); 2]) -> (Vec<u8>, [u8; 16]) {
    let [(r1, s1), (r2, s2)] = keys;
    for attempt in 0_u128..1_000 {
        let mut text = [attempt.to_le_bytes(), [0x5a; 16], [0; 16]].concat();
        // Everything but the last block of text, which stands before the lengths.
        let mut known = blocks(bound, &text);
        let last = known.len() - 2;
        known[last] = ZERO;
        let (a1, a2) = (evaluate(&known, r1), evaluate(&known, r2));
        let slope = r1.times(r1).minus(r2.times(r2));
        let wanted = a2.plus(s2).minus(a1.plus(s1)).times(slope.inverse());
        if wanted.0 != 1 {
            continue;
        }
        text[32..].copy_from_slice(&wanted.1.to_le_bytes());
        let all = blocks(bound, &text);
        let tag = |(r, s): (Number, Number)| evaluate(&all, r).1.wrapping_add(s.1);
        if tag(keys[0]) == tag(keys[1]) {
            return (text, tag(keys[0]).to_le_bytes());
        }
    }
    unreachable!("one in eight attempts succeeds");
}

#[test]
fn r07_a_ciphertext_that_opens_under_two_keys_means_only_what_the_leaf_commits_to() {
    const TENANT: u64 = 42;
    let (field, nonce, name) = ("request", [0x0e; 24], [7; 16]);
    let id = EntryId { replica: *b"replica1", epoch: 2, n: 7 };
    let keys = [[7; 32], [9; 32]].map(|secret| Arc::new(SealingKey::new(name, &secret)));
    let ciphers = keys.each_ref().map(|key| {
        let key = key.expand(&[FIELD_KEYS, &id.to_bytes(), field.as_bytes()]);
        authenticator(&key, &nonce)
    });
    let (text, tag) = collision(&bound_to(id, field, TENANT), ciphers);
    let blob = [&[SEALED][..], &name, &nonce, &text, &tag].concat();
    let mut bytes = Vec::new();
    let mut writer = Writer::new(&mut bytes);
    writer.array(1);
    writer.array(2);
    writer.text(field);
    writer.bytes_of(&[&blob]);
    let draft = Draft { public: Value::Null, ..Draft::new(Kind::Decision, TENANT) };
    let mut leaf = Leaf { id, ts_ms: 5, draft, commitments: Vec::new() };
    let [one, other] = keys.each_ref().map(|key| open(key, &leaf, field, &blob).unwrap());
    assert_ne!(one, other, "the cipher takes it under both keys, and it says two things");
    for (meant, is_meant) in [(one, [true, false]), (other, [false, true])] {
        let (plain, blob) = (sha256(&[&meant]), sha256(&[&blob]));
        leaf.commitments = vec![Commitment { field: field.into(), plain, blob, len: 16 }];
        for (key, is_meant) in keys.iter().zip(is_meant) {
            let opened =
                StoredBody::decode(&bytes).unwrap().unseal(&leaf, |_| Some(Arc::clone(key)));
            match is_meant {
                true => assert_eq!(opened.unwrap().fields[0].text, meant[SALT_BYTES..]),
                false => assert_eq!(opened, Err(SealError::NotCommitted(field.into()))),
            }
        }
    }
}
