//! Texts that come in pieces: whatever the pieces, the parts that leave are together the whole text
//! redacted at once, and no secret is cut in two.

#![expect(clippy::unwrap_used, reason = "a failure here is the test's failure")]

use conclave_pii::{Finder, KnownNames, Redactor, Tokens, UNCUT_BYTES_MAX, last_safe_cut};
use proptest::prelude::*;
use std::sync::OnceLock;

fn finder() -> &'static Finder {
    static FINDER: OnceLock<Finder> = OnceLock::new();
    FINDER.get_or_init(|| Finder::builtin().unwrap())
}

fn names() -> &'static KnownNames {
    static NAMES: OnceLock<KnownNames> = OnceLock::new();
    NAMES.get_or_init(|| {
        let mut names = KnownNames::new();
        finder().learn_speaker("Mara Lopez", &mut names);
        finder().learn_speaker("Will", &mut names);
        finder().learn_speaker("田中明子さん", &mut names);
        names
    })
}

fn redactor() -> Redactor<'static> {
    Redactor::new(finder()).with_names(names())
}

/// Values that are found wherever they stand alone. Numbers are reserved for examples, published
/// test numbers, or made to fit a check digit.
const SECRETS: &[&str] = &[
    "jane.doe+news@mail.example.com",
    "4111 1111 1111 1111",
    "378282246310005",
    "GB82 WEST 1234 5698 7654 32",
    "+1 202-555-0143",
    "090-1234-5678",
    "０９０－１２３４－５６７８",
    "https://example.com/a/very/long/path?with=many&parts=of&it=and#more-of-it",
    "219-09-9998",
    "Mara Lopez",
    "Dr. Jonas Weber",
    "Anna Lindqvist",
    "203.0.113.7",
    "ghp_0123456789abcdefghijABCDEFGHIJ012345",
    "-----BEGIN PRIVATE KEY-----\nMIIEvQIBADANBgkq\nhkiG9w0BAQEFAASC\n-----END PRIVATE KEY-----",
];

/// The parts of secrets that must not be seen anywhere: those a reader could use.
const TRACES: &[&str] = &[
    "jane.doe",
    "mail.example",
    "4111 1111",
    "3782822463",
    "WEST 1234",
    "5698 7654",
    "202-555",
    "555-0143",
    "090-1234",
    "1234-5678",
    "０９０",
    "very/long",
    "more-of-it",
    "219-09",
    "09-9998",
    "Lopez",
    "Jonas",
    "Weber",
    "Lindqvist",
    "203.0.113",
    "0123456789abcdef",
    "MIIEv",
    "hkiG9",
];

const FILLERS: &[&str] = &[
    " ",
    ". ",
    "! ",
    "? ",
    ", ",
    "\n",
    "\n\n",
    ": ",
    "。",
    "、",
    " - ",
    "… ",
    " (",
    ") ",
    "\" ",
    "「",
    "」",
    "'s ",
    " and ",
    " or ",
    " the weather is fine today",
    "Please note the following",
    " I moved in June",
    "Will you come?",
    " call me at ",
    " card number ",
    " [EMAIL_7] ",
    " [EMAIL_",
    " [see below] ",
    "1. ",
    "3, ",
    " on 3 March ",
    "これは文です",
    "電話は",
    "です",
    " e.g. ",
    " No. ",
    " etc. ",
    "Mr. ",
    "\r\n",
    "- ",
    "**",
    "`x`",
    "12 of 40 ",
    "…",
    " hello ",
    "Will: ",
    "田中さんは",
];

fn pick(from: &'static [&'static str]) -> impl Strategy<Value = String> {
    prop::sample::select(from).prop_map(str::to_owned)
}

/// Secrets among words and signs, each with a blank around it so that it is a value of its own.
fn planted() -> impl Strategy<Value = String> {
    let piece = prop_oneof![
        4 => pick(FILLERS),
        1 => pick(SECRETS).prop_map(|secret| format!(" {secret} ")),
        1 => "[xyz]{1,9} ",
    ];
    prop::collection::vec(piece, 0..30).prop_map(|pieces| pieces.concat())
}

/// Anything at all, secrets and halves of them run together with other signs.
fn wild() -> impl Strategy<Value = String> {
    let piece = prop_oneof![
        pick(FILLERS),
        pick(SECRETS),
        any::<String>(),
        "[ -~]{0,12}",
        "[.!?,:\\-\\[\\] \n0-9A-Za-z]{0,16}",
        "[ぁ-ん一-龥。、！？]{0,8}",
        pick(&[
            "password: ",
            "hunter22",
            "St. ",
            "-----BEGIN",
            "-----END",
            "-----",
            "Mara",
            "Will",
            "Berg",
            "12",
            "0"
        ]),
    ];
    prop::collection::vec(piece, 0..24).prop_map(|pieces| pieces.concat())
}

