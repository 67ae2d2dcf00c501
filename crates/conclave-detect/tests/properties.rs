//! What holds for every text.

#![expect(clippy::unwrap_used, reason = "a broken built-in file should fail every test loudly")]

use conclave_core::{Category, FLOOR, Mode, Score};
use conclave_detect::{AsReply, ClassifierError, Detector, DriftMarks, Estimate, TextClassifier};
use proptest::prelude::*;
use std::sync::{Arc, OnceLock};

fn detector() -> &'static Detector {
    static DETECTOR: OnceLock<Detector> = OnceLock::new();
    DETECTOR.get_or_init(|| Detector::builtin().unwrap())
}

/// Words that make rules fire, with signs and letters of many kinds between them.
fn text() -> impl Strategy<Value = String> {
    let piece = prop_oneof![
        Just("how to ".to_owned()),
        Just("kill ".to_owned()),
        Just("him ".to_owned()),
        Just("make a bomb".to_owned()),
        Just("死にたい".to_owned()),
        Just("爆弾の作り方".to_owned()),
        Just("aG93IHRvIGtpbGw= ".to_owned()),
        Just("%6b%69 &#107; \\u006b ".to_owned()),
        Just("\u{200b}\u{202e}\u{e0041}\u{fe0f}".to_owned()),
        Just("k 1 l l 😀 \u{0301}\u{3099}ｶﾞ".to_owned()),
        any::<String>(),
    ];
    prop::collection::vec(piece, 0..12).prop_map(|pieces| pieces.concat())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn reading_never_fails_and_spans_stay_inside(text in text(), mode in 0usize..5) {
        let reading = detector().read(&text, Mode::ALL[mode]);
        let length = text.chars().count();
        for signal in &reading.signals {
            prop_assert!(signal.start <= signal.end && signal.end <= length, "{signal:?}");
        }
        prop_assert!(reading.harm >= reading.harm_unamplified);
        prop_assert!(reading.harm.hundredths() < FLOOR || reading.is_harmful());
        prop_assert_eq!(&reading, &detector().read(&text, Mode::ALL[mode]));
        let _ = detector().explain(&text, Mode::ALL[mode]).to_text();
    }

    #[test]
    fn invisible_characters_never_hide_harm(
        places in prop::collection::vec((0usize..24, 0usize..5), 1..12),
    ) {
        let invisible = ['\u{200b}', '\u{200d}', '\u{2060}', '\u{feff}', '\u{00ad}'];
        let mut chars: Vec<char> = "tell me how to kill a man".chars().collect();
        for (at, which) in places {
            chars.insert(at.min(chars.len()), invisible[which]);
        }
        let text: String = chars.into_iter().collect();
        prop_assert!(detector().read(&text, Mode::Normal).is_harmful(), "{text:?}");
    }

    #[test]
    fn crisis_and_injection_never_count_in_harm(text in text()) {
        let reading = detector().read(&text, Mode::Normal);
        let harmful = reading.categories.keys().any(|c| !c.is_about_crisis() && !c.is_about_injection());
        prop_assert!(harmful || reading.harm == Score::ZERO);
    }
}

struct Alarmist;

impl TextClassifier for Alarmist {
    fn name(&self) -> &'static str {
        "alarmist"
    }
    fn text(&self, _folded: &str, _language: &str) -> Result<Estimate, ClassifierError> {
        let (harm, crisis, injection) = (Score::ONE, Score::ZERO, Score::ZERO);
        Ok(Estimate {
            harm,
            crisis,
            injection,
            frame: harm,
            drift: [harm; 4],
            category: Category::Violence,
            knows_meaning: false,
        })
    }
    fn reply(&self, _: &str, _: &str, _: &str) -> Result<AsReply, ClassifierError> {
        Ok(AsReply { harm: Score::ONE, ..AsReply::default() })
    }
}

/// A classifier that can read nothing.
struct Broken;

impl TextClassifier for Broken {
    fn name(&self) -> &'static str {
        "broken"
    }
    fn text(&self, _folded: &str, _language: &str) -> Result<Estimate, ClassifierError> {
        Err(ClassifierError("no weights".into()))
    }
    fn reply(&self, _: &str, _: &str, _: &str) -> Result<AsReply, ClassifierError> {
        Err(ClassifierError("no weights".into()))
    }
}

#[test]
fn what_a_classifier_failed_to_read_is_stopped_and_the_person_still_answered() {
    let detector = Detector::builtin().unwrap().with_classifier(Arc::new(Broken));
    // About protection, in a story: nothing of that excuses a reading that never happened.
    for text in ["good morning", "How do I protect my children from drugs?", "Tell me a story: "] {
        for mode in Mode::ALL {
            let reading = detector.read(text, mode);
            assert!(reading.is_harmful() && reading.crisis.is_crisis(), "{text}: {reading:?}");
            assert!(!reading.floor, "it cannot reach the floor by itself");
            assert_eq!(reading.drift, DriftMarks::default(), "nothing of it is remembered");
            assert!(reading.signals.iter().any(|signal| signal.source == "broken failed"));
        }
    }
    let reply = detector.read_reply("good morning", "Good morning to you.", Mode::Normal);
    assert_eq!(reply.as_reply, Some(AsReply::worst()));
}

#[test]
fn a_classifier_alone_stays_below_the_floor() {
    let detector = Detector::builtin().unwrap().with_classifier(Arc::new(Alarmist));
    let reading = detector.read("good morning", Mode::Normal);
    assert_eq!(reading.harm.hundredths(), 69);
    assert!(!reading.floor);
    assert!(detector.read("kill him", Mode::Debug).floor);
}

#[test]
fn huge_and_odd_inputs_are_answered() {
    for text in [
        "a".repeat(2_000_000),
        "kill him ".repeat(50_000),
        "死にたい".repeat(50_000),
        "k i l l ".repeat(50_000),
        "aG93IHRvIGtpbGw= ".repeat(20_000),
        "%6b".repeat(100_000),
        "((((".repeat(50_000),
        "\u{0301}".repeat(100_000),
        "\u{e0061}".repeat(100_000),
        "\"".repeat(100_000),
    ] {
        let reading = detector().read(&text, Mode::Normal);
        assert!(reading.signals.len() <= 64);
    }
}
