//! The whole panel is quick: a 300-character reply in well under a millisecond.

use crate::support::{Row, Turn, ballots};
use conclave_core::Mode;
use conclave_detect::Detector;
use conclave_verifiers::builtin;
use std::time::{Duration, Instant};

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

/// The least time that some work takes, of three tries.
fn least(mut work: impl FnMut()) -> Duration {
    let tries = (0..3).map(|_| {
        let began = Instant::now();
        work();
        began.elapsed()
    });
    tries.min().unwrap_or_default()
}

/// I-08: whatever stands in it, reading and judging a text of twice the length takes about twice as long,
/// and one of 100 KB takes each verifier next to no time.
#[test]
fn i08_no_text_makes_reading_or_judging_slow() {
    // Not optimised, and beside other tests: some twenty times as long as a release takes.
    const EACH_MAX: Duration = Duration::from_millis(200);
    let (judges, detector) = (builtin().unwrap(), Detector::builtin().unwrap());
    let pieces = [
        "a",
        "1.1.1.",
        "[[",
        "((",
        "aA1",
        "\\",
        "\u{200b}k\u{200b}i",
        "http://a.",
        "@a.b",
        "-",
        "\"",
        "ああ",
        "k i l l ",
        "base64:",
        "%41",
        "&#x41;",
        "\n\n",
        "x-",
        "…",
    ];
    for piece in pieces {
        let text = |bytes: usize| piece.repeat(bytes / piece.len());
        let read = |bytes: usize| {
            let text = text(bytes);
            least(|| drop(detector.read(&text, Mode::Normal)))
        };
        let (short, long) = (read(25_000), read(100_000));
        let bound = short * 12 + Duration::from_millis(20);
        assert!(long < bound, "{piece:?}: {short:?} became {long:?} for four times as much");
        let case = Row::of(Vec::new(), text(100_000)).case();
        for judge in &judges {
            let took = least(|| drop(judge.judge(&case)));
            let who = judge.seat().verifier;
            assert!(took < EACH_MAX, "{who} took {took:?} for {piece:?}");
        }
    }
}
