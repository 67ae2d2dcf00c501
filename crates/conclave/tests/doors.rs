//! Keys, roles and tokens: every route crossed with everybody who might try it, from one table of
//! expectations (`doors.txt`).
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "tests say what they expect"
)]

mod house;

use conclave_gateway::ROUTES;
use house::{House, Reply, conclave, verify};
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};

/// Every request that the matrix makes without a valid key would use up the limit on such requests.
const CONFIG: &str = "[reviews]\nstaffed = true\n[webhooks]\nallow_private = true\n\
                      [rate_limits]\nkeyless_requests_per_minute = 0\n";
const ROLES: [&str; 6] = ["app", "reviewer", "elder", "admin", "auditor", "owner"];
/// Stands in everything that belongs to the first tenant.
const MARK: &str = "ana-of-the-first-house";

/// One line of the table.
struct Door {
    method: String,
    path: &'static str,
    other_tenant: &'static str,
    open: BTreeSet<&'static str>,
    by_records: BTreeSet<&'static str>,
}

fn doors() -> Vec<Door> {
    let lines = include_str!("doors.txt").lines();
    let lines = lines.filter(|line| !line.starts_with('#') && !line.is_empty());
    lines
        .map(|line| {
            let mut words = line.split_whitespace();
            let method = words.next().unwrap().to_owned();
            let (path, other_tenant) = (words.next().unwrap(), words.next().unwrap());
            let (by_records, open): (Vec<_>, Vec<_>) =
                words.partition(|word| word.starts_with('('));
            let named = |word: &'static str| word.trim_matches(['(', ')']);
            let by_records = by_records.into_iter().map(named).collect();
            Door { method, path, other_tenant, open: open.into_iter().collect(), by_records }
        })
        .collect()
}

async fn call(house: &House, secret: Option<&str>, method: &str, path: &str, body: &str) -> Reply {
    let auth = secret.map(|key| format!("authorization: Bearer {key}\r\n")).unwrap_or_default();
    let method = method.to_uppercase();
    house::ask(house.addr, &method, path, &auth, body.as_bytes()).await.unwrap()
}

async fn post(house: &House, secret: &str, path: &str, body: &Value) -> Value {
    let reply = call(house, Some(secret), "post", path, &body.to_string()).await;
    assert!(reply.status < 300, "{path}: {} {}", reply.status, reply.body);
    reply.json()
}

async fn new_key(house: &House, order: &Value) -> (String, String) {
    let made = post(house, &house.key, "/v1/keys", order).await;
    (made["id"].as_str().unwrap().to_owned(), made["key"].as_str().unwrap().to_owned())
}

async fn token(house: &House, key: &str, wish: &Value) -> String {
    post(house, key, "/v1/tokens", wish).await["token"].as_str().unwrap().to_owned()
}

/// The first tenant with one of everything that has an id.
struct Settled {
    house: House,
    keys: BTreeMap<&'static str, String>,
    ids: BTreeMap<&'static str, String>,
    _dir: tempfile::TempDir,
}

