//! What the shipped set says: whole, in both languages, to the point, and never twice.

use crate::{COUNT, Core, Directive, Duty, Instinct, Topic};
use conclave_core::{Category, DirectiveId, Reason};
use std::collections::BTreeSet;

fn shipped() -> Instinct {
    Instinct::builtin().unwrap()
}

fn words(text: &str) -> BTreeSet<String> {
    text.split(|c: char| !c.is_alphanumeric())
        .filter(|word| !word.is_empty())
        .map(str::to_lowercase)
        .collect()
}

/// Japanese writes no spaces between words; pairs of characters stand in for them.
fn pairs(text: &str) -> BTreeSet<String> {
    let letters: Vec<char> = text.chars().filter(|c| c.is_alphanumeric()).collect();
    letters.windows(2).map(|pair| pair.iter().collect()).collect()
}

fn jaccard(a: &BTreeSet<String>, b: &BTreeSet<String>) -> f64 {
    let common = u32::try_from(a.intersection(b).count()).unwrap();
    let all = u32::try_from(a.union(b).count()).unwrap();
    f64::from(common) / f64::from(all.max(1))
}

fn is_kana(c: char) -> bool {
    matches!(c, '\u{3041}'..='\u{3096}' | '\u{30A1}'..='\u{30FA}')
}

fn alike(set: &Instinct, features: impl Fn(&Directive) -> BTreeSet<String>) {
    let all: Vec<_> = set.iter().map(|directive| (directive.id, features(directive))).collect();
    for (index, (id, mine)) in all.iter().enumerate() {
        for (other, theirs) in &all[index + 1..] {
            let likeness = jaccard(mine, theirs);
            assert!(likeness < 0.8, "{id} and {other} are alike: {likeness:.2}");
        }
    }
}

#[test]
fn there_are_128_numbered_from_one() {
    let set = shipped();
    let numbers: Vec<u16> = set.iter().map(|directive| directive.id.0).collect();
    assert_eq!(numbers, (1..=128).collect::<Vec<u16>>());
    assert_eq!(COUNT, 128);
}

#[test]
fn the_first_five_are_the_cores() {
    let set = shipped();
    for (number, core, opening) in [
        (1, Core::ProtectLife, "Protect innocent life."),
        (2, Core::OwnLife, "Respect one's own life."),
        (3, Core::NoTerrorism, "No terrorism."),
        (4, Core::NoMassHarm, "No mass harm."),
        (5, Core::NoOverride, "No override."),
    ] {
        let directive = set.get(DirectiveId(number)).unwrap();
        assert_eq!(directive.core, core);
        assert!(directive.en.starts_with(opening), "{}", directive.en);
    }
}

#[test]
fn every_core_is_unfolded_beyond_its_own_statement() {
    let set = shipped();
    for &core in Core::ALL {
        let count = set.iter().filter(|directive| directive.core == core).count();
        assert!(count >= 6, "{core} has {count}");
    }
}

#[test]
fn every_harm_and_every_duty_has_at_least_two() {
    let set = shipped();
    for topic in Topic::all() {
        let count = set.iter().filter(|directive| directive.topic == topic).count();
        let crisis = matches!(topic, Topic::Hazard(category) if category.is_about_crisis());
        assert!(if crisis { count == 0 } else { count >= 2 }, "{topic} has {count}");
    }
}

#[test]
fn a_block_of_a_harm_rests_on_a_directive_about_it_that_is_no_core() {
    let set = shipped();
    for &category in Category::ALL.iter().filter(|category| !category.is_about_crisis()) {
        let directive = set.get(set.for_category(category)).unwrap();
        assert_eq!(directive.topic, Topic::Hazard(category));
        assert!(directive.id.0 > 5, "{category:?} rests on the bare core {}", directive.id);
    }
}

#[test]
fn each_crisis_rests_on_its_own_duty_of_care() {
    let set = shipped();
    let mut ids = BTreeSet::new();
    for &category in Category::ALL.iter().filter(|category| category.is_about_crisis()) {
        let directive = set.get(set.for_category(category)).unwrap();
        assert_eq!(directive.topic, Topic::Duty(Duty::Care), "{category:?}");
        ids.insert(directive.id);
    }
    assert_eq!(ids.len(), 4);
}

#[test]
fn each_duty_rests_on_a_directive_about_it() {
    let set = shipped();
    for &duty in Duty::ALL {
        assert_eq!(set.get(set.for_duty(duty)).unwrap().topic, Topic::Duty(duty));
    }
}

#[test]
fn every_objection_but_doubt_rests_on_a_directive() {
    let set = shipped();
    for &reason in Reason::ALL {
        let found = set.for_reason(reason).and_then(|id| set.get(id));
        assert_eq!(found.is_none(), reason == Reason::Unsure, "{}", reason.code());
    }
}

#[test]
fn english_texts_are_whole_sentences_of_a_sane_length() {
    for Directive { id, en, .. } in shipped().iter() {
        let length = en.chars().count();
        assert!((40..=200).contains(&length), "{id} has {length} characters");
        assert!(en.starts_with(|c: char| c.is_ascii_uppercase()) && en.ends_with('.'), "{id}");
        assert!(en.is_ascii() && !en.contains(char::is_control) && !en.contains("  "), "{id}");
    }
}

#[test]
fn japanese_texts_are_japanese_of_a_sane_length() {
    for Directive { id, ja, .. } in shipped().iter() {
        let length = ja.chars().count();
        assert!((20..=120).contains(&length), "{id} has {length} characters");
        assert!(ja.chars().filter(|&c| is_kana(c)).count() >= 4, "{id} has hardly any kana");
        assert!(ja.ends_with('。') && !ja.contains(|c: char| c.is_ascii() || c == '　'), "{id}");
    }
}

#[test]
fn no_two_are_alike_in_english() {
    alike(&shipped(), |directive| words(&directive.en));
}

#[test]
fn no_two_are_alike_in_japanese() {
    alike(&shipped(), |directive| pairs(&directive.ja));
}

#[test]
fn texts_come_in_japanese_or_else_in_english() {
    let set = shipped();
    let directive = set.get(DirectiveId(50)).unwrap();
    for (language, text) in [
        ("ja", &directive.ja),
        ("ja-JP", &directive.ja),
        ("en", &directive.en),
        ("fr", &directive.en),
        ("und", &directive.en),
        ("", &directive.en),
    ] {
        assert_eq!(set.text(DirectiveId(50), language), text, "{language}");
    }
}

#[test]
fn numbers_of_other_sets_are_told_apart_without_panic() {
    let set = shipped();
    for number in [0, 129, u16::MAX] {
        assert_eq!(set.get(DirectiveId(number)), None);
        assert!(set.text(DirectiveId(number), "en").contains("no directive"));
        assert!(set.text(DirectiveId(number), "ja").contains("ありません"));
    }
}
