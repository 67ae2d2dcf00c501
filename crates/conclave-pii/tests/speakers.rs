//! Names of those who speak in a transcript: found in their labels and wherever they are spoken of,
//! but not where the word is only a word.

#![expect(clippy::unwrap_used, reason = "a failure here is the test's failure")]

use conclave_pii::{
    FOUND_MAX, Finder, Kind, KnownNames, NAMES_MAX, Redactor, Tokens, is_identifying,
};
use std::fmt::Write;
use std::sync::OnceLock;

fn finder() -> &'static Finder {
    static FINDER: OnceLock<Finder> = OnceLock::new();
    FINDER.get_or_init(|| Finder::builtin().unwrap())
}

fn learnt(texts: &[&str]) -> KnownNames {
    let mut names = KnownNames::new();
    for text in texts {
        finder().learn_speakers(text, &mut names);
    }
    names
}

/// The names that are found in a text, in order.
fn found(text: &str, names: &KnownNames) -> Vec<String> {
    let signs: Vec<char> = text.chars().collect();
    let found = finder().find_with_names(text, names).into_iter();
    let people = found.filter(|place| place.kind == Kind::PersonName && is_identifying(place));
    people.map(|place| signs[place.start..place.end].iter().collect()).collect()
}

struct Case {
    transcript: &'static str,
    /// Another text of the same material.
    later: &'static str,
    /// What is found in the transcript and in the later text.
    labels: &'static [&'static str],
    mentions: &'static [&'static str],
}

const CASES: &[Case] = &[
    Case {
        transcript: "Mara Lopez: we moved in June.",
        later: "Mara lost work. Ms Lopez moved, and MARA came back. Mara's sister stayed.",
        labels: &["Mara Lopez"],
        mentions: &["Mara", "Lopez", "MARA", "Mara"],
    },
    Case {
        transcript: "[1] Mara: we moved in June.\n[2] Interviewer: And then?",
        later: "The town paid Mara. The interviewer asked; Interviewer notes follow.",
        labels: &["Mara"],
        mentions: &["Mara"],
    },
    Case {
        transcript: "Interviewer: How are you?\nKshitij: Fine.",
        later: "Kshitij agreed.",
        labels: &["Kshitij"],
        mentions: &["Kshitij"],
    },
    Case {
        transcript: "Maria-José O'Neill (00:12:03): Yes.",
        later: "Then Maria-José left, and Mrs O’Neill with her.",
        labels: &["Maria-José O'Neill"],
        mentions: &["Maria-José", "O’Neill"],
    },
    Case {
        transcript: "Will: I will go. Will you come? We asked Will Stone.",
        later: "Will lost work. Will it rain? I asked Will. Where there's a will. Will will see.",
        labels: &["Will", "Will Stone"],
        mentions: &["Will", "Will"],
    },
    Case {
        transcript: "Will Stone: I moved in May.\nMay Rose: Will you come? Rose petals fell.",
        later: "Jon: Will you see Rose? May I? To: Will. さくらが咲きました。",
        labels: &["Will Stone", "May Rose"],
        mentions: &["Jon", "Rose", "Will"],
    },
    Case {
        transcript: "June: We moved in June.\nMay: In May I stayed.",
        later: "June said that it was last June, and in May it was May who called.",
        labels: &["June", "May"],
        mentions: &["June", "May"],
    },
    Case {
        transcript: "**Dr. Jonas Weber:** Good morning.",
        later: "Weber, said somebody, is late.",
        labels: &["Jonas Weber"],
        mentions: &["Weber"],
    },
    Case {
        transcript: "田中さん：引っ越しました。\n聞き手：それから？",
        later: "田中は仕事を失いました。田中町に住んでいます。聞き手は黙りました。",
        labels: &["田中"],
        mentions: &["田中"],
    },
    Case {
        transcript: "田中 明子：はい。",
        later: "明子が来ました。明子さんと田中さん。",
        labels: &["田中 明子"],
        mentions: &["明子", "明子", "田中"],
    },
    Case {
        transcript: "司会：どうぞ。\n森：はい、森です。\n森：山の話です。",
        later: "森の中を歩きました。森さんが来ました。",
        labels: &["森", "森"],
        mentions: &["森"],
    },
    Case {
        transcript: "anna: i moved last year\nbob: me too",
        later: "anna is fine",
        labels: &["anna", "bob"],
        mentions: &["anna"],
    },
];

