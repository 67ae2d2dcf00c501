//! Where help is found, by country.

use super::*;

fn builtin() -> Resources {
    Resources::builtin().unwrap()
}

#[test]
fn at_least_twenty_five_countries_have_a_line_with_its_source() {
    let resources = builtin();
    let with_lines =
        resources.countries().filter(|country| !resources.lines(country).is_empty()).count();
    assert!(with_lines >= 25, "{with_lines}");
    for country in resources.countries.values() {
        assert_eq!(country.code.len(), 2, "{}", country.code);
        for line in &country.lines {
            assert!(!line.source.is_empty(), "{}", line.name);
            let numbers = line.call.iter().chain(&line.text);
            for number in numbers {
                let plain = number.chars().all(|c| c.is_ascii_digit() || " -/*".contains(c));
                assert!(plain, "{}: {number}", line.name);
            }
        }
    }
}

#[test]
fn every_block_names_an_emergency_number_and_a_directory() {
    let resources = builtin();
    for language in ["en", "ja", "fr"] {
        for code in resources.countries() {
            let block = resources.block(Some(code), language);
            assert!(block.contains(&resources.countries[code].emergency), "{block}");
            assert!(block.contains("https://findahelpline.com"), "{block}");
            assert!(!block.contains('{'), "{block}");
        }
        let block = resources.block(Some("XX"), language);
        assert!(block.contains("112") && block.contains("befrienders.org"), "{block}");
    }
}

#[test]
fn lines_are_worded_in_the_readers_language() {
    let resources = builtin();
    let us = resources.block(Some("us"), "en");
    assert!(us.contains("call 988 or text 988 (24 hours a day)"), "{us}");
    assert!(us.contains("text HOME to 741741"), "{us}");
    let ja = resources.block(Some("US"), "ja");
    assert!(ja.contains("電話 988、SMS 988（24時間）"), "{ja}");
    assert!(ja.contains("アメリカ"), "{ja}");
    assert_eq!(resources.block(Some("UK"), "en"), resources.block(Some("GB"), "en"));
}

#[test]
fn japanese_without_a_country_is_given_japan_and_others_the_world() {
    let resources = builtin();
    assert!(resources.block(None, "ja").contains("0120-783-556"));
    assert!(resources.block(None, "ja").contains("0120-279-338"));
    assert!(resources.block(None, "en").contains("local emergency number"));
    assert!(!resources.block(Some("XX"), "ja").contains("0120"));
}

#[test]
fn a_block_is_appended_once() {
    let resources = builtin();
    let once = resources.append("I hear you.", Some("DE"), "en");
    assert!(once.starts_with("I hear you.\n\nPeople you can reach now (Germany):"));
    assert_eq!(resources.append(&once, Some("DE"), "en"), once);
    let rewrapped = once.replace('\n', "\n   ");
    assert_eq!(resources.append(&rewrapped, Some("DE"), "en"), rewrapped);
    assert_ne!(resources.append(&once, Some("FR"), "en"), once);
    assert!(resources.append("", None, "en").starts_with("People"));
}

#[test]
fn unchecked_facts_are_marked_and_checked_ones_age() {
    let file = |checked: &str| {
        format!(
            "[[country]]\ncode = \"US\"\nname = \"United States\"\nname_ja = \"アメリカ\"\n\
             emergency = \"911\"\n[[country.line]]\nname = \"Line\"\ncall = \"1\"\n\
             source = \"own site\"\n{checked}"
        )
    };
    let today = Date::new(2026, 11, 15).unwrap();
    let of_us = |resources: &Resources| {
        resources
            .stale(today)
            .into_iter()
            .find(|stale| stale.country == "US")
            .map(|stale| stale.freshness)
    };
    let unchecked = builtin().overridden("mine.toml", &file("")).unwrap();
    assert_eq!(of_us(&unchecked), Some(Freshness::Unchecked));
    assert!(unchecked.block(Some("US"), "en").contains("Line*: call 1"));
    let fresh = builtin().overridden("mine.toml", &file("checked = \"2025-11-15\"")).unwrap();
    assert_eq!(of_us(&fresh), None);
    assert!(!fresh.block(Some("US"), "en").contains('*'));
    let old = builtin().overridden("mine.toml", &file("checked = \"2025-11-14\"")).unwrap();
    assert!(matches!(of_us(&old), Some(Freshness::Old(_))));
}

#[test]
fn a_line_nobody_could_reach_is_refused() {
    let file = "[[country]]\ncode = \"US\"\nname = \"U\"\nname_ja = \"U\"\nemergency = \"911\"\n\
                [[country.line]]\nname = \"Nobody\"\nsource = \"none\"\n";
    let error = builtin().overridden("mine.toml", file).unwrap_err();
    assert_eq!(error.to_string(), "mine.toml: missing a way to reach Nobody (US)");
    assert!(builtin().overridden("mine.toml", "country = 3").is_err());
}

#[test]
fn care_is_one_sentence_with_a_line_an_emergency_number_and_a_directory() {
    let resources = builtin();
    for language in ["en", "ja"] {
        for code in resources.countries() {
            let sentence = resources.care_sentence(Some(code), language);
            assert!(!sentence.contains(['{', '\n', '＊']), "{sentence}");
            assert!(sentence.contains("https://findahelpline.com"), "{sentence}");
            if resources.lines(code).iter().any(has_number) {
                assert!(sentence.contains(&resources.countries[code].emergency), "{sentence}");
            }
        }
    }
    let us = resources.care_sentence(Some("US"), "en");
    assert!(us.contains("988 Suicide & Crisis Lifeline: call 988"), "{us}");
    let ja = resources.care_sentence(None, "ja");
    assert!(ja.contains("よりそいホットライン：電話 0120-279-338"), "{ja}");
}

#[test]
fn care_is_appended_once_and_not_beside_the_block() {
    let resources = builtin();
    for (country, language) in [(Some("US"), "en"), (None, "ja"), (None, "en"), (Some("XX"), "ja")]
    {
        let once = resources.append_care("Good night.", country, language);
        assert!(once.starts_with("Good night.\n\n"), "{once}");
        assert_eq!(resources.append_care(&once, country, language), once);
        let blocked = resources.append("Good night.", country, language);
        assert_eq!(resources.append_care(&blocked, country, language), blocked);
    }
}
