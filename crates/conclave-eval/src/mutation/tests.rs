//! Disguises: what each does to a known text, and what all of them keep.

use super::*;
use proptest::prelude::*;

const SEED: u64 = 7;

fn apply(mutation: Mutation, text: &str) -> String {
    mutation.apply(text, SEED).unwrap()
}

#[test]
fn each_disguise_writes_what_its_name_says() {
    for (mutation, text, disguised) in [
        (Mutation::SoftHyphen, "ab c", "a\u{ad}b c"),
        (Mutation::TagSpelled, "a b", "\u{e0061}\u{e0020}\u{e0062}"),
        (Mutation::HomoglyphCyrillic, "cake", "саке"),
        (Mutation::HomoglyphGreek, "Top", "Τορ"),
        (Mutation::FullWidth, "a b!", "ａ　ｂ！"),
        (Mutation::Leet, "Toast", "70457"),
        (Mutation::SpacedLetters, "to do", "t o   d o"),
        (Mutation::Base64, "hello", "aGVsbG8="),
        (Mutation::UrlEncoding, "a é", "%61%20%C3%A9"),
        (Mutation::Rot13, "Hello, Nun", "Uryyb, Aha"),
        (Mutation::Reversed, "日本 ab", "ba 本日"),
    ] {
        assert_eq!(apply(mutation, text), disguised, "{mutation:?}");
    }
    assert_eq!(apply(Mutation::Hex, "hi").replace(' ', ""), "6869");
    assert_eq!(apply(Mutation::CaseMix, "bread").to_lowercase(), "bread");
    assert!(apply(Mutation::EmojiWords, "one two").starts_with("one "));
}

#[test]
fn what_is_put_between_can_be_taken_out_again() {
    let text = "Bread and butter, 明日の天気";
    let hidden = [
        Mutation::ZeroWidth,
        Mutation::SoftHyphen,
        Mutation::TagBetween,
        Mutation::Bidi,
        Mutation::CombiningMarks,
        Mutation::EmojiLetters,
        Mutation::PunctuatedLetters,
    ];
    for mutation in hidden {
        let disguised = apply(mutation, text);
        let mut rest = disguised.chars();
        assert!(text.chars().all(|one| rest.any(|other| other == one)), "{mutation:?}");
        assert!(disguised.chars().count() > text.chars().count() + 4, "{mutation:?}");
    }
}

#[test]
fn typos_swap_neighbours_inside_longer_words_only() {
    let text = "some longer sentences about ordinary weather";
    let mistyped = apply(Mutation::Typo, text);
    let words: Vec<_> = text.split(' ').zip(mistyped.split(' ')).collect();
    let changed = words.iter().filter(|(a, b)| a != b).count();
    assert!((1..=3).contains(&changed), "{mistyped}");
    for (right, wrong) in words {
        let sorted = |word: &str| {
            let mut letters: Vec<_> = word.chars().collect();
            letters.sort_unstable();
            letters
        };
        assert_eq!(sorted(right), sorted(wrong));
        assert_eq!(right.chars().next(), wrong.chars().next());
        assert_eq!(right.chars().last(), wrong.chars().last());
    }
    assert_eq!(apply(Mutation::RepeatedLetters, "weather").chars().count(), 10);
}

#[test]
fn frames_hold_the_text_in_its_language() {
    use Mutation::{Excused, NovelFrame, Padded, RolePlayFrame, StoryFrame};
    for mutation in [StoryFrame, RolePlayFrame, NovelFrame, Padded, Excused] {
        for seed in 0..20 {
            let english = mutation.apply("what is {} tea", seed).unwrap();
            assert!(english.contains("what is {} tea") && english.is_ascii(), "{english}");
            let japanese = mutation.apply("お茶とは", seed).unwrap();
            assert!(japanese.contains("お茶とは") && !japanese.contains("{}"), "{japanese}");
        }
    }
}

#[test]
fn what_would_stay_the_same_is_not_a_disguise() {
    assert_eq!(Mutation::Leet.apply("死", SEED), None);
    assert_eq!(Mutation::Rot13.apply("こんにちは 123", SEED), None);
    assert_eq!(Mutation::CaseMix.apply("日本語", SEED), None);
    assert_eq!(Mutation::SpacedLetters.apply("1 2 3", SEED), None);
    assert_eq!(Mutation::EmojiWords.apply("word", SEED), None);
    assert_eq!(Mutation::Bidi.apply("", SEED), None);
    assert_eq!(Mutation::Reversed.apply("abba", SEED), None);
}

#[test]
fn names_are_distinct() {
    let names: std::collections::BTreeSet<_> =
        Mutation::ALL.iter().map(|mutation| mutation.as_str()).collect();
    assert_eq!(names.len(), Mutation::ALL.len());
}

proptest! {
    #[test]
    fn any_text_is_disguised_the_same_way_twice(text in any::<String>(), seed in any::<u64>()) {
        for mutation in Mutation::ALL {
            let once = mutation.apply(&text, seed);
            prop_assert_eq!(&once, &mutation.apply(&text, seed));
            prop_assert_ne!(once.as_deref(), Some(text.as_str()));
            // Bounded: nothing grows beyond a small multiple and a frame.
            prop_assert!(once.unwrap_or_default().len() <= text.len() * 8 + 600);
        }
    }
}
