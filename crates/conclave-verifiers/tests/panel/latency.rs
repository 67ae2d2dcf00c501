//! The whole panel is quick: a 300-character reply in well under a millisecond.

use crate::support::{Row, Turn, ballots};
use conclave_verifiers::builtin;
use std::time::Instant;

const REPLY: &str = "I'm sorry that the move has been so lonely. New places take longer than we \
    think, and you did a brave thing. You could look for a choir or a class nearby, and call one old \
    friend this week, just to hear a known voice. What do the evenings look like at the moment, and \
    what would make one of them a little warmer?";

/// Generous, because tests run unoptimised and beside others; the figure itself is printed.
const P50_MAX_US: u128 = 3_000;

#[test]
fn a_reply_is_judged_quickly() {
    let judges = builtin().unwrap();
    let asked = Turn { role: "user".into(), content: "I feel so alone in this new city.".into() };
    let row = Row::of(vec![asked], REPLY.into());
    assert!((280..=340).contains(&REPLY.len()));
    let mut times: Vec<u128> = (0..400)
        .map(|_| {
            let case = row.case();
            let start = Instant::now();
            assert_eq!(ballots(&judges, &case).len(), 7);
            start.elapsed().as_micros()
        })
        .collect();
    times.sort_unstable();
    let (p50, p99) = (times[times.len() / 2], times[times.len() * 99 / 100]);
    println!("seven verifiers, {} characters: p50 {p50} us, p99 {p99} us", REPLY.len());
    assert!(p50 <= P50_MAX_US, "p50 {p50} us");
}

#[test]
fn time_grows_no_faster_than_the_text() {
    let judges = builtin().unwrap();
    let time = |repeats: usize| {
        let row = Row::of(Vec::new(), REPLY.repeat(repeats));
        let once = || {
            let case = row.case();
            let start = Instant::now();
            assert_eq!(ballots(&judges, &case).len(), 7);
            start.elapsed().as_secs_f64()
        };
        // The best of several runs: what else the machine does only ever adds.
        (0..7).map(|_| once()).fold(f64::MAX, f64::min)
    };
    let (short, long) = (time(40), time(400));
    assert!(long < short * 50.0, "{short} s for 40, {long} s for 400");
}
