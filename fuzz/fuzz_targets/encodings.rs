//! Bytes behind nested encodings: hex in percent signs in base64-like text, as deep as the fuzzer likes.
#![no_main]

use conclave_core::Mode;
use conclave_detect::Detector;
use libfuzzer_sys::fuzz_target;
use std::sync::LazyLock;

static DETECTOR: LazyLock<Detector> = LazyLock::new(|| Detector::builtin().unwrap());

fuzz_target!(|input: (u8, Vec<u8>)| {
    let (depth, mut bytes) = input;
    for level in 0..depth % 6 {
        let written = bytes.iter().map(|byte| match level % 3 {
            0 => format!("{byte:02x}"),
            1 => format!("%{byte:02X}"),
            _ => format!("\\x{byte:02x}"),
        });
        bytes = written.collect::<String>().into_bytes();
        bytes.truncate(1 << 16);
    }
    let _ = DETECTOR.explain(&String::from_utf8_lossy(&bytes), Mode::ChildSafe);
});
