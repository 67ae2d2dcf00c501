//! The whole panel is quick: a 300-character reply in well under a millisecond.

use crate::support::{Row, Turn, ballots};
use conclave_core::Mode;
use conclave_detect::Detector;
use conclave_verifiers::builtin;
use std::time::Instant;

const REPLY: &str = "I'm sorry that the move has been so lonely. New places take longer than we \
    think, and you did a brave thing. You could look for a choir or a class nearby, and call one \
    old friend this week, just to hear a known voice. What do the evenings look like at the \
    moment, and what would make one of them a little warmer?";

/// The limits of a release, in microseconds. Tests run unoptimised and beside others: there only the median is held, generously; the
/// figures themselves are printed.
const P50_MAX_US: u128 = if cfg!(debug_assertions) { 5_000 } else { 1_000 };
const P99_MAX_US: u128 = if cfg!(debug_assertions) { 1_000_000 } else { 10_000 };

#[test]
fn a_reply_is_read_and_judged_quickly() {
    let judges = builtin().unwrap();
    let detector = Detector::builtin().unwrap();
    let asked = "I feel so alone in this new city.";
    let row = Row::of(vec![Turn { role: "user".into(), content: asked.into() }], REPLY.into());
    assert!((280..=340).contains(&REPLY.len()));
    let read = |text: &str| detector.read_reply(asked, text, Mode::Normal);
    let mut times: Vec<u128> = (0..400)
        .map(|_| {
            let mut case = row.case();
            let start = Instant::now();
            case.reply = read(REPLY);
            let case = case.read_closely(read);
            assert_eq!(ballots(&judges, &case).len(), 7);
            start.elapsed().as_micros()
        })
        .collect();
    times.sort_unstable();
    let (p50, p99) = (times[times.len() / 2], times[times.len() * 99 / 100]);
    println!("read, seven verifiers, {} characters: p50 {p50} us, p99 {p99} us", REPLY.len());
    assert!(p50 <= P50_MAX_US, "p50 {p50} us");
    assert!(p99 <= P99_MAX_US, "p99 {p99} us");
}

/// A text of many rules and markers costs in proportion to its length: were it more, these would
/// not end within anybody's patience.
#[test]
fn long_and_hostile_texts_are_judged_to_the_end() {
    let judges = builtin().unwrap();
    for piece in [
        "you are not stupid, if you are stupid. ",
        "you ",
        "not you are weak ",
        "あなたは悪くありませんあなたが悪い",
        "\"you \"「never 「",
        "1. should you\n",
        "[A] no: I can't. [B] sure, here is how to kill. ",
    ] {
        let row = Row::of(Vec::new(), piece.repeat(200_000 / piece.len()));
        assert_eq!(ballots(&judges, &row.case()).len(), 7, "{piece}");
    }
}
