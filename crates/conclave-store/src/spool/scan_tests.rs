//! Torn tails and damage in the middle of a segment.

use super::*;
use crate::spool::frame::write_frame;
use conclave_ledger::EntryId;
use proptest::prelude::*;
use std::io::Write;

const SEED: Seed = Seed(0xfeed_beef_1234_5678);

fn frame(n: u64, leaf: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    let id = EntryId { replica: [9; 8], epoch: 1, n };
    write_frame(&mut out, SEED, (id, n * 10), |out| out.extend_from_slice(leaf), b"body");
    out
}

fn scanner(bytes: &[u8]) -> Scanner {
    let mut file = tempfile::tempfile().unwrap();
    file.write_all(bytes).unwrap();
    Scanner::new(file, SEED, 0, bytes.len() as u64)
}

/// What a scan finds, in words short enough to compare.
#[derive(Debug, PartialEq, Eq)]
enum Seen {
    Frame(u64),
    Damage(u64, u64),
    End(u64, bool),
}

fn scan(scanner: &mut Scanner) -> Vec<Seen> {
    let mut seen = Vec::new();
    loop {
        let next = match scanner.next().unwrap() {
            Found::Frame(frame, _) => Seen::Frame(frame.id.n),
            Found::Damage(range) => Seen::Damage(range.start, range.end),
            Found::End { at, torn } => Seen::End(at, torn),
        };
        let ended = matches!(next, Seen::End(..));
        seen.push(next);
        if ended {
            return seen;
        }
    }
}

#[test]
fn frames_are_read_up_to_the_blank_rest() {
    let mut bytes = [frame(1, b"one"), frame(2, b"two")].concat();
    let end = bytes.len() as u64;
    bytes.resize(300_000, 0);
    let expected = vec![Seen::Frame(1), Seen::Frame(2), Seen::End(end, false)];
    assert_eq!(scan(&mut scanner(&bytes)), expected);
    assert_eq!(scan(&mut scanner(&[])), [Seen::End(0, false)]);
    assert_eq!(scan(&mut scanner(&[0; 70_000])), [Seen::End(0, false)]);
}

#[test]
fn a_tail_torn_anywhere_is_an_end() {
    let whole = frame(1, b"one");
    let last = frame(2, b"a second leaf");
    for cut in 1..last.len() {
        let mut bytes = [&whole[..], &last[..cut]].concat();
        bytes.resize(10_000, 0);
        let found = scan(&mut scanner(&bytes));
        assert_eq!(found, [Seen::Frame(1), Seen::End(whole.len() as u64, true)], "cut at {cut}");
    }
}

#[test]
fn damage_in_the_middle_hides_nothing_behind_it() {
    let frames = [frame(1, b"one"), frame(2, b"two"), frame(3, b"three")];
    let (begin, end) = (frames[0].len(), frames[0].len() + frames[1].len());
    for at in begin..end {
        let mut bytes = frames.concat();
        bytes[at] ^= 0xff;
        let expected = vec![
            Seen::Frame(1),
            Seen::Damage(begin as u64, end as u64),
            Seen::Frame(3),
            Seen::End(bytes.len() as u64, false),
        ];
        assert_eq!(scan(&mut scanner(&bytes)), expected, "byte {at}");
    }
}

#[test]
fn zeroes_in_the_middle_are_damage_and_not_the_end() {
    let bytes = [frame(1, b"one"), vec![0; 200_000], frame(3, b"three")].concat();
    let begin = frame(1, b"one").len() as u64;
    let found = scan(&mut scanner(&bytes));
    assert_eq!(found[1], Seen::Damage(begin, begin + 200_000));
    assert_eq!(found[2], Seen::Frame(3));
}

#[test]
fn a_frame_forged_inside_a_text_is_not_taken() {
    let mut forged = Vec::new();
    let id = EntryId { replica: [9; 8], epoch: 1, n: 77 };
    write_frame(&mut forged, Seed(0), (id, 1), |out| out.extend_from_slice(b"forged"), b"");
    let mut bytes = [frame(1, &forged), frame(2, b"two")].concat();
    bytes[5] ^= 1;
    let first = frame(1, &forged).len() as u64;
    assert_eq!(scan(&mut scanner(&bytes))[..2], [Seen::Damage(0, first), Seen::Frame(2)]);
}

#[test]
fn frames_across_the_border_of_the_window_are_whole() {
    let leaf = vec![0x43; 700_000];
    let frames: Vec<u8> = (1..=5).flat_map(|n| frame(n, &leaf)).collect();
    let found = scan(&mut scanner(&frames));
    assert_eq!(found[..5], [1, 2, 3, 4, 5].map(Seen::Frame));
    let large = frame(1, &vec![0x4c; 3 << 20]);
    assert_eq!(scan(&mut scanner(&large))[0], Seen::Frame(1));
}

#[test]
fn a_growing_segment_is_followed() {
    let (first, second) = (frame(1, b"one"), frame(2, b"two"));
    let mut file = tempfile::tempfile().unwrap();
    file.set_len(4_096).unwrap();
    file.write_all(&first).unwrap();
    let reader = file.try_clone().unwrap();
    let mut scanner = Scanner::new(reader, SEED, 0, first.len() as u64);
    assert_eq!(scan(&mut scanner), [Seen::Frame(1), Seen::End(first.len() as u64, false)]);
    file.write_all(&second).unwrap();
    assert_eq!(scan(&mut scanner), [Seen::End(first.len() as u64, false)], "not yet durable");
    scanner.extend((first.len() + second.len()) as u64);
    assert_eq!(scan(&mut scanner)[0], Seen::Frame(2));
    scanner.seek(0);
    assert_eq!(scan(&mut scanner)[..2], [Seen::Frame(1), Seen::Frame(2)]);
}

proptest! {
    #[test]
    fn arbitrary_bytes_end_and_give_no_frame(
        bytes in prop::collection::vec(any::<u8>(), 0..2_000),
    ) {
        let found = scan(&mut scanner(&bytes));
        prop_assert!(matches!(found.as_slice(), [Seen::End(0, _)]));
    }

    /// Whatever single byte is changed, all other frames are found.
    #[test]
    fn one_changed_byte_costs_one_frame(at in any::<prop::sample::Index>(), byte in 1..=255_u8) {
        let frames: Vec<Vec<u8>> = (1..=6).map(|n| frame(n, &[7; 30])).collect();
        let mut bytes = frames.concat();
        let at = at.index(bytes.len());
        let hit = 1 + (at / frames[0].len()) as u64;
        bytes[at] ^= byte;
        let found: Vec<u64> = scan(&mut scanner(&bytes))
            .into_iter()
            .filter_map(|seen| if let Seen::Frame(n) = seen { Some(n) } else { None })
            .collect();
        let expected: Vec<u64> = (1..=6).filter(|n| *n != hit).collect();
        prop_assert_eq!(found, expected);
    }
}
