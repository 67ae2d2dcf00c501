//! One line of `check --jsonl`, whatever its bytes.
#![no_main]

use conclave_detect::Detector;
use conclave_engine::{Checker, Question};
use libfuzzer_sys::fuzz_target;
use std::sync::{Arc, LazyLock};

static CHECKER: LazyLock<Checker> = LazyLock::new(|| {
    Checker::new(Arc::new(Detector::builtin().unwrap()), conclave_verifiers::builtin().unwrap())
});

fuzz_target!(|line: &[u8]| {
    if let Ok(row) = serde_json::from_slice(line)
        && let Ok(question) = Question::from_line(&row)
    {
        let answer = CHECKER.check(&question);
        assert!((0.0..=1.0).contains(&answer.harm));
    }
});
