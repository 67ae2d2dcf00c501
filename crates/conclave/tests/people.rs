//! Consent, culture, reviews and webhooks through the real binary.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "tests say what they expect"
)]

mod house;
mod village;

use house::conclave;
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use village::{ROLES, Village, ask, chat, key, known, village};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nobody_but_its_elders_decides_what_is_sacred() {
    let village = village().await;
    let review = village.held().await;
    let approve = json!({"token": 1, "ruling": "approve"});
    for tenant in ["default", "other"] {
        for role in ROLES {
            let stranger = key(&village.house, role, tenant);
            known(&village.house, &stranger).await;
            let claimed = village.claim(&stranger, &review).await;
            assert!([403, 404].contains(&claimed.status), "{role} of {tenant}: {}", claimed.body);
            let decided = village.decide(&stranger, &review, &approve).await;
            assert!([403, 404].contains(&decided.status), "{role} of {tenant}: {}", decided.body);
            let path = format!("/v1/reviews/{review}");
            let seen = ask(&village.house, &stranger, "GET", &path, &Value::Null).await;
            assert!(!seen.body.contains("churinga"), "{role} of {tenant} sees words");
            let overseer = tenant == "default" && ["admin", "auditor", "owner"].contains(&role);
            assert_eq!(seen.status == 200, overseer, "{role} of {tenant}: {}", seen.status);
            let fetched =
                ask(&village.house, &stranger, "GET", &format!("{path}/result"), &Value::Null)
                    .await;
            assert!(!fetched.body.contains("churinga"));
        }
    }
    assert_eq!(village.claim(&village.owner, &review).await.status, 403);
    assert_eq!(village.result(&review).await.status, 202, "nothing before it is decided");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_elders_release_and_one_rejects_for_ever() {
    let village = village().await;
    let review = village.held().await;
    for (at, elder) in village.elders.iter().enumerate() {
        let claimed = village.claim(elder, &review).await;
        assert_eq!(claimed.status, 200, "{}", claimed.body);
        assert!(claimed.json()["words"]["request"].to_string().contains("churinga"));
        let token = &claimed.json()["claim"]["token"];
        let ruling = json!({"token": token, "ruling": "edit_and_approve",
            "text": "Ask the elders of the river.", "conditions": ["Name the River People."]});
        let decided = village.decide(elder, &review, &ruling).await;
        assert_eq!(decided.status, 200, "{}", decided.body);
        assert_eq!(village.result(&review).await.status, if at == 0 { 202 } else { 200 });
        assert_eq!(village.claim(elder, &review).await.status, if at == 0 { 403 } else { 409 });
    }
    let result = village.result(&review).await.json();
    assert_eq!(result["text"], "Ask the elders of the river.");
    assert_eq!(result["conditions"], json!(["Name the River People."]));
    let second = village.held().await;
    let token = village.claim(&village.elders[0], &second).await.json()["claim"]["token"].clone();
    let stale = json!({"token": 99, "ruling": "approve"});
    assert_eq!(village.decide(&village.elders[0], &second, &stale).await.status, 409);
    let reject = json!({"token": token, "ruling": "reject", "notes": "Not ours to tell."});
    assert_eq!(village.decide(&village.elders[0], &second, &reject).await.status, 200);
    assert_eq!(village.claim(&village.elders[1], &second).await.status, 409);
    let result = village.result(&second).await.json();
    assert_eq!((&result["status"], &result["text"]), (&json!("rejected"), &Value::Null));
    // A change is durable with its note; the note becomes an entry a moment later.
    let mut reported = (0..500).map(|_| house::verify(&village.house.data));
    let whole = |(_, report): &(_, Value)| report["kinds"]["review.change"] == 8;
    let (code, report) = reported.find(whole).expect("every step is in the ledger");
    assert_eq!(code, Some(0), "{report}");
    // Opened, claimed and approved twice; opened, claimed and rejected.
    assert_eq!(report["kinds"]["review.change"], 8, "{report}");
    assert_eq!(report["kinds"]["protocol.change"], 3, "{report}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn consent_is_kept_by_its_tenant_and_taken_back() {
    let village = village().await;
    let Village { house, app, .. } = &village;
    let given = json!({"subject": "ana", "scopes": ["research"], "purposes": ["study"],
        "evidence": {"kind": "written", "reference": "form 7"}});
    let made = ask(house, app, "POST", "/v1/consents", &given).await;
    assert_eq!(made.status, 201, "{}", made.body);
    let path = format!("/v1/consents/{}", made.json()["id"].as_str().unwrap());
    for role in ROLES {
        let here = key(house, role, "default");
        let elsewhere = key(house, role, "other");
        known(house, &here).await;
        known(house, &elsewhere).await;
        let may = ["app", "admin", "owner"].contains(&role);
        let seen = ask(house, &here, "GET", &path, &Value::Null).await.status;
        assert_eq!(seen, if may { 200 } else { 403 }, "{role}");
        let back = json!({"evidence": {"kind": "verbal", "reference": "by telephone"}});
        let stolen = ask(house, &elsewhere, "DELETE", &path, &back).await.status;
        assert_eq!(stolen, if may { 404 } else { 403 }, "{role}");
        let list = ask(house, &elsewhere, "GET", "/v1/consents?subject=ana", &Value::Null).await;
        assert!(!list.body.contains("form 7"));
    }
    let bad = ask(house, app, "DELETE", &path, &json!({})).await;
    assert_eq!(bad.status, 400, "a withdrawal needs its evidence");
    let back = json!({"evidence": {"kind": "verbal", "reference": "by telephone"}});
    let taken = ask(house, app, "DELETE", &path, &back).await;
    assert_eq!(taken.status, 200, "{}", taken.body);
    assert!(taken.json()["withdrawn"]["at_ms"].is_u64());
    for bad in [json!({}), json!([]), json!({"subject": 3}), json!({"subject": "a", "x": 1})] {
        assert_eq!(ask(house, app, "POST", "/v1/consents", &bad).await.status, 400, "{bad}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_webhook_is_told_of_a_review_signed_and_without_words() {
    let village = village().await;
    let Village { house, owner, app, .. } = &village;
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/hook", listener.local_addr().unwrap());
    let body = json!({"url": url, "events": ["review.created"]});
    assert_eq!(ask(house, app, "POST", "/v1/webhooks", &body).await.status, 403);
    let made = ask(house, owner, "POST", "/v1/webhooks", &body).await;
    assert_eq!(made.status, 201, "{}", made.body);
    assert!(made.json()["secret"].as_str().unwrap().starts_with("whsec_"));
    let listed = ask(house, owner, "GET", "/v1/webhooks", &Value::Null).await;
    assert!(listed.body.contains(&url) && !listed.body.contains("whsec_"), "shown once");
    let metadata = json!({"url": "http://169.254.169.254/"});
    assert_eq!(ask(house, owner, "POST", "/v1/webhooks", &metadata).await.status, 400);
    let review = village.held().await;
    let (mut stream, _) = listener.accept().await.unwrap();
    let mut got = Vec::new();
    while !got.ends_with(b"}") {
        assert_ne!(stream.read_buf(&mut got).await.unwrap(), 0, "the request broke off");
    }
    stream.write_all(b"HTTP/1.1 204 No Content\r\n\r\n").await.unwrap();
    let got = String::from_utf8(got).unwrap();
    for wanted in ["webhook-id: msg_", "webhook-timestamp: ", "webhook-signature: v1,", &review] {
        assert!(got.contains(wanted), "{wanted} in {got}");
    }
    assert!(got.contains("\"type\":\"review.created\"") && !got.contains("churinga"), "{got}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_command_line_decides_through_the_gateway() {
    let village = village().await;
    let angry = chat("And then they carried the churinga to the cave.");
    ask(&village.house, &village.app, "POST", "/v1/chat/completions", &angry).await;
    let url = format!("http://{}", village.house.addr);
    let secret = village.elders[0].secret.clone();
    let run = |args: &[&str]| {
        let whole: Vec<&str> =
            args.iter().copied().chain(["--url", &url, "--key", &secret]).collect();
        conclave(&whole)
    };
    let listed = run(&["--json", "reviews", "list"]);
    let listed: Value = serde_json::from_slice(&listed.stdout).unwrap();
    let id = listed["data"][0]["id"].as_str().unwrap().to_owned();
    let claimed: Value =
        serde_json::from_slice(&run(&["--json", "reviews", "claim", &id]).stdout).unwrap();
    let token = claimed["claim"]["token"].to_string();
    let decide = ["reviews", "decide", "reject", &id, "--token", &token, "--notes", "no"];
    let decided = run(&decide);
    assert_eq!(decided.status.code(), Some(0), "{}", String::from_utf8_lossy(&decided.stderr));
    let again = run(&decide);
    assert_eq!(again.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&again.stderr).contains("refused (409)"));
    let shown = run(&["protocols", "show", "River People"]);
    assert!(String::from_utf8_lossy(&shown.stdout).contains("churinga"), "an elder sees all of it");
}
