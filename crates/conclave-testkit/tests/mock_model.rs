//! The mock does on the wire what its behaviours say.

use conclave_testkit::{Behaviour, MockModel, SEEN_MAX, Script, last_user_message};
use serde_json::{Value, json};
use std::io;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

type Outcome = Result<(), Box<dyn std::error::Error>>;

async fn send(stream: &mut TcpStream, body: &Value) -> io::Result<()> {
    let body = body.to_string();
    let request = format!(
        "POST /v1/chat/completions HTTP/1.1\r\nhost: mock\r\nconnection: close\r\n\
         content-length: {}\r\n\r\n{body}",
        body.len(),
    );
    stream.write_all(request.as_bytes()).await
}

async fn ask(mock: &MockModel, body: &Value) -> io::Result<String> {
    let mut stream = TcpStream::connect(mock.address()).await?;
    send(&mut stream, body).await?;
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer).await?;
    Ok(String::from_utf8_lossy(&answer).into_owned())
}

async fn ask_scripted(behaviour: Behaviour, body: &Value) -> io::Result<String> {
    let mock = MockModel::scripted(Script::always(behaviour)).await?;
    ask(&mock, body).await
}

#[tokio::test]
async fn one_server_serves_a_mixed_load() -> Outcome {
    let mock = MockModel::start(|body| match last_user_message(body) {
        "fail" => Behaviour::Status(500, "broken".into()),
        other => Behaviour::Reply(format!("you said {other}")),
    })
    .await?;
    let good = json!({"messages": [{"role": "user", "content": "hello"}]});
    let bad = json!({"messages": [{"role": "user", "content": "fail"}]});
    assert!(ask(&mock, &good).await?.contains("you said hello"));
    assert!(ask(&mock, &bad).await?.starts_with("HTTP/1.1 500"));
    assert_eq!(mock.requests(), 2);
    assert_eq!(mock.bodies(), [good, bad]);
    assert_eq!(mock.seen()[0].header("host"), Some("mock"));
    Ok(())
}

#[tokio::test]
async fn a_streamed_reply_ends_with_done() -> Outcome {
    let answer = ask_scripted(Behaviour::Reply("hello".into()), &json!({"stream": true})).await?;
    assert!(answer.contains("content-type: text/event-stream"));
    assert!(answer.contains(r#""content":"hello""#));
    assert!(answer.contains("data: [DONE]"));
    Ok(())
}

#[tokio::test]
async fn a_half_closed_reply_is_shorter_than_it_says() -> Outcome {
    let answer = ask_scripted(Behaviour::HalfClose, &json!({})).await?;
    let (head, body) = answer.split_once("\r\n\r\n").ok_or("no head")?;
    let declared =
        head.lines().find_map(|line| line.strip_prefix("content-length: ")).ok_or("no length")?;
    assert!(!body.is_empty());
    assert!(body.len() < declared.parse::<usize>()?);
    Ok(())
}

#[tokio::test]
async fn hanging_up_sends_nothing() -> Outcome {
    assert_eq!(ask_scripted(Behaviour::HangUp, &json!({})).await?, "");
    Ok(())
}

#[tokio::test]
async fn a_reset_is_no_ordinary_end() -> Outcome {
    let mock = MockModel::scripted(Script::always(Behaviour::Reset)).await?;
    let mut stream = TcpStream::connect(mock.address()).await?;
    send(&mut stream, &json!({})).await?;
    let mut answer = Vec::new();
    let error = stream.read_to_end(&mut answer).await.err().ok_or("it ended well")?;
    assert_eq!(error.kind(), io::ErrorKind::ConnectionReset);
    Ok(())
}

#[tokio::test]
async fn what_is_kept_is_bounded() -> Outcome {
    let mock = MockModel::scripted(Script::always(Behaviour::Html200)).await?;
    for number in 0..=SEEN_MAX {
        ask(&mock, &json!({ "number": number })).await?;
    }
    let bodies = mock.bodies();
    assert_eq!(bodies.len(), SEEN_MAX);
    assert_eq!(bodies[0], json!({"number": 1}));
    assert_eq!(mock.requests(), SEEN_MAX as u64 + 1);
    Ok(())
}

#[tokio::test]
async fn stopping_frees_the_port_and_ends_open_connections() -> Outcome {
    let mock = MockModel::scripted(Script::always(Behaviour::Hang)).await?;
    let address = mock.address();
    let mut stream = TcpStream::connect(address).await?;
    send(&mut stream, &json!({})).await?;
    mock.stop().await;
    let mut answer = Vec::new();
    // Whether the end is a close or a reset depends on what was still unread.
    let _ = stream.read_to_end(&mut answer).await;
    assert!(answer.is_empty());
    assert!(TcpStream::connect(address).await.is_err());
    Ok(())
}

#[tokio::test]
async fn other_paths_are_not_found() -> Outcome {
    let mock = MockModel::scripted(Script::always(Behaviour::Html200)).await?;
    let mut stream = TcpStream::connect(mock.address()).await?;
    stream.write_all(b"GET /v1/none HTTP/1.1\r\nhost: mock\r\nconnection: close\r\n\r\n").await?;
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer).await?;
    assert!(answer.starts_with(b"HTTP/1.1 404"));
    Ok(())
}