async fn settled() -> Settled {
    let dir = tempfile::tempdir().unwrap();
    let house = House::start(dir.path(), CONFIG);
    let owner = house.key.clone();
    let mut keys = BTreeMap::new();
    for role in ROLES {
        keys.insert(role, new_key(&house, &json!({"role": role, "label": MARK})).await.1);
    }
    let person = token(&house, &keys["app"], &json!({"user": MARK})).await;
    keys.insert("end_user", person);
    let talk = json!({"model": "builtin", "input": "I had a hard day.", "safety_identifier": MARK});
    let made = post(&house, &keys["app"], "/v1/responses", &talk).await;
    let decision = made["conclave"]["audit_id"].as_str().unwrap().to_owned();
    let appeal = json!({"audit_id": decision, "concern": "other", "words": MARK, "user": MARK});
    let appeal = post(&house, &keys["app"], "/v1/appeals", &appeal).await;
    let elder = new_key(&house, &json!({"role": "elder"})).await.0;
    let seat = format!("/v1/protocols/{MARK}/elders/{elder}");
    let named = call(&house, Some(&owner), "put", &seat, r#"{"person": "Ana"}"#).await;
    assert_eq!(named.status, 200, "{}", named.body);
    let sacred = json!({"model": "builtin", "messages": [{"role": "user", "content": "A story."}],
        "metadata": {"conclave_sensitivity": "sacred", "conclave_affiliations": MARK}});
    let held = post(&house, &keys["app"], "/v1/chat/completions", &sacred).await;
    let review = held["conclave"]["review_id"].as_str().unwrap_or_else(|| panic!("{held}"));
    let consent = json!({"subject": MARK, "scopes": ["research"], "purposes": ["study"],
        "evidence": {"kind": "written", "reference": MARK}});
    let consent = post(&house, &owner, "/v1/consents", &consent).await;
    let hook = json!({"url": format!("http://127.0.0.1:9/{MARK}"), "events": []});
    let hook = post(&house, &owner, "/v1/webhooks", &hook).await;
    let spare = new_key(&house, &json!({"role": "app", "label": MARK})).await.0;
    let text = |value: &Value| value["id"].as_str().unwrap_or_else(|| panic!("{value}")).to_owned();
    let ids = BTreeMap::from([
        ("/v1/responses", text(&made)),
        ("/v1/decisions", decision.clone()),
        ("/v1/agents/runs", decision),
        ("/v1/users", MARK.to_owned()),
        ("/v1/subjects", MARK.to_owned()),
        ("/v1/tenants", "default".to_owned()),
        ("/v1/consents", text(&consent)),
        ("/v1/protocols", MARK.to_owned()),
        ("/v1/reviews", review.to_owned()),
        ("/v1/appeals", text(&appeal)),
        ("/v1/webhooks", text(&hook)),
        ("/v1/keys", spare),
        ("/v1/agents", "interview-analyzer".to_owned()),
        ("/v1/models", "builtin".to_owned()),
        ("/ledger/tile", "0/000.p/1".to_owned()),
        ("/ledger/tile/entries", "000.p/1".to_owned()),
    ]);
    Settled { house, keys, ids, _dir: dir }
}

impl Settled {
    /// The path with real ids in the place of its parameters.
    fn filled(&self, path: &str) -> String {
        let Some((before, after)) = path.split_once("/{") else { return path.to_owned() };
        let id = self.ids.get(before).unwrap_or_else(|| panic!("no object for {path}"));
        let rest = after.split_once('}').map_or("", |(_, rest)| rest);
        let rest = rest.replace("{holder}", "nobody").replace("{event}", "ev_none");
        format!("{before}/{id}{rest}")
    }
}

/// A body that can be read, so that nothing but the caller decides.
fn body_for(door: &Door) -> &'static str {
    match (door.method.as_str(), door.path) {
        ("delete", "/v1/consents/{id}") => {
            r#"{"evidence": {"kind": "written", "reference": "form 8"}}"#
        }
        ("post", "/v1/reviews/{id}/release") => r#"{"token": 1}"#,
        ("post", "/v1/reviews/{id}/decide") => r#"{"token": 1, "ruling": "approve"}"#,
        ("put", "/v1/tenants/{id}/policy") => r#"{"policy": {}}"#,
        ("post" | "put" | "patch", _) => "{}",
        _ => "",
    }
}

