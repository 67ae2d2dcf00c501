//! One decision.

use crate::fixture::scenes::{self, every_kind};
use crate::fixture::told::Told;
use crate::house::{House, NOW_MS, tenant_no};
use conclave_engine::StoredEntry;
use conclave_ledger::{Leaf, Value};
use http::StatusCode;

async fn shown(house: &House, who: &str, told: &Told) -> String {
    let id = house.archive.add(tenant_no(), NOW_MS, told);
    let page = house.visited_by(who).await.get(&format!("/decisions/{id}")).await;
    assert_eq!(page.status, StatusCode::OK, "{}", page.body);
    page.body
}

fn assert_holds(html: &str, parts: &[&str]) {
    for part in parts {
        assert!(html.contains(part), "{part} is missing in\n{html}");
    }
}

#[tokio::test]
async fn the_reference_example_can_be_read_by_a_stranger() {
    let html = shown(&House::new(), "owner", &scenes::written_again()).await;
    assert_holds(
        &html,
        &[
            "A reply that the panel passed was sent unchanged.",
            "2 replies were written before it was decided.",
            "a reply encouraged someone to be hurt",
            "I&#39;m so angry at him",
            "Yeah. Do it.",
            "The reply agrees with hurting somebody.",
            "The reply encouraged someone to be hurt.",
            "crisis/encouragement",
            "Attempt 2",
            "May not leave",
            "May leave",
            ">Veto<",
            "5.51 ÷ (5.51 + 4.80) = 0.53",
            "5.51 ÷ 11 = 0.50",
            "at least 0.85",
            "consciousness layer",
            "812 bytes were handed to the client, all there was.",
            "the stored votes come to the stored result",
            "Leaf hash",
            "Position in the ledger",
            &"5a".repeat(32),
            &"d1".repeat(32),
        ],
    );
}

#[tokio::test]
async fn every_kind_of_ending_is_shown() {
    let house = House::new();
    for (told, parts) in [
        (
            scenes::blocked(),
            vec![
                "No model was asked and no panel sat.",
                "D041",
                "Weapons",
                "how-to+danger",
                "<strong>reached</strong>",
            ],
        ),
        (
            scenes::failed(),
            vec![
                "The model did not answer in time.",
                "The model could not be reached.",
                "The client went away after 0 bytes.",
            ],
        ),
        (
            scenes::guard_unavailable(),
            vec![
                "The panel, asked once more",
                "No vote: too late",
                "No vote: it crashed",
                "No vote: voted twice",
            ],
        ),
        (
            scenes::two_choices(),
            vec![
                "Deliberation on reply 2",
                "delete_rows",
                "Silence: neither words nor actions.",
                "only watches",
                "Reply 2 the person got",
            ],
        ),
        (
            scenes::long_talk(),
            vec!["Earlier messages (19)", "image_url: passed on, not judged", "Tool result"],
        ),
        (
            scenes::safe_completion(),
            vec!["もう死にたい。", "lang=\"ja\"", "Crisis verifier agrees", "いのちの電話"],
        ),
        (scenes::crisis(), vec!["at least 0.90", "Samaritans", "en/crisis/not-be-here"]),
    ] {
        let html = shown(&house, "owner", &told).await;
        assert_holds(&html, &parts);
    }
}

#[tokio::test]
async fn hostile_words_stay_text_wherever_they_stand() {
    let html = shown(&House::new(), "owner", &scenes::hostile()).await;
    for markup in
        ["<script>", "<img", "<form action=\"https", "<b>", "<i>", "<u>", "<s>", "<kind", "<sensor"]
    {
        assert!(!html.contains(markup), "{markup}");
    }
    assert!(!html.contains("href=\"https") && !html.contains("href=\"javascript"));
    assert!(
        html.matches("&#60;script&#62;alert(&#39;owned&#39;)").count() >= 8,
        "shown in every place"
    );
    assert!(html.contains("<span class=\"mark\">⟦U+202E⟧</span>") && html.contains("⟦U+001B⟧"));
    assert!(html.contains("10000 more characters are not shown"), "30,000 letters are clipped");
    assert!(html.contains("lang=\"\""), "a language that is none is no attribute");
}

/// Everything in a scene that people, models or verifiers said.
fn words_of(told: &Told) -> Vec<String> {
    let mut words: Vec<_> =
        told.conversation.iter().map(|line| line.content.as_text().into_owned()).collect();
    for choice in &told.choices {
        words.push(choice.delivered.clone());
        for attempt in &choice.attempts {
            if let Ok(candidate) = &attempt.candidate {
                words.push(candidate.text.clone());
                words.extend(candidate.tool_calls.iter().map(|call| call.arguments.clone()));
            }
            for ballot in attempt.panels.iter().flatten() {
                words.push(ballot.reasoning.clone());
                words.extend(ballot.reasons.iter().map(|reason| reason.plain().to_owned()));
                words.extend(ballot.flagged_patterns.clone());
            }
        }
    }
    words.retain(|text| !text.is_empty());
    words
}

