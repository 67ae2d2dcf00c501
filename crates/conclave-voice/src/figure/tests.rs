//! Every situation in every voice.

use super::*;
use proptest::prelude::*;
use std::sync::LazyLock;

static VOICES: LazyLock<Voices> =
    LazyLock::new(|| Voices::naming(Resources::builtin().unwrap()).unwrap());

const LANGUAGES: [&str; 2] = ["en", "ja"];

fn speech(situation: Situation, language: &str, persona: Persona) -> Speech<'_> {
    Speech {
        situation,
        persona,
        language,
        category: None,
        staffed: false,
        country: None,
        in_crisis: false,
    }
}

/// Every situation with every category that words it differently, staffed and not.
fn everything(check: impl Fn(&Voices, &dyn Fn(Persona) -> String, &str)) {
    let voices = &*VOICES;
    let categories = std::iter::once(None).chain(Category::ALL.iter().copied().map(Some));
    for category in categories {
        for situation in Situation::ALL {
            for language in LANGUAGES {
                for staffed in [true, false] {
                    let say = |persona| {
                        let mut speech = speech(situation, language, persona);
                        speech.category = category;
                        speech.staffed = staffed;
                        voices.compose(&speech, voices.vector(persona))
                    };
                    let name = format!("{situation:?} {language} {category:?} {staffed}");
                    check(voices, &say, &name);
                }
            }
        }
    }
}

#[test]
fn all_five_personas_differ_everywhere() {
    everything(|_, say, name| {
        let mut said: Vec<_> = Persona::ALL.into_iter().map(say).collect();
        said.sort();
        said.dedup();
        assert_eq!(said.len(), 5, "{name}: {said:#?}");
    });
}

#[test]
fn direct_is_shortest_everywhere() {
    everything(|_, say, name| {
        let direct = say(Persona::Direct).chars().count();
        for persona in Persona::ALL {
            let length = say(persona).chars().count();
            assert!(
                persona == Persona::Direct || direct < length,
                "{name}: {persona:?} {length} <= {direct}"
            );
        }
    });
}

/// Words of welcome and care; how often they occur is how warm a message is.
fn warmth(text: &str) -> usize {
    const WARM: [&str; 14] = [
        "hank you",
        "hanks",
        "welcome",
        "nobody is judging",
        "courage",
        "you matter",
        "patien",
        "gentle",
        "deserve",
        "not alone",
        "ありがとう",
        "安心して",
        "大切",
        "ひとりでは",
    ];
    WARM.iter().map(|word| text.matches(word).count()).sum()
}

#[test]
fn guardian_is_warmest_everywhere() {
    everything(|_, say, name| {
        let guardian = warmth(&say(Persona::Guardian));
        for persona in Persona::ALL {
            let other = warmth(&say(persona));
            assert!(other <= guardian, "{name}: {persona:?} {other} > {guardian}");
        }
        assert!(guardian > warmth(&say(Persona::Direct)), "{name}");
    });
}

#[test]
fn nobody_is_promised_where_nobody_is_on_duty() {
    const PROMISES: [&str; 14] = [
        "person will",
        "will look",
        "someone will",
        "review",
        "approval. ",
        "a person to",
        "our team",
        "staff",
        "get back to you",
        "decision will",
        "人が内容",
        "人が確認",
        "担当",
        "人の承認",
    ];
    everything(|_, say, name| {
        if name.ends_with("false") {
            for persona in Persona::ALL {
                let said = say(persona);
                for promise in PROMISES {
                    assert!(!said.contains(promise), "{name}: {said}");
                }
            }
        }
    });
    let voices = &*VOICES;
    for (language, promise) in [("en", "person will"), ("ja", "人が")] {
        let mut staffed = speech(Situation::EscalationNotice, language, Persona::Direct);
        staffed.staffed = true;
        assert!(voices.say(&staffed).contains(promise));
    }
}

#[test]
fn a_chat_is_not_said_to_show_a_decision_that_only_the_application_can_fetch() {
    for (language, claims, truth) in [
        ("en", ["appear here", "see the decision here"], "can fetch the decision"),
        ("ja", ["ここに表示", "ここに出る"], "受け取れ"),
    ] {
        for persona in Persona::ALL {
            let mut notice = speech(Situation::HoldNotice, language, persona);
            notice.staffed = true;
            let said = VOICES.say(&notice);
            assert!(claims.iter().all(|claim| !said.contains(claim)), "{said}");
            let says_where = said.contains(truth) || said.contains("お受け取り");
            assert!(says_where, "{said}");
        }
    }
}

#[test]
fn no_message_claims_feelings_or_promises_rescue() {
    const CLAIMS: [&str; 16] = [
        "i feel",
        "i'm glad",
        "i am glad",
        "i'm happy",
        "i care",
        "i love",
        "i'm worried",
        "i worry",
        "i'm sad",
        "i understand how",
        "i will save",
        "i promise",
        "everything will be",
        "you should",
        "嬉しいです",
        "必ず助け",
    ];
    everything(|_, say, name| {
        for persona in Persona::ALL {
            let said = say(persona).to_lowercase();
            for claim in CLAIMS {
                assert!(!said.contains(claim), "{name} {persona:?}: {said}");
            }
        }
    });
}

