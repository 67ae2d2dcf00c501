//! Why, and appeals, through the real binary: a person reads why, disagrees, and is answered.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "tests say what they expect"
)]

mod house;
mod office;

use house::conclave;
use office::{ANSWER, CORRECTED, PERSON, Pass, Told, VILE, WORDS, office};
use serde_json::{Value, json};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_person_reads_why_appeals_and_gets_the_corrected_reply() {
    let office = office().await;
    let Told { audit, why, review } = office.withheld().await;
    assert!(why.starts_with("/why/"), "relative where no public_url is set: {why}");
    let waiting = office.page(&why).await;
    assert_eq!(waiting.status, 200, "{}", waiting.body);
    assert!(waiting.body.contains("<html lang=\"ja\">"), "{}", waiting.body);
    assert!(waiting.body.contains("まだ人が判断していません") && !waiting.body.contains("<form"));
    assert!(!waiting.body.contains(VILE), "what is withheld is not shown");
    for header in ["content-security-policy", "referrer-policy", "x-robots-tag"] {
        assert!(waiting.header(header).is_some(), "{header}");
    }
    let rejected = json!({"ruling": "reject", "notes": "Not to be sent."});
    assert_eq!(office.decide(&office.aki, &review, rejected).await.status, 200);
    let open = office.page(&why).await;
    for told in ["何が起きたか", "誰が確認したか", "気がかりとされた点", "<form", "見直しを求める"]
    {
        assert!(open.body.contains(told), "{told} in {}", open.body);
    }
    let explained = format!("/v1/decisions/{audit}/explanation");
    let told = office.ask(&office.app, "GET", &explained, &Value::Null).await.json();
    assert_eq!((&told["user_can_appeal"], &told["language"]), (&json!(true), &json!("ja")));
    let filed = [("concern", "should_have_answered"), ("words", WORDS)];
    let sent = office.send_form(&why, &filed).await;
    assert_eq!(sent.status, 303, "{}", sent.body);
    assert_eq!(sent.header("location").as_deref(), Some(why.as_str()));
    let again = office.send_form(&why, &filed).await;
    assert_eq!(again.status, 409, "{}", again.body);
    let page = office.page(&why).await;
    assert!(page.body.contains("見直しを求められました") && !page.body.contains("<script>"));
    let listed = office.ask(&office.bo, "GET", "/v1/appeals", &Value::Null).await.json();
    let appeal = listed["data"][0].clone();
    assert_eq!((&appeal["status"], &appeal["words"]), (&json!("filed"), &Value::Null));
    let review = appeal["review_id"].as_str().unwrap();
    let upheld = json!({"ruling": "uphold", "words": ANSWER, "text": CORRECTED});
    let path = format!("/v1/reviews/{review}");
    let seen = office.ask(&office.bo, "GET", &path, &Value::Null).await.json();
    assert_eq!(seen["assigned_to"], office.bo.id(), "never given to who decided first");
    let first = office.decide(&office.aki, review, upheld.clone()).await;
    assert_eq!(first.status, 403, "who decided first does not rule: {}", first.body);
    let vetoed = json!({"ruling": "uphold", "words": ANSWER, "text": VILE});
    let vetoed = office.decide(&office.bo, review, vetoed).await;
    assert_eq!(vetoed.status, 400, "{}", vetoed.body);
    let path = format!("/v1/reviews/{review}");
    let claimed = office.ask(&office.bo, "GET", &path, &Value::Null).await.json();
    assert_eq!(claimed["appeal"]["words"], WORDS);
    assert!(claimed["words"]["votes"].to_string().contains("harmful"), "{claimed}");
    let ruled = office.decide(&office.bo, review, upheld.clone()).await;
    assert_eq!(ruled.status, 200, "{}", ruled.body);
    assert_eq!(office.decide(&office.bo, review, upheld).await.status, 409, "decided once");
    let page = office.page(&why).await;
    for told in ["見直しの結果", "ご指摘のとおり", ANSWER, "温かいうどん", "&#60;b&#62;卵"]
    {
        assert!(page.body.contains(told), "{told} in {}", page.body);
    }
    let id = appeal["id"].as_str().unwrap();
    let path = format!("/v1/appeals/{id}/result");
    let result = office.ask(&office.app, "GET", &path, &Value::Null).await.json();
    assert_eq!(result["text"], CORRECTED);
    let told = office.ask(&office.app, "GET", &explained, &Value::Null).await.json();
    assert_eq!(
        (&told["user_can_appeal"], &told["appeal"]["status"]),
        (&json!(false), &json!("upheld"))
    );
    let owner = Pass(office.house.key.clone());
    let decision = office.ask(&owner, "GET", &format!("/v1/decisions/{audit}"), &Value::Null).await;
    let correction = &decision.json()["appeal"]["correction"];
    assert_eq!(correction["corrected_response"], CORRECTED);
    assert_eq!(correction["original_response"], "", "people rejected it, so it stays closed");
    let kept = office.ask(&owner, "GET", &format!("/v1/subjects/{PERSON}"), &Value::Null).await;
    assert!(kept.body.contains("夕飯のことを聞いただけです"), "an export has what they wrote");
    let estimates = office.ask(&owner, "GET", "/v1/appeals/estimates", &Value::Null).await.json();
    let alarms = &estimates["false_alarms"];
    assert_eq!((&alarms["wrong"], &alarms["ruled"]), (&json!(1), &json!(1)), "{estimates}");
    assert!(alarms["share"]["low"].as_f64().unwrap() < 0.3, "{estimates}");
    let report = office.verified(2);
    assert!(report["kinds"]["review.change"].as_u64() >= Some(6), "{report}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn links_and_appeals_that_are_not_in_order_get_a_clear_answer() {
    let office = office().await;
    let Told { audit, why, review } = office.withheld().await;
    office.decide(&office.aki, &review, json!({"ruling": "reject"})).await;
    let cut = &why[..why.len() - 1];
    for forged in [cut, "/why/x", "/why/%00", &format!("/why/{}", "a".repeat(5_000))] {
        let page = office.page(forged).await;
        assert_eq!(page.status, 404, "{forged}: {}", page.body);
        assert!(page.body.contains("This link does not work") && page.body.contains("lang=\"en\""));
    }
    let huge = "x".repeat(1 << 20);
    let sent = office.send_form(&why, &[("concern", "other"), ("words", &huge)]).await;
    assert_eq!(sent.status, 413, "{}", sent.body);
    let long = "あ".repeat(4_001);
    let sent = office.send_form(&why, &[("concern", "other"), ("words", &long)]).await;
    assert_eq!(sent.status, 400);
    assert!(sent.body.contains(&long), "what was typed is not lost");
    assert_eq!(office.send_form(&why, &[("words", "x")]).await.status, 400);
    assert_eq!(office.send_form(&why, &[("concern", "other"), ("words", " ")]).await.status, 400);
    let filing = |user: &str, words: &str| json!({"audit_id": audit, "concern": "other", "words": words, "user": user});
    let file =
        async |pass: &Pass, body: &Value| office.ask(pass, "POST", "/v1/appeals", body).await;
    for (body, status) in [
        (filing("somebody-else", "x"), 404),
        (filing(PERSON, &huge), 400),
        (filing(PERSON, ""), 400),
        (json!({"audit_id": audit, "concern": "other", "words": "x"}), 400),
        (json!({"audit_id": audit, "concern": "rude", "words": "x", "user": PERSON}), 400),
        (json!({"audit_id": "none", "concern": "other", "words": "x", "user": PERSON}), 404),
        (json!({"audit_id": audit, "words": "x", "user": PERSON, "more": 1}), 400),
    ] {
        let refused = file(&office.app, &body).await;
        assert_eq!(refused.status, status, "{}", refused.body);
    }
    let stranger = office.key("app", "other");
    office.known(&stranger).await;
    assert_eq!(file(&stranger, &filing(PERSON, "x")).await.status, 404, "another tenant");
    assert_eq!(file(&office.bo, &filing(PERSON, "x")).await.status, 403, "a reviewer");
    let token = async |user: &str| {
        let made = json!({"user": user});
        let made = office.ask(&office.app, "POST", "/v1/tokens", &made).await;
        Pass(made.json()["token"].as_str().unwrap_or_else(|| panic!("{}", made.body)).to_owned())
    };
    let (own, other) = (token(PERSON).await, token("somebody-else").await);
    let body = json!({"audit_id": audit, "concern": "misunderstood", "words": "مرحبا 👩‍👧"});
    assert_eq!(file(&other, &body).await.status, 404);
    let filed = file(&own, &body).await;
    assert_eq!(filed.status, 201, "{}", filed.body);
    assert_eq!(file(&own, &body).await.status, 409);
    let id = filed.json()["id"].as_str().unwrap().to_owned();
    let path = format!("/v1/appeals/{id}");
    assert_eq!(office.ask(&own, "GET", &path, &Value::Null).await.json()["words"], "مرحبا 👩‍👧");
    assert_eq!(office.ask(&other, "GET", &path, &Value::Null).await.status, 404);
    assert_eq!(office.ask(&stranger, "GET", &path, &Value::Null).await.status, 404);
    let result = format!("{path}/result");
    assert_eq!(office.ask(&own, "GET", &result, &Value::Null).await.status, 202);
    let url = format!("http://{}", office.house.addr);
    let decided = conclave(&[
        "appeals",
        "decide",
        "deny",
        &id,
        "--words",
        "丁寧に読み直しました。",
        "--url",
        &url,
        "--key",
        &office.bo.0,
    ]);
    assert!(decided.status.success(), "{}", String::from_utf8_lossy(&decided.stderr));
    assert!(office.page(&why).await.body.contains("判断は変わりませんでした"));
    let owner = Pass(office.house.key.clone());
    let erased =
        office.ask(&owner, "DELETE", &format!("/v1/subjects/{PERSON}"), &Value::Null).await;
    assert_eq!(erased.status, 200, "{}", erased.body);
    let gone = office.page(&why).await;
    assert_eq!(gone.status, 410, "{}", gone.body);
    assert!(gone.body.contains("have been erased"));
    let late = office.send_form(&why, &[("concern", "other"), ("words", "x")]).await;
    assert_eq!(late.status, 410);
    assert_eq!(
        office.ask(&owner, "GET", &path, &Value::Null).await.status,
        404,
        "gone with the words"
    );
    let estimates = office.ask(&owner, "GET", "/v1/appeals/estimates", &Value::Null).await.json();
    assert_eq!(estimates["false_alarms"]["ruled"], 1, "what is counted outlives them");
    office.verified(2);
}
