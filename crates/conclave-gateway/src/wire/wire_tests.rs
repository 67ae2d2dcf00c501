//! Fields that every interface reads, and what is added to every reply.

use super::*;

fn metadata(value: &Value) -> Map<String, Value> {
    value.as_object().cloned().unwrap_or_default()
}

#[test]
fn the_person_is_the_safety_identifier_first() {
    let body = metadata(&json!({"safety_identifier": "a", "user": "b"}));
    assert_eq!(user_field(&body).unwrap().unwrap().as_str(), "a");
    assert_eq!(user_field(&metadata(&json!({"user": ""}))).unwrap(), None);
    assert!(user_field(&metadata(&json!({"user": 7}))).is_err());
}

fn dialects() -> [(&'static str, Box<dyn Dialect>); 4] {
    [
        ("chat", Box::<chat::ChatDialect>::default()),
        ("completion", Box::<completion::CompletionDialect>::default()),
        ("messages", Box::<messages::reply::MessagesDialect>::default()),
        ("responses", Box::<responses::reply::ResponsesDialect>::default()),
    ]
}

fn head() -> ReplyHead {
    ReplyHead { id: AuditId(uuid::Uuid::nil()), created_s: 7, model: "m".into() }
}

/// The data of each event; every frame must be a whole one.
fn events(frames: &[Bytes]) -> Vec<Value> {
    let frames = frames.iter().map(|frame| {
        let frame = std::str::from_utf8(frame).unwrap();
        let lines = frame.strip_suffix("\n\n").unwrap();
        let data = lines.lines().last().unwrap().strip_prefix("data: ").unwrap();
        let event: Value = serde_json::from_str(data).unwrap();
        if let Some(name) = lines.lines().next().unwrap().strip_prefix("event: ") {
            assert_eq!(event["type"], name, "SDKs go by either");
        }
        event
    });
    frames.collect()
}

/// The text that a piece of a stream brings, wherever the interface has it.
fn text_of(event: &Value) -> &str {
    ["/choices/0/delta/content", "/choices/0/text", "/delta/text", "/delta"]
        .iter()
        .find_map(|place| event.pointer(place).and_then(Value::as_str))
        .unwrap_or("")
}

#[test]
fn the_pieces_of_a_stream_say_what_was_released_to_the_byte() {
    for (name, mut dialect) in dialects() {
        let mut frames = dialect.open_stream(&head());
        for piece in ["Caf\u{e9}, ", "\"quoted\"\n", "and the rest."] {
            frames.extend(dialect.stream_piece(piece));
        }
        let said: String = events(&frames).iter().map(text_of).collect();
        assert_eq!(said, "Caf\u{e9}, \"quoted\"\nand the rest.", "{name}");
    }
}

#[test]
fn a_stream_that_breaks_says_why_in_the_shape_of_its_interface() {
    for (name, mut dialect) in dialects() {
        dialect.open_stream(&head());
        let broken = events(&dialect.break_stream(&ApiError::upstream_timeout()));
        let [error] = &broken[..] else { panic!("{name}: {broken:?}") };
        let (fields, kind) = match name {
            "messages" => (&error["error"], "timeout_error"),
            "responses" => (error, "error"),
            _ => (&error["error"], "api_error"),
        };
        assert_eq!((&fields["type"], &fields["code"]), (&json!(kind), &json!("upstream_timeout")));
    }
}

#[test]
fn what_was_not_sent_of_a_text_is_rather_said_twice_than_lost() {
    assert_eq!(unsent_text("Hello there", 6), "there");
    assert_eq!(unsent_text("Hello", 5), "");
    assert_eq!(unsent_text("Hi", 5), "Hi", "it does not go on from what was sent");
    assert_eq!(unsent_text("\u{e9}t\u{e9}", 1), "\u{e9}t\u{e9}", "no letter is cut");
}

#[test]
fn fields_of_the_wrong_kind_are_errors_that_name_them() {
    let body = metadata(&json!({"model": "", "a": 7, "metadata": []}));
    let param = |error: ApiError| error.body(Envelope::OpenAi)["error"]["param"].clone();
    assert_eq!(param(model_field(&body).unwrap_err()), "model");
    assert_eq!(param(text_field(&body, "a").unwrap_err()), "a");
    assert_eq!(param(flag_field(&body, "a").unwrap_err()), "a");
    assert_eq!(param(list_field(&body, "a").unwrap_err()), "a");
    assert_eq!(param(take_metadata(&mut body.clone()).unwrap_err()), "metadata");
    assert_eq!(param(json_object(json!([])).unwrap_err()), Value::Null);
    let absent = Map::new();
    assert_eq!(text_field(&absent, "a").unwrap(), None);
    assert!(!flag_field(&absent, "a").unwrap() && list_field(&absent, "a").unwrap().is_empty());
}

#[test]
fn what_was_passed_on_unjudged_is_named_once_and_never_at_length() {
    let part = |kind: &str| Part::Unjudged { kind: kind.to_owned() };
    let long = "x".repeat(100);
    let parts = vec![part("image_url"), part("file"), part("image_url"), part(&long)];
    let said = [Message { role: conclave_core::Role::User, content: Content::Parts(parts) }];
    assert_eq!(unjudged_kinds(&said), ["image_url", "file", &long[..KIND_BYTES_MAX]]);
    let many = (0..100).map(|number| part(&format!("kind-{number}"))).collect();
    let said = [Message { role: conclave_core::Role::User, content: Content::Parts(many) }];
    assert_eq!(unjudged_kinds(&said).len(), KINDS_MAX);
}

#[test]
fn whether_a_client_reads_events_is_known_in_every_interface() {
    let said = json!([{"role": "user", "content": "x"}]);
    let asked = json!({"model": "m", "messages": said, "input": "x", "stream": true});
    let mut prompted = asked.clone();
    prompted["prompt"] = json!("x");
    let responses = responses::request::ResponsesRequest::parse(asked.clone()).unwrap();
    for (name, inquiry) in [
        ("chat", chat::ChatRequest::parse(asked.clone()).unwrap().inquiry),
        ("completion", completion::parse_completion(prompted).unwrap().inquiry),
        ("messages", messages::request::parse_messages(asked, &[]).unwrap()),
        ("responses", responses.inquire(None).unwrap().inquiry),
    ] {
        assert!(inquiry.stream, "{name}");
        assert_eq!(inquiry.body.get("stream"), Some(&json!(true)), "{name}");
    }
}
