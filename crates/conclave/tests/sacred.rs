//! Sacred material in recipes, through the API: it waits, elders are told, they alone decide, and all of
//! it is in the ledger.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "tests say what they expect"
)]

mod house;
mod village;

use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;
use village::{Key, ROLES, Village, ask, key, known, village};

/// A run of a recipe over sacred words.
fn sacred_run() -> Value {
    json!({
        "agent_name": "interview-analyzer",
        "context": {
            "user_id": "u", "storyteller_id": "teller-1", "sensitivity_level": "sacred",
            "cultural_affiliations": ["River People"], "consent_scope": ["research"],
            "purpose": "study", "country": "NZ",
        },
        "input": {"focus_areas": ["housing"], "transcripts": [{"id": "t1", "segments": [
            {"index": 0, "speaker": "I", "text": "What happened?"},
            {"index": 1, "speaker": "M", "text": "The house was cold and the rent went up twice."},
        ]}]},
    })
}

/// The input of each recipe that comes with the house.
fn inputs() -> Vec<(&'static str, Value)> {
    let transcripts = sacred_run()["input"]["transcripts"].clone();
    let intake = json!({
        "raw_content": "A: hello.", "content_type": "notes",
        "provided_consent": {"written": true, "scope": ["research"]},
    });
    let steward = json!({
        "request": {"model": "builtin"}, "estimated_tokens": {"input": 1, "output": 1}, "budget": {},
    });
    vec![
        ("interview-analyzer", sacred_run()["input"].clone()),
        ("insight-synthesizer", json!({"transcripts": transcripts})),
        ("de-escalator", json!({"ticket_thread": [{"author": "a", "text": "Hello."}]})),
        ("consent-intake", intake),
        (
            "playbook-composer",
            json!({"segment_definition": {"criteria": ["a"], "count": 1}, "goals": ["rest"]}),
        ),
        ("governance-sentinel", json!({"request": {}, "phase": "pre"})),
        ("cost-steward", steward),
    ]
}

async fn consent(village: &Village) {
    let consent = json!({
        "subject": "teller-1", "scopes": ["research"], "purposes": ["study"],
        "evidence": {"kind": "written", "reference": "form 7"},
    });
    let kept = ask(&village.house, &village.app, "POST", "/v1/consents", &consent).await;
    assert_eq!(kept.status, 201, "{}", kept.body);
}

/// Has a place told of new reviews; says which review it was told of.
async fn told(listener: &TcpListener) -> String {
    let (mut stream, _) = listener.accept().await.unwrap();
    let mut got = Vec::new();
    while !got.ends_with(b"}") {
        assert_ne!(stream.read_buf(&mut got).await.unwrap(), 0, "the request broke off");
    }
    stream.write_all(b"HTTP/1.1 204 No Content\r\nconnection: close\r\n\r\n").await.unwrap();
    String::from_utf8(got).unwrap()
}

