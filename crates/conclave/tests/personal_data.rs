//! Personal data in conversations, end to end: what a model is sent, and what a client is.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "tests say what they expect"
)]

mod house;

use conclave_testkit::{Behaviour, MockModel, Script};
use house::{House, Reply, config_for};
use serde_json::{Value, json};

const SAID: &str = "My name is Akiko Tanaka. Write to akiko.t@example.org or call +1 212-736-5000, \
                    and my card is 5555 5555 5555 4444. How do I change my address?";
const SECRETS: [&str; 4] =
    ["Akiko Tanaka", "akiko.t@example.org", "736-5000", "5555 5555 5555 4444"];
/// Brought up by nobody but the model.
const STRANGE_CARD: &str = "4111 1111 1111 1111";

const BUFFERED: &str = "";
const WINDOWED: &str = "[policy]\nstream = \"windowed\"\n";

struct Asked {
    name: &'static str,
    path: &'static str,
    body: Value,
}

/// The same words in every dialect, whole and as a stream.
fn requests(text: &str) -> Vec<Asked> {
    let messages = json!([{"role": "user", "content": text}]);
    let chat = json!({"model": "mock", "messages": messages});
    let anthropic = json!({"model": "mock", "max_tokens": 200, "messages": messages});
    let responses = json!({"model": "mock", "input": text});
    let dialects = [
        ("chat", "/v1/chat/completions", chat),
        ("messages", "/v1/messages", anthropic),
        ("responses", "/v1/responses", responses),
    ];
    let mut all = Vec::new();
    for (name, path, body) in dialects {
        let mut streamed = body.clone();
        streamed["stream"] = json!(true);
        all.push(Asked { name, path, body });
        all.push(Asked { name, path, body: streamed });
    }
    all
}

async fn house_saying(
    reply: &str,
    config: &str,
    policy: Value,
) -> (House, MockModel, tempfile::TempDir) {
    let script = Script::always(Behaviour::Reply(reply.to_owned()));
    let mock = MockModel::scripted(script).await.unwrap();
    let dir = tempfile::tempdir().unwrap();
    let house = House::start(dir.path(), &config_for(&mock.base_url(), config));
    let body = json!({"policy": {"personal_data": policy}}).to_string();
    let path = "/v1/tenants/default/policy";
    let set = house.ask("PUT", path, body.as_bytes()).await.unwrap();
    assert_eq!(set.status, 200, "{}", set.body);
    (house, mock, dir)
}

async fn ask(house: &House, asked: &Asked) -> Reply {
    let reply = house.post(asked.path, &asked.body).await;
    assert_eq!(reply.status, 200, "{}: {}", asked.name, reply.body);
    reply
}

#[tokio::test]
async fn what_a_person_writes_is_kept_from_the_model_and_given_back_to_the_person() {
    let reply = "I have noted [EMAIL_1] for you. To change your address, open the settings page.";
    for config in [BUFFERED, WINDOWED] {
        let policy = json!({"messages": "redact", "restore": true});
        let (house, mock, _dir) = house_saying(reply, config, policy).await;
        for asked in requests(SAID) {
            let answer = ask(&house, &asked).await;
            assert!(
                answer.body.contains("akiko.t@example.org") && !answer.body.contains("[EMAIL_1]"),
                "{}: {}",
                asked.name,
                answer.body
            );
        }
        for body in mock.bodies() {
            let sent = body.to_string();
            for secret in SECRETS {
                assert!(!sent.contains(secret), "{secret} reached the model: {sent}");
            }
            assert!(sent.contains("[EMAIL_1]"), "{sent}");
        }
        assert!(house.stop());
    }
}

#[tokio::test]
async fn speakers_and_british_numbers_are_kept_from_the_model_and_ordinary_words_are_not() {
    let said = "Summarise this:\nMara Lopez: I moved in May, ring +44 20 7946 0958.\n\
                Interviewer: Will you stay, Mara?\nMara Lopez: Yes.\nThank you. Did Ms Lopez agree?";
    let reply = "[PERSON_NAME_1] moved in May and can be reached at [phone 1].";
    let policy = json!({"messages": "redact", "restore": true});
    let (house, mock, _dir) = house_saying(reply, WINDOWED, policy).await;
    for asked in requests(said) {
        let answer = ask(&house, &asked).await;
        let given_back = "Mara Lopez moved in May and can be reached at +44 20 7946 0958.";
        assert!(answer.body.contains(given_back), "{}: {}", asked.name, answer.body);
    }
    assert_eq!(mock.bodies().len(), 6);
    for body in mock.bodies() {
        let sent = body.to_string();
        for secret in ["Mara", "Lopez", "7946", "0958"] {
            assert!(!sent.contains(secret), "{secret} reached the model: {sent}");
        }
        assert!(sent.contains("I moved in May") && sent.contains("Will you stay"), "{sent}");
    }
}

#[tokio::test]
async fn a_tenant_can_let_replies_pass_where_the_operator_said_nothing_about_them() {
    let reply = format!("Somebody else paid with {STRANGE_CARD} last week.");
    for (operator, leaves) in [
        ("[tenants.default.policy]\nblock_injection = true\n", true),
        ("[tenants.default.policy.personal_data]\nreplies = \"account_numbers\"\n", false),
    ] {
        let (house, _mock, _dir) = house_saying(&reply, operator, json!({"replies": "pass"})).await;
        let answer = ask(&house, &requests("Who paid last week?")[0]).await;
        assert_eq!(answer.body.contains(STRANGE_CARD), leaves, "{operator}: {}", answer.body);
        assert!(house.stop());
    }
}

#[tokio::test]
async fn tokens_stay_where_the_policy_does_not_give_back() {
    let policy = json!({"messages": "redact", "restore": false});
    let (house, _mock, _dir) = house_saying("I noted [EMAIL_1].", BUFFERED, policy).await;
    let answer = ask(&house, &requests(SAID)[0]).await;
    assert!(answer.body.contains("[EMAIL_1]"), "{}", answer.body);
    assert!(!answer.body.contains("akiko.t@example.org"), "{}", answer.body);
}

#[tokio::test]
async fn a_message_with_personal_data_is_refused_where_the_policy_says_so() {
    let (house, mock, _dir) = house_saying("Hello.", BUFFERED, json!({"messages": "block"})).await;
    let body = json!({"model": "mock", "messages": [{"role": "user", "content": SAID}]});
    let answer = house.post("/v1/chat/completions", &body).await;
    assert_eq!((answer.status, answer.code().as_str()), (400, "content_filter"));
    assert_eq!(mock.requests(), 0);
}

#[tokio::test]
async fn a_card_number_that_a_reply_brings_up_is_in_no_byte_that_is_sent() {
    let reply = format!(
        "Here is what I found for you today, and I hope that it helps a little. \
         Somebody else paid with {STRANGE_CARD} last week. Is there anything else you need?"
    );
    for config in [BUFFERED, WINDOWED] {
        // By default: nobody has set a policy about it.
        let (house, _mock, _dir) = house_saying(&reply, config, json!({})).await;
        for asked in requests("Who paid last week?") {
            let answer = ask(&house, &asked).await;
            for part in [STRANGE_CARD, "4111 1111", "1111 1111 1111"] {
                assert!(!answer.body.contains(part), "{}: {}", asked.name, answer.body);
            }
            assert!(answer.body.contains("anything else you need"), "{}", answer.body);
        }
        assert!(house.stop());
    }
}