#[test]
fn every_refusal_offers_something() {
    let voices = &*VOICES;
    for category in Category::ALL {
        for persona in Persona::ALL {
            for (language, offers) in [
                ("en", ["I can ", "we can", "I'll", "we'll"]),
                ("ja", ["でき", "ます", "るよ", "いいよ"]),
            ] {
                let mut refusal = speech(Situation::Refusal, language, persona);
                refusal.category = Some(*category);
                let said = voices.compose(&refusal, voices.vector(persona));
                let offered = offers.iter().any(|offer| said.contains(offer))
                    || said.contains("考えよう")
                    || said.contains("聞くよ");
                assert!(offered, "{category:?} {persona:?}: {said}");
            }
        }
    }
}

#[test]
fn danger_to_oneself_always_carries_resources() {
    let voices = &*VOICES;
    let mut refusal = speech(Situation::Refusal, "en", Persona::Direct);
    assert!(!voices.say(&refusal).contains("988"));
    refusal.category = Some(Category::SelfHarm);
    refusal.country = Some("US");
    assert!(voices.say(&refusal).contains("988"));
    for situation in [Situation::SafeCompletion, Situation::CrisisSupport] {
        for persona in Persona::ALL {
            let said = voices.say(&speech(situation, "ja", persona));
            assert!(said.contains("0120-783-556"), "{said}");
        }
    }
}

#[test]
fn a_person_in_crisis_is_shown_the_organisations_lines_once_and_never_those_they_replace() {
    const OWN: &str = "[[country]]\ncode = \"JP\"\nname = \"Japan\"\nname_ja = \"日本\"\n\
        emergency = \"119\"\n[[country.line]]\nname = \"社内相談窓口\"\ncall = \"050-5555-0100\"\n\
        source = \"ourselves\"\n";
    let lines = Resources::builtin().unwrap().overridden("own.toml", OWN).unwrap();
    let voices = Voices::naming(lines).unwrap();
    for situation in Situation::ALL {
        for language in LANGUAGES {
            let mut speech = speech(situation, language, Persona::Guardian);
            speech.country = Some("JP");
            speech.in_crisis = true;
            let said = voices.say(&speech);
            assert_eq!(said.matches("050-5555-0100").count(), 1, "{situation:?}: {said}");
            assert!(!said.contains("0120-279-338"), "{situation:?}: {said}");
        }
    }
}

#[test]
fn a_crisis_is_answered_in_whole_sentences_and_asks_about_safety() {
    let voices = &*VOICES;
    for persona in Persona::ALL {
        for (language, ask, stop) in [("en", "safe", ['.', '?']), ("ja", "安全", ['。', '？'])]
        {
            let safe = speech(Situation::SafeCompletion, language, persona);
            let said = voices.compose(&safe, voices.vector(persona));
            assert!(said.contains(ask), "{said}");
            assert!(said.matches(stop).count() >= 3, "{said}");
        }
    }
}

#[test]
fn other_languages_are_answered_in_english() {
    let voices = &*VOICES;
    let say = |language| voices.say(&speech(Situation::Exhausted, language, Persona::Friend));
    assert_eq!(say("fr"), say("en"));
    assert_eq!(say("ja-JP"), say("ja"));
    assert_ne!(say("ja"), say("en"));
}

#[test]
fn a_file_without_words_is_refused() {
    let voices = &*VOICES;
    let broken = EN.replace(
        "[[hold_notice.core]]\nwhen = \"unstaffed\"",
        "[[hold_notice.core]]\nwhen = \"staffed\"",
    );
    let error = voices.clone().with_script(Language::English, "mine.toml", &broken).unwrap_err();
    assert_eq!(error.to_string(), "mine.toml: missing a general core for hold_notice");
    assert!(voices.clone().with_script(Language::Japanese, "mine.toml", JA).is_ok());
}

fn any_vector() -> impl Strategy<Value = Vector> {
    (0.0f32..=1.0, 0.0f32..=1.0, 0.0f32..=1.0).prop_map(|(formality, empathy, verbosity)| Vector {
        formality,
        empathy,
        verbosity,
    })
}

proptest! {
    #[test]
    fn raising_verbosity_never_shortens(
        vector in any_vector(),
        more in 0.0f32..=1.0,
        situation in proptest::sample::select(Situation::ALL.to_vec()),
        category in proptest::option::of(proptest::sample::select(Category::ALL.to_vec())),
        language in proptest::sample::select(LANGUAGES.to_vec()),
        staffed: bool,
    ) {
        let voices = &*VOICES;
        let mut speech = speech(situation, language, Persona::Guardian);
        speech.category = category;
        speech.staffed = staffed;
        let before = voices.compose(&speech, vector);
        let fuller = Vector { verbosity: (vector.verbosity + more).min(1.0), ..vector };
        let after = voices.compose(&speech, fuller);
        prop_assert!(!before.is_empty());
        prop_assert!(after.chars().count() >= before.chars().count());
    }
}