/// Nobody of this house or another can claim or decide, or sees words; whoever oversees sees that it waits.
async fn strangers_are_kept_out(village: &Village, strangers: &[(String, Key)], review: &str) {
    for (who, stranger) in strangers {
        let claimed = village.claim(stranger, review).await;
        assert!(matches!(claimed.status, 403 | 404), "{who}: {}", claimed.body);
        for ruling in ["approve", "reject", "needs_consultation", "edit_and_approve"] {
            let mut said = json!({"token": 1, "ruling": ruling, "notes": "n"});
            if ruling == "edit_and_approve" {
                said["text"] = json!("other");
            }
            let decided = village.decide(stranger, review, &said).await;
            assert!(matches!(decided.status, 403 | 404), "{who}, {ruling}: {}", decided.body);
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn in_every_recipe_the_sacred_waits_for_its_elders_and_nobody_else() {
    let village = village().await;
    let (house, app) = (&village.house, &village.app);
    consent(&village).await;
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/elders", listener.local_addr().unwrap());
    let hook = json!({"url": url, "events": ["review.created"]});
    let made = ask(house, &village.owner, "POST", "/v1/webhooks", &hook).await;
    assert_eq!(made.status, 201, "{}", made.body);
    let mut strangers = Vec::new();
    for tenant in ["default", "other"] {
        for role in ROLES {
            let stranger = key(house, role, tenant);
            known(house, &stranger).await;
            strangers.push((format!("{role} of {tenant}"), stranger));
        }
    }
    let recipes = inputs();
    for (at, (recipe, input)) in recipes.iter().enumerate() {
        let mut request = sacred_run();
        request["agent_name"] = json!(recipe);
        request["input"] = input.clone();
        let path = format!("/v1/agents/{recipe}/execute");
        let held = ask(house, app, "POST", &path, &request).await;
        assert_eq!(held.status, 202, "{recipe}: {}", held.body);
        assert!(held.json()["data"].is_null(), "{recipe}: {}", held.body);
        let review = held.json()["review_id"].as_str().unwrap().to_owned();
        let notice = told(&listener).await;
        assert!(notice.contains(&review), "{recipe}: {notice}");
        let row = ask(house, &village.elders[0], "GET", "/v1/reviews", &Value::Null).await.json();
        let row = row["data"].as_array().unwrap().iter().find(|row| row["id"] == review.as_str());
        let row = row.unwrap_or_else(|| panic!("{recipe}: no row in the queue"));
        assert_eq!(row["community"], "River People", "{recipe}: {row}");
        strangers_are_kept_out(&village, &strangers, &review).await;
        let place = held.json()["status_url"].as_str().unwrap().to_owned();
        let fetched = ask(house, app, "GET", &place, &Value::Null).await;
        assert_eq!(fetched.status, 202, "{recipe}: {}", fetched.body);
        // Every other one is rejected, and then nothing gets it out.
        let rejected = at % 2 == 1;
        let ruling = if rejected { "reject" } else { "approve" };
        for elder in village.elders.iter().take(if rejected { 1 } else { 2 }) {
            let token = village.claim(elder, &review).await.json()["claim"]["token"].clone();
            let said = json!({"token": token, "ruling": ruling, "notes": "we have spoken"});
            let decided = village.decide(elder, &review, &said).await;
            assert_eq!(decided.status, 200, "{recipe}: {}", decided.body);
        }
        let fetched = ask(house, app, "GET", &place, &Value::Null).await;
        assert_eq!(fetched.status == 403, rejected, "{recipe}: {}", fetched.body);
        let mut again = request.clone();
        again["approved_run"] = json!(place.rsplit('/').next());
        let done = ask(house, app, "POST", &path, &again).await;
        let released = matches!(done.status, 200 | 202);
        assert_eq!(released, !rejected, "{recipe}: {} {}", done.status, done.body);
        if done.status == 202 {
            // A draft of a recipe that always asks people waits again, for another review.
            assert_ne!(done.json()["review_id"], review.as_str(), "{recipe}");
            told(&listener).await;
        }
    }
    // Opened each; claimed and approved twice, or claimed and rejected.
    let least = recipes.len() + 4 * 4 + 3 * 2;
    let enough = |(_, report): &(_, Value)| {
        report["kinds"]["review.change"].as_u64().is_some_and(|seen| seen >= least as u64)
    };
    let mut reported = (0..500).map(|_| house::verify(&house.data));
    let (code, report) = reported.find(enough).expect("every step is in the ledger");
    assert_eq!(code, Some(0), "{report}");
}

#[tokio::test]
async fn a_sacred_run_waits_for_two_elders_and_goes_on_only_with_their_yes() {
    let village = village().await;
    let (house, app) = (&village.house, &village.app);
    let execute = "/v1/agents/interview-analyzer/execute";
    consent(&village).await;
    for ruling in ["reject", "approve"] {
        let held = ask(house, app, "POST", execute, &sacred_run()).await;
        assert_eq!(held.status, 202, "{}", held.body);
        assert!(held.json()["data"].is_null() && !held.body.contains("cold"), "{}", held.body);
        let review = held.json()["review_id"].as_str().unwrap().to_owned();
        let place = held.json()["status_url"].as_str().unwrap().to_owned();
        let fetch = async || ask(house, app, "GET", &place, &Value::Null).await;
        for role in ["reviewer", "admin", "auditor", "app", "owner"] {
            let stranger = key(house, role, "default");
            known(house, &stranger).await;
            let claimed = village.claim(&stranger, &review).await.status;
            assert!(matches!(claimed, 403 | 404), "{role}: {claimed}");
        }
        for elder in &village.elders {
            let claimed = village.claim(elder, &review).await;
            if claimed.status != 200 {
                continue;
            }
            let token = claimed.json()["claim"]["token"].clone();
            let said = json!({"token": token, "ruling": ruling, "notes": "we have spoken"});
            let decided = village.decide(elder, &review, &said).await;
            assert_eq!(decided.status, 200, "{}", decided.body);
        }
        let fetched = fetch().await;
        if ruling == "reject" {
            assert_eq!(fetched.status, 403, "{}", fetched.body);
            continue;
        }
        let mut again = sacred_run();
        again["approved_run"] = fetched.json()["approved_run"].clone();
        let done = ask(house, app, "POST", execute, &again).await;
        assert_eq!(done.status, 200, "{}", done.body);
        assert_eq!(done.json()["citations"][0]["segment_index"], 1, "{}", done.body);
    }
}
