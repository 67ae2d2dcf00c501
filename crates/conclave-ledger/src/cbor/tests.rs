//! Published examples, refusals and round trips of the encoding.

use super::*;
use proptest::prelude::*;

/// The integers, strings and structures of RFC 8949, appendix A, that our part of CBOR has.
#[test]
fn published_examples_encode_as_printed() {
    let seq = |items: &[u64]| Value::Array(items.iter().copied().map(Value::Uint).collect());
    let cases: Vec<(Value, &str)> = vec![
        (0_u64.into(), "00"),
        (23_u64.into(), "17"),
        (24_u64.into(), "1818"),
        (100_u64.into(), "1864"),
        (1_000_u64.into(), "1903e8"),
        (1_000_000_u64.into(), "1a000f4240"),
        (1_000_000_000_000_u64.into(), "1b000000e8d4a51000"),
        (u64::MAX.into(), "1bffffffffffffffff"),
        (Value::Nint(u64::MAX), "3bffffffffffffffff"),
        ((-1_i64).into(), "20"),
        ((-10_i64).into(), "29"),
        ((-1_000_i64).into(), "3903e7"),
        (false.into(), "f4"),
        (true.into(), "f5"),
        (Value::Null, "f6"),
        (Vec::<u8>::new().into(), "40"),
        (vec![1_u8, 2, 3, 4].into(), "4401020304"),
        ("".into(), "60"),
        ("IETF".into(), "6449455446"),
        ("\u{6c34}".into(), "63e6b0b4"),
        (seq(&[]), "80"),
        (seq(&[1, 2, 3]), "83010203"),
        (Value::empty_map(), "a0"),
        (Value::map([("a", 1_u64.into()), ("b", seq(&[2, 3]))]), "a26161016162820203"),
    ];
    for (value, printed) in cases {
        assert_eq!(hex::encode(encode(&value)), printed, "{value:?}");
        assert_eq!(decode(&hex::decode(printed).unwrap()), Ok(value));
    }
}

#[test]
fn shorter_keys_stand_first() {
    let value = Value::map([("aa", Value::Null), ("b", Value::Null), ("a", Value::Null)]);
    assert_eq!(hex::encode(encode(&value)), "a36161f66162f6626161f6");
}

#[test]
fn a_second_spelling_is_refused() {
    use CborError as E;
    let cases = [
        ("1817", E::NotShortest(0)),
        ("190017", E::NotShortest(0)),
        ("1a0000ffff", E::NotShortest(0)),
        ("1b00000000ffffffff", E::NotShortest(0)),
        ("5800", E::NotShortest(0)),
        ("9800", E::NotShortest(0)),
        ("f97e00", E::NotAllowed(0)),
        ("fb3ff8000000000000", E::NotAllowed(0)),
        ("f7", E::NotAllowed(0)),
        ("f814", E::NotAllowed(0)),
        ("c000", E::NotAllowed(0)),
        ("5fff", E::NotAllowed(0)),
        ("9fff", E::NotAllowed(0)),
        ("bfff", E::NotAllowed(0)),
        ("ff", E::NotAllowed(0)),
        ("a26162016161 02", E::KeyOrder(4)),
        ("a2616101616102", E::KeyOrder(4)),
        ("a20101616101", E::Unexpected { at: 1, expected: "text" }),
        ("0000", E::Trailing(1)),
        ("61ff", E::NotUtf8(0)),
        ("", E::Truncated(0)),
        ("4401", E::Truncated(1)),
        ("5bffffffffffffffff", E::Truncated(9)),
        ("9bffffffffffffffff", E::Truncated(9)),
        ("bb7fffffffffffffff", E::Truncated(9)),
        ("826161", E::Truncated(3)),
    ];
    for (text, error) in cases {
        let bytes = hex::decode(text.replace(' ', "")).unwrap();
        assert_eq!(decode(&bytes), Err(error), "{text}");
    }
}

#[test]
fn nesting_ends_at_the_limit() {
    let nested = |levels: usize| {
        let mut bytes = vec![0x81; levels];
        bytes.push(0x00);
        bytes
    };
    let deepest = decode(&nested(DEPTH_MAX)).unwrap();
    assert!(deepest.fits_below(0) && !deepest.fits_below(1));
    assert_eq!(decode(&nested(DEPTH_MAX + 1)), Err(CborError::TooDeep(DEPTH_MAX)));
    assert!(decode(&vec![0x81; 1_000_000]).is_err());
}

#[test]
fn a_map_stays_sorted_and_holds_each_key_once() {
    let mut map = Map::new();
    assert!(map.is_empty());
    assert_eq!(map.insert("long", 1_u64), None);
    assert_eq!(map.insert("z", 2_u64), None);
    assert_eq!(map.insert("long", 3_u64), Some(Value::Uint(1)));
    assert_eq!(map.iter().map(|(key, _)| key).collect::<Vec<_>>(), ["z", "long"]);
    assert_eq!((map.len(), map.get("long"), map.get("none")), (2, Some(&Value::Uint(3)), None));
}

pub(crate) fn any_value() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        any::<u64>().prop_map(Value::Uint),
        (0..300_u64).prop_map(Value::Uint),
        any::<u64>().prop_map(Value::Nint),
        prop::collection::vec(any::<u8>(), 0..40).prop_map(Value::Bytes),
        ".{0,20}".prop_map(Value::Text),
        any::<bool>().prop_map(Value::Bool),
        Just(Value::Null),
    ];
    leaf.prop_recursive(4, 40, 6, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..6).prop_map(Value::Array),
            prop::collection::vec((".{0,6}", inner), 0..6).prop_map(Value::map),
        ]
    })
}

proptest! {
    #[test]
    fn what_was_encoded_decodes_to_itself(value in any_value()) {
        prop_assert_eq!(decode(&encode(&value)), Ok(value));
    }

    /// Whatever decodes has one spelling only: encoding it again gives the very same bytes.
    #[test]
    fn what_decodes_has_one_spelling(bytes in prop::collection::vec(any::<u8>(), 0..24)) {
        if let Ok(value) = decode(&bytes) {
            prop_assert_eq!(encode(&value), bytes);
        }
    }

    #[test]
    fn a_changed_byte_changes_the_value(
        value in any_value(),
        at in any::<prop::sample::Index>(),
        bit in 0..8_u8,
    ) {
        let mut bytes = encode(&value);
        let at = at.index(bytes.len());
        bytes[at] ^= 1 << bit;
        prop_assert_ne!(decode(&bytes), Ok(value));
    }
}