/// Every beginning of the text that may leave, redacted by itself, begins the whole redacted at once.
fn check(text: &str) -> Result<String, TestCaseError> {
    let redacted = |text: &str| {
        redactor().redact_text(text, &mut Tokens::new()).unwrap_or_else(|| text.to_owned())
    };
    let whole = redacted(text);
    let mut last = 0;
    for upto in text.char_indices().map(|(at, _)| at) {
        let cut = last_safe_cut(&text[..upto], upto);
        prop_assert!(cut >= last && text.is_char_boundary(cut), "what left cannot be taken back");
        if cut > last {
            let left = redacted(&text[..cut]);
            prop_assert!(whole.starts_with(&left), "{left:?} of {whole:?} of {text:?}");
            last = cut;
        }
    }
    Ok(whole)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(512))]

    #[test]
    fn parts_are_together_the_whole_and_hold_no_secret(text in planted()) {
        let whole = check(&text)?;
        for trace in TRACES {
            prop_assert!(!whole.contains(trace), "{} in {:?} of {:?}", trace, whole, text);
        }
    }

    #[test]
    fn parts_are_together_the_whole_for_any_text(text in wild()) {
        check(&text)?;
    }
}

#[test]
fn a_stream_waits_for_what_has_begun() {
    for (text, end) in [
        ("", 0),
        ("Hello", 0),
        ("Hello.", 0),
        ("Hello. ", 6),
        ("I owe 3. ", 8),
        ("Hello. I", 6),
        ("Hello! ", 6),
        ("One line\nanother", 9),
        ("Done. My card is 4111 1111", 5),
        ("Done. Ask Dr. Jonas", 5),
        ("Done. Ask Mara", 5),
        ("Done. Write to jane@example", 5),
        ("Done. Write to [EMAIL_", 5),
        ("Done. It is at 12 St. John ", 5),
        ("Lange Gasse 3,\n1080 Wi", 0),
        ("Lange Gasse 3,\n1080", 0),
        ("Seen 3,\nand more", 8),
        ("Look. -----BEGIN PRIVATE KEY-----\nMIIE\nabc\n", 5),
        ("これは文です。次", 21),
        ("これは文です。", 0),
        ("これは文です。A", 21),
        ("「行こう。」と言った。次", 33),
        ("He asked \"why?\" Then", 15),
    ] {
        assert_eq!(last_safe_cut(text, text.len()), end, "{text}");
    }
}

#[test]
fn whoever_has_other_reasons_to_cut_gets_the_last_cut_before_theirs() {
    let text = "First one. Ask Dr. Weber. Then go on";
    let after_title = text.find("Weber").unwrap();
    assert_eq!(last_safe_cut(text, after_title), "First one.".len());
    assert_eq!(last_safe_cut(text, text.len()), "First one. Ask Dr. Weber.".len());
    assert_eq!(last_safe_cut(text, 3), 0);
}

#[test]
fn prose_that_never_ends_a_sentence_does_not_wait_for_ever() {
    let text = "and then we went on ".repeat(UNCUT_BYTES_MAX / 10);
    let cut = last_safe_cut(&text, text.len());
    assert!(cut > UNCUT_BYTES_MAX && text.len() - cut < UNCUT_BYTES_MAX + 20, "{cut}");
    let numbers = "4111 1111 1111 1111 ".repeat(UNCUT_BYTES_MAX / 10);
    assert_eq!(last_safe_cut(&numbers, numbers.len()), 0, "a number is never cut");
}

#[test]
fn a_long_text_takes_linear_time() {
    for unit in ["a", "-----BEGIN ", "[EMAIL_", "word. ", "...", "1 2 3\n", "-----BEGIN\n"] {
        let text = unit.repeat(4_000_000 / unit.len());
        assert!(last_safe_cut(&text, text.len()) <= text.len());
    }
}

/// The last line of a key is looked for within a number of bytes, which may end inside a wide blank.
#[test]
fn a_key_with_wide_blanks_in_its_last_line_is_read() {
    for blanks in 0..80 {
        let wide = "\u{3000}".repeat(30);
        let text = format!("-----BEGIN -----END{}{wide}. Then.\n", "-".repeat(blanks));
        assert!(last_safe_cut(&text, text.len()) <= text.len());
        assert!(finder().find(&text).len() <= 1);
    }
}