fn escaped(text: &str) -> String {
    let replaced = text.replace('&', "&#38;").replace('<', "&#60;").replace('>', "&#62;");
    replaced.replace('"', "&#34;").replace('\'', "&#39;")
}

#[tokio::test]
async fn only_the_owner_sees_words_and_leaves_a_trace() {
    for who in ["admin", "auditor"] {
        let house = House::new();
        for told in every_kind() {
            let html = shown(&house, who, &told).await;
            for words in words_of(&told) {
                let first = escaped(words.lines().next().unwrap_or_default());
                assert!(!html.contains(&first), "{who} sees {first}");
            }
            assert_holds(&html, &["open to the owner alone", "Leaf hash", "In plain words"]);
            assert!(!html.contains("What shaped the reply"), "influences come from the words");
        }
        assert_eq!(*house.reads.lock().unwrap(), []);
    }
    let house = House::new();
    let id = house.archive.add(tenant_no(), NOW_MS, &scenes::ordinary());
    let mut owner = house.visited_by("owner").await;
    let page = owner.get(&format!("/decisions/{id}")).await.body;
    assert!(page.contains("What part of the day is still with you?"));
    assert_eq!(*house.reads.lock().unwrap(), [("owner".to_owned(), id)]);
    owner.get("/decisions").await;
    owner.get("/").await;
    assert_eq!(house.reads.lock().unwrap().len(), 1, "lists show no words");
}

#[tokio::test]
async fn erased_words_are_said_to_be_erased() {
    let house = House::new();
    let erase = |entry: &mut StoredEntry| entry.body = None;
    let id = house.archive.add_with(tenant_no(), NOW_MS, &scenes::written_again(), erase);
    let page = house.visited_by("owner").await.get(&format!("/decisions/{id}")).await.body;
    assert_holds(&page, &["The words of this decision were erased.", "May not leave", "0.53"]);
    assert!(!page.contains("Yeah. Do it."));
    assert_eq!(*house.reads.lock().unwrap(), [], "there was nothing to read");
}

#[tokio::test]
async fn altered_votes_are_noticed() {
    let house = House::new();
    let lower_the_bars = |entry: &mut StoredEntry| {
        let mut leaf = Leaf::decode(&entry.leaf).unwrap();
        if let Value::Map(public) = &mut leaf.draft.public
            && public.get("bars").is_some()
        {
            public.insert("bars", Value::Array(vec![Value::Uint(1); 3]));
            public.insert("crisis", Value::Bool(true));
        }
        entry.leaf = leaf.encode();
    };
    let id = house.archive.add_with(tenant_no(), NOW_MS, &scenes::exhausted(), lower_the_bars);
    let page = house.visited_by("owner").await.get(&format!("/decisions/{id}")).await.body;
    assert_holds(&page, &["role=\"alert\"", "do not come to the stored result"]);
}

#[tokio::test]
async fn an_entry_that_cannot_be_read_is_said_to_be_so() {
    let house = House::new();
    let spoil = |entry: &mut StoredEntry| entry.leaf.truncate(40);
    let id = house.archive.add_with(tenant_no(), NOW_MS, &scenes::ordinary(), spoil);
    let page = house.visited_by("owner").await.get(&format!("/decisions/{id}")).await;
    assert_eq!(page.status, StatusCode::INTERNAL_SERVER_ERROR);
    assert!(page.body.contains("conclave ledger verify"));
}

#[tokio::test]
async fn words_of_any_form_do_not_break_the_page() {
    let house = House::new();
    let garble = |entry: &mut StoredEntry| entry.body = Some(vec![0xff; 64]);
    let id = house.archive.add_with(tenant_no(), NOW_MS, &scenes::ordinary(), garble);
    let page = house.visited_by("owner").await.get(&format!("/decisions/{id}")).await;
    assert_eq!(page.status, StatusCode::OK);
    assert!(page.body.contains("May leave"));
}

#[tokio::test]
async fn what_is_not_there_or_not_ours_is_not_found() {
    let house = House::new();
    let foreign = house.archive.add(tenant_no() + 1, NOW_MS, &scenes::ordinary());
    let mut browser = house.visited_by("owner").await;
    for id in [foreign.to_string(), "0".into(), "%3Cscript%3E".into(), "%ff".into()] {
        let page = browser.get(&format!("/decisions/{id}")).await;
        assert_eq!(page.status, StatusCode::NOT_FOUND, "{id}");
        assert!(page.body.contains("There is no decision with this id."));
    }
}
