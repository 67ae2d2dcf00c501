//! Identifying data in any text: spans are in order and apart, and what is replaced comes back.
#![no_main]

use conclave_pii::{Finder, Tokens, redact, restore};
use libfuzzer_sys::fuzz_target;
use std::sync::LazyLock;

static FINDER: LazyLock<Finder> = LazyLock::new(|| Finder::builtin().unwrap());

fuzz_target!(|text: &str| {
    let found = FINDER.find(text);
    assert!(found.windows(2).all(|pair| pair[0].end <= pair[1].start));
    let mut tokens = Tokens::default();
    let redacted = redact(text, &found, &mut tokens);
    assert_eq!(restore(&redacted, &tokens), text);
});