#[test]
fn every_route_has_an_expectation_and_nothing_else() {
    let expected: BTreeSet<_> =
        doors().into_iter().map(|door| (door.method, door.path.to_owned())).collect();
    let served: BTreeSet<_> =
        ROUTES.iter().map(|route| (route.method.to_owned(), route.path.to_owned())).collect();
    let missing: Vec<_> = served.difference(&expected).collect();
    assert!(missing.is_empty(), "say in doors.txt who opens {missing:?}");
    assert_eq!(expected.difference(&served).count(), 0);
    let known: BTreeSet<_> = ROLES.into_iter().chain(["end_user", "anyone"]).collect();
    for door in doors() {
        assert!(
            door.open.union(&door.by_records).all(|role| known.contains(role)),
            "{}",
            door.path
        );
        assert!(!door.open.is_empty() || !door.by_records.is_empty(), "{}", door.path);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_route_is_open_to_its_roles_and_closed_to_all_others() {
    let settled = settled().await;
    let house = &settled.house;
    // Those who may destroy something come last, so that the others find it.
    let (harsh, gentle): (Vec<_>, Vec<_>) =
        doors().into_iter().partition(|door| door.method == "delete");
    for door in gentle.into_iter().chain(harsh) {
        let path = settled.filled(door.path);
        for (role, key) in &settled.keys {
            let reply = call(house, Some(key), &door.method, &path, body_for(&door)).await;
            let shown = format!("{role}: {} {path}: {} {}", door.method, reply.status, reply.body);
            assert!(reply.status != 401 && reply.status < 500, "{shown}");
            let free = door.open.contains("anyone");
            if !free && !door.by_records.contains(role) {
                assert_eq!(reply.status == 403, !door.open.contains(role), "{shown}");
            }
            if reply.status == 403 {
                assert_eq!(reply.code(), "forbidden", "{shown}");
            }
        }
    }
    let data = settled.house.data.clone();
    assert!(settled.house.stop());
    let (code, report) = verify(&data);
    assert_eq!(code, Some(0), "{report}");
    assert!(
        report["refused"]["403"].as_u64().unwrap() > 100,
        "denied access is recorded: {report}"
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_expired_revoked_or_made_up_key_opens_anything() {
    let settled = settled().await;
    let house = &settled.house;
    let (revoked_id, revoked) = new_key(house, &json!({"role": "owner"})).await;
    let token_of_revoked = token(house, &revoked, &json!({"user": MARK})).await;
    let gone = format!("/v1/keys/{revoked_id}");
    assert_eq!(call(house, Some(&house.key), "delete", &gone, "").await.status, 200);
    let (_, expired) = new_key(house, &json!({"role": "owner", "expires_in_s": 1})).await;
    while call(house, Some(&expired), "get", "/v1/models", "").await.status != 401 {}
    let other_env = house.key.replacen("ck_live", "ck_test", 1);
    let longer = format!("{}0", house.key);
    let forged = settled.keys["end_user"].replacen("ct_7b", "ct_7c", 1);
    let bad = [
        None,
        Some(""),
        Some("ck_live_nobody"),
        Some(revoked.as_str()),
        Some(expired.as_str()),
        Some(token_of_revoked.as_str()),
        Some(other_env.as_str()),
        Some(longer.as_str()),
        Some(forged.as_str()),
    ];
    for door in doors() {
        let path = settled.filled(door.path);
        for key in bad {
            let reply = call(house, key, &door.method, &path, body_for(&door)).await;
            let shown = format!("{key:?}: {} {path}: {} {}", door.method, reply.status, reply.body);
            if door.open.contains("anyone") {
                assert!(![401, 403].contains(&reply.status), "{shown}");
            } else {
                assert_eq!(
                    (reply.status, reply.code().as_str()),
                    (401, "invalid_api_key"),
                    "{shown}"
                );
            }
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn another_tenant_sees_and_changes_nothing() {
    let settled = settled().await;
    let house = &settled.house;
    let (_, stranger) = new_key(house, &json!({"role": "owner", "tenant": "second"})).await;
    for door in doors() {
        let path = settled.filled(door.path);
        let reply = call(house, Some(&stranger), &door.method, &path, body_for(&door)).await;
        let shown = format!("{} {path}: {} {}", door.method, reply.status, reply.body);
        assert!(reply.status < 500, "{shown}");
        match door.other_tenant {
            "-" => {}
            // What a stranger names themselves stands in the answer.
            "own" if path.contains(MARK) => assert!(!reply.body.contains("hard day"), "{shown}"),
            "own" => assert!(!reply.body.contains(MARK), "{shown}"),
            status => {
                assert_eq!(reply.status.to_string(), status, "{shown}");
                assert!(!reply.body.contains(MARK), "{shown}");
            }
        }
        if !path.contains(MARK) {
            assert!(!reply.body.contains(MARK), "{shown}");
        }
    }
    for (before, rest) in [
        ("/v1/responses", ""),
        ("/v1/decisions", "/explanation"),
        ("/v1/consents", ""),
        ("/v1/subjects", ""),
        ("/v1/reviews", ""),
        ("/v1/appeals", ""),
    ] {
        let path = format!("{before}/{}{rest}", settled.ids[before]);
        assert_eq!(house.get(&path).await.status, 200, "{path} is still there");
    }
    let consent = house.get(&format!("/v1/consents/{}", settled.ids["/v1/consents"])).await.json();
    assert!(consent["withdrawn"].is_null(), "{consent}");
    let keys = house.get("/v1/keys").await.json();
    let spare = settled.ids["/v1/keys"].as_str();
    let spare = keys["data"].as_array().unwrap().iter().find(|key| key["id"] == spare).unwrap();
    assert!(spare["revoked_ms"].is_null() && spare["expires_ms"].is_null(), "{spare}");
    assert_eq!(house.get("/v1/webhooks").await.json()["data"].as_array().unwrap().len(), 1);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_person_sees_their_own_decisions_and_nobody_elses() {
    let settled = settled().await;
    let (house, app) = (&settled.house, settled.keys["app"].clone());
    let decision = settled.ids["/v1/decisions"].clone();
    let asked = |what: &str| format!("/v1/decisions/{decision}/{what}");
    let mine = token(house, &app, &json!({"user": MARK})).await;
    let theirs = token(house, &app, &json!({"user": "ben"})).await;
    let nobody = token(house, &app, &json!({"user": "never seen"})).await;
    let elsewhere = json!({"user": MARK, "session": "another conversation"});
    let elsewhere = token(house, &app, &elsewhere).await;
    // Somebody else has decisions too.
    let talk = json!({"model": "builtin", "user": "ben", "messages": [
        {"role": "user", "content": "Hello."}]});
    let auth = format!("authorization: Bearer {app}\r\nx-conclave-session-id: s-1\r\n");
    let path = "/v1/chat/completions";
    let said = house::ask(house.addr, "POST", path, &auth, talk.to_string().as_bytes()).await;
    let of_ben = said.unwrap().own("audit_id").as_str().unwrap().to_owned();
    for what in ["explanation", "receipt"] {
        let own = call(house, Some(&mine), "get", &asked(what), "").await;
        assert!([200, 202].contains(&own.status), "{what}: {} {}", own.status, own.body);
        for stranger in [&theirs, &nobody, &elsewhere] {
            let other = call(house, Some(stranger), "get", &asked(what), "").await;
            assert_eq!((other.status, other.code().as_str()), (404, "not_found"), "{what}");
        }
        let of_ben = format!("/v1/decisions/{of_ben}/{what}");
        assert_eq!(call(house, Some(&mine), "get", &of_ben, "").await.status, 404);
        let here = token(house, &app, &json!({"user": "ben", "session": "s-1"})).await;
        let seen = call(house, Some(&here), "get", &of_ben, "").await;
        assert!([200, 202].contains(&seen.status), "{}", seen.body);
    }
    // Whoever is erased has nothing to see any more.
    let erased = format!("/v1/subjects/{MARK}");
    assert_eq!(call(house, Some(&house.key), "delete", &erased, "").await.status, 200);
    assert_eq!(call(house, Some(&mine), "get", &asked("explanation"), "").await.status, 404);
    for bad in [
        json!({"user": ""}),
        json!({"user": "a", "expires_in_s": 59}),
        json!({"user": "a", "expires_in_s": 86_401}),
        json!({"user": "a", "role": "owner"}),
    ] {
        let reply = call(house, Some(&app), "post", "/v1/tokens", &bad.to_string()).await;
        assert_eq!(reply.status, 400, "{bad}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn keys_are_made_replaced_and_withdrawn_while_the_house_runs() {
    let dir = tempfile::tempdir().unwrap();
    let house = House::start(dir.path(), CONFIG);
    let works = async |key: &str| call(&house, Some(key), "get", "/v1/models", "").await.status;
    let order = json!({"role": "app", "label": "shop", "expires_in_s": 1000});
    let (id, first) = new_key(&house, &order).await;
    assert_eq!(works(&first).await, 200, "a key opens doors at once");
    let listed = house.get("/v1/keys").await;
    assert!(!listed.body.contains(&first), "a key is shown once");
    assert!(!listed.body.contains(first.split('_').nth(3).unwrap()));
    let shown =
        listed.json()["data"].as_array().unwrap().iter().find(|key| key["id"] == id).cloned();
    assert_eq!(shown.unwrap()["label"], "shop");
    let rotate = format!("/v1/keys/{id}/rotate");
    let made = post(&house, &house.key, &rotate, &json!({"overlap_s": 600})).await;
    let second = made["key"].as_str().unwrap().to_owned();
    assert_eq!((&made["role"], &made["label"]), (&json!("app"), &json!("shop")));
    assert!(made["expires_ms"].as_u64().is_some(), "for as long as the first was made for");
    assert_eq!((works(&first).await, works(&second).await), (200, 200), "both open doors");
    let rotate = format!("/v1/keys/{}/rotate", made["id"].as_str().unwrap());
    let third = post(&house, &house.key, &rotate, &json!({"overlap_s": 0})).await;
    let third_key = third["key"].as_str().unwrap();
    assert_eq!((works(&second).await, works(third_key).await), (401, 200), "without an overlap");
    let again = call(&house, Some(&house.key), "post", &rotate, "{}").await;
    assert_eq!((again.status, again.code().as_str()), (409, "conflict"), "{}", again.body);
    let revoke = format!("/v1/keys/{}", third["id"].as_str().unwrap());
    let person = token(&house, third_key, &json!({"user": "ana"})).await;
    assert_eq!(call(&house, Some(&house.key), "delete", &revoke, "").await.status, 200);
    assert_eq!(call(&house, Some(&house.key), "delete", &revoke, "").await.status, 200);
    assert_eq!(works(third_key).await, 401, "at once");
    let path = "/v1/decisions/019ff0a2-6c4e-7d21-9b0e-3f6f1f0b7a55/receipt";
    assert_eq!(call(&house, Some(&person), "get", path, "").await.status, 401, "with its tokens");
    for bad in [
        json!({}),
        json!({"role": "king"}),
        json!({"role": "app", "expires_in_s": 0}),
        json!({"role": "app", "label": "x".repeat(201)}),
        json!({"role": "app", "more": 1}),
    ] {
        let reply = call(&house, Some(&house.key), "post", "/v1/keys", &bad.to_string()).await;
        assert_eq!(reply.status, 400, "{bad}: {}", reply.body);
    }
    // By command line, while the house runs.
    let data = house.data.to_str().unwrap().to_owned();
    let args = ["--json", "keys", "rotate", &id, "--overlap-hours", "1", "--data", &data];
    let output = conclave(&args);
    let made: Value = serde_json::from_slice(&output.stdout).unwrap();
    while works(made["key"].as_str().unwrap()).await != 200 {}
    let list = conclave(&["keys", "list", "--data", &data]);
    let list = String::from_utf8_lossy(&list.stdout).into_owned();
    assert!(list.contains("never used") && list.contains("revoked"), "{list}");
    // A change is durable with its note; the note becomes an entry a moment later. The owner's, the first; a
    // successor and an end for each of three replacements; one withdrawn.
    let whole = |(_, report): &(_, Value)| report["kinds"]["key.change"] == 2 + 3 * 2 + 1;
    let mut reported = (0..500).map(|_| verify(&house.data));
    let (code, report) = reported.find(whole).expect("every change is in the ledger");
    assert_eq!(code, Some(0), "{report}");
}
