//! Folding, patterns and scores on any text: no panic, and every signal points into the text.
#![no_main]

use conclave_core::Mode;
use conclave_detect::Detector;
use libfuzzer_sys::fuzz_target;
use std::sync::LazyLock;

static DETECTOR: LazyLock<Detector> = LazyLock::new(|| Detector::builtin().unwrap());

fuzz_target!(|text: &str| {
    let reading = DETECTOR.read(text, Mode::Normal);
    let length = text.chars().count();
    assert!(reading.signals.iter().all(|signal| signal.start <= signal.end && signal.end <= length));
});