#[test]
fn a_speaker_is_found_in_the_label_and_where_others_speak_of_them() {
    for case in CASES {
        let names = learnt(&[case.transcript]);
        let labels = found(case.transcript, &names);
        assert!(
            case.labels.iter().all(|label| labels.iter().any(|one| one == label)),
            "{}: {labels:?}",
            case.transcript
        );
        assert_eq!(found(case.later, &names), case.mentions, "{}", case.later);
    }
}

/// Lines whose beginning is nobody.
const NOBODY: &[&str] = &[
    "Note: the deadline is Friday.",
    "Q: Who goes? A: We go.",
    "A: b.",
    "https://example.org: a page",
    "Summary: we moved.",
    "Interviewer: How are we?",
    "Speaker 1: I am fine.",
    "SPEAKER_00: I am fine.",
    "Participant 4: I agree with us.",
    "10:30: we met",
    "Step 1: We mix.",
    "Berlin: a city in the north of our country",
    "Ingredients: flour and water",
    "- **Kyoto**: old temples\n- **Osaka**: good food",
    "{\"name\": \"value\", \"Mara\": 3}",
    "match x { Some(y) => y, None: z }",
    "```\nMara: str\nMara: int\nJon: str\n```",
    "class Mara: pass",
    "def mara(): return 1",
    "std::mem::swap(a, b)",
    "Monday: we met at noon",
    "Dear all: we moved",
    "Tip: bring your own cup",
    "注意：締め切りは金曜日です。",
    "日時：三月四日\n場所：東京\n司会：未定",
    "質問：これは何ですか。\n回答：本です。",
    "聞き手：どうでしたか。",
];

#[test]
fn headings_roles_times_addresses_and_code_are_nobody() {
    for text in NOBODY {
        let names = learnt(&[text]);
        assert!(names.is_empty(), "{text}: {}", names.len());
    }
}

#[test]
fn a_field_for_the_speaker_is_a_name() {
    for (field, mention, name) in [
        ("Mara Lopez", "Ask Mara.", "Mara"),
        ("mara lopez", "Ask Lopez.", "Lopez"),
        ("Interviewer (Mara Lopez)", "Ask Mara.", "Mara"),
        ("Grandma Rosa", "Ask Rosa.", "Rosa"),
        ("Kshitij", "Kshitij agreed.", "Kshitij"),
        ("田中明子さん", "明子は元気です。", "明子"),
        ("Dr. Weber", "Ask Weber.", "Weber"),
    ] {
        let mut names = KnownNames::new();
        finder().learn_speaker(field, &mut names);
        assert_eq!(found(mention, &names), [name], "{field}: {mention}");
        let redactor = Redactor::new(finder()).with_names(&names);
        let hidden = redactor.redact_speaker(field, &mut Tokens::new()).unwrap();
        assert!(hidden.contains("[PERSON_NAME_1]") && !hidden.contains(name), "{hidden}");
    }
}

#[test]
fn a_field_that_holds_a_role_is_nobody() {
    for field in
        ["Interviewer", "Speaker 2", "SPEAKER_01", "Community Elder", "聞き手", "P3", "", "?"]
    {
        let mut names = KnownNames::new();
        finder().learn_speaker(field, &mut names);
        assert!(names.is_empty(), "{field}");
        assert_eq!(Redactor::new(finder()).redact_speaker(field, &mut Tokens::new()), None);
    }
}

#[test]
fn names_are_not_shown_and_not_without_end() {
    let mut text = String::new();
    for number in 0..NAMES_MAX {
        let letters: String =
            number.to_string().bytes().map(|digit| char::from(b'a' + digit - b'0')).collect();
        writeln!(text, "[1] Q{letters} X{letters}: yes").unwrap();
    }
    let names = learnt(&[&text]);
    assert_eq!(names.len(), NAMES_MAX);
    assert_eq!(format!("{names:?}"), format!("KnownNames({NAMES_MAX})"));
}

#[test]
fn labels_by_the_thousand_take_linear_time() {
    let text = "Mara: we moved\nNote: x\n".repeat(20_000);
    let names = learnt(&[&text]);
    assert_eq!(names.len(), 1);
    assert_eq!(found(&text, &names).len(), FOUND_MAX);
}
