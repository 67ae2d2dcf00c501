//! What a person is told about a decision is what happened, in their language.

use conclave_ledger::{Body, Draft, EntryId, Kind, Leaf, Value};
use conclave_people::{AppealStanding, Explanation, NoAppeal, ReviewStanding, explain};
use conclave_ports::{StoredDecision, StoredEntry};
use serde_json::json;

/// What happened in one turn, as far as the story depends on it.
struct Turn {
    outcome: &'static str,
    /// One for each time a model was asked: whether it answered.
    answers: &'static [bool],
    windows: u64,
    injection: u64,
    crisis: bool,
    /// What kind of matter, where it is no conversation.
    agent: Option<&'static str>,
    /// Whether it is the run of a recipe, for which nobody is read for harm.
    is_run: bool,
    guard: Option<[&'static str; 4]>,
    standing: ReviewStanding,
    /// How strongly each sensor heard what it listens for.
    sensed: &'static [(&'static str, f64)],
}

const PLAIN: Turn = Turn {
    outcome: "delivered",
    answers: &[true],
    windows: 0,
    injection: 0,
    crisis: false,
    agent: None,
    is_run: false,
    guard: None,
    standing: ReviewStanding::Unasked,
    sensed: &[],
};

fn told(turn: &Turn, language: &str) -> Explanation {
    let attempt = |answered: &bool| {
        let failure = if *answered { Value::Null } else { Value::from("unavailable") };
        Value::map([("failure", failure)])
    };
    let windows = (0..turn.windows).map(|_| Value::Bytes(vec![1; 32])).collect();
    let choice = Value::map([
        ("outcome", Value::from(turn.outcome)),
        ("attempts", Value::Array(turn.answers.iter().map(attempt).collect())),
        ("windows", Value::Array(windows)),
    ]);
    let row = |row: [&str; 4]| Value::Array(row.into_iter().map(Value::from).collect());
    let kind = match turn.is_run {
        true => vec![("recipe", Value::from("interview-analyzer"))],
        false => vec![("harm", Value::Uint(1)), ("threshold", Value::Uint(60))],
    };
    let agent = turn.agent.map(|agent| ("agent", Value::from(agent)));
    let fields = [
        ("outcome", Value::from(turn.outcome)),
        ("attempts", Value::Uint(turn.answers.len() as u64)),
        ("injection", Value::Uint(turn.injection)),
        ("crisis", Value::Bool(turn.crisis)),
        ("guards", Value::Array(turn.guard.into_iter().map(row).collect())),
        ("choices", Value::Array(vec![choice])),
    ];
    let draft = Draft {
        public: Value::map(fields.into_iter().chain(kind).chain(agent)),
        ..Draft::new(Kind::Decision, 1)
    };
    let mut body = Body::empty();
    body.push("who", [1; 32], json!({"context": {"language": language}}).to_string());
    let sensors: Vec<_> = turn
        .sensed
        .iter()
        .map(|(name, heard)| json!({"name": name, "intensity": heard, "influence": 1.0}))
        .collect();
    body.push("field", [1; 32], json!({"sensors": sensors}).to_string());
    let id = EntryId { replica: [7; 8], epoch: 1, n: 1 };
    let leaf = Leaf { id, ts_ms: 1, draft, commitments: body.commitments() }.encode();
    let entries = vec![StoredEntry { seq: 0, leaf, body: Some(body.encode()) }];
    let stored = StoredDecision::from_entries(entries).unwrap().unwrap();
    explain(&stored, turn.standing, &AppealStanding::Closed(NoAppeal::NobodyThere))
}

/// A turn, what must be told of it in English and Japanese, and what must not.
type Row = (Turn, [&'static str; 2], [&'static str; 2]);

const DOWN: [&str; 2] = ["no usable answer came back", "返答がありません"];
const WRITTEN: [&str; 2] = ["was written for you", "書かれました"];
const WAITS: [&str; 2] = ["Nobody has decided yet", "まだ決まっていません"];
const NONE_SENT: [&str; 2] = ["none was sent", "どの返事も送らず"];

fn check(rows: &[Row]) {
    for (turn, says, keeps_quiet) in rows {
        for (at, language) in ["en-GB", "ja"].into_iter().enumerate() {
            let told = told(turn, language);
            let story = told.story.join(" ");
            let shown = format!("{} {:?} {language}: {story}", turn.outcome, turn.standing);
            assert!(story.contains(says[at]), "{shown}\nis to say: {}", says[at]);
            let denied = keeps_quiet[at];
            assert!(!story.contains(denied), "{shown}\nis not to say: {denied}");
            assert!(told.story.iter().all(|sentence| !sentence.is_empty()), "{shown}");
            assert!(!told.user_can_appeal, "nobody is there who could rule");
        }
    }
}

#[test]
fn a_model_that_gave_no_answer_has_written_nothing() {
    check(&[
        (Turn { outcome: "failed", answers: &[false], ..PLAIN }, DOWN, WRITTEN),
        (Turn { outcome: "safe_completion", answers: &[false, false], ..PLAIN }, DOWN, WRITTEN),
        (Turn { outcome: "exhausted", answers: &[true], ..PLAIN }, WRITTEN, DOWN),
        (
            Turn { outcome: "safe_completion", answers: &[], ..PLAIN },
            ["without asking a model", "モデルには尋ねず"],
            DOWN,
        ),
    ]);
}

#[test]
fn a_guard_that_stopped_a_reply_stopped_no_request() {
    check(&[
        (
            Turn {
                outcome: "blocked",
                guard: Some(["toxicity", "post", "blocked", "toxicity"]),
                ..PLAIN
            },
            ["did not pass a check after that", "その後の確認を通らなかった"],
            ["no model was asked", "モデルには尋ねて"],
        ),
        (
            Turn {
                outcome: "blocked",
                is_run: true,
                guard: Some(["toxicity", "post", "blocked", "toxicity"]),
                ..PLAIN
            },
            ["did not pass a check after that", "その後の確認を通らなかった"],
            ["no model was asked", "モデルには尋ね"],
        ),
        (
            Turn {
                outcome: "blocked",
                answers: &[],
                guard: Some(["budget", "pre", "blocked", "insufficient_quota"]),
                ..PLAIN
            },
            ["no model was asked", "モデルには尋ねて"],
            ["elders", "長老"],
        ),
        (
            Turn {
                outcome: "blocked",
                guard: Some(["cultural", "post", "held", "sacred"]),
                ..PLAIN
            },
            ["Nobody was here who could decide", "決められる人がいなかった"],
            WAITS,
        ),
    ]);
}

#[test]
fn parts_that_were_sent_are_not_denied() {
    check(&[
        (
            Turn { outcome: "escalated", windows: 3, ..PLAIN },
            ["were sent to you", "初めの部分は確認を通ってお送りしました"],
            NONE_SENT,
        ),
        (
            Turn {
                outcome: "blocked",
                windows: 3,
                guard: Some(["toxicity", "post", "blocked", "toxicity"]),
                ..PLAIN
            },
            ["were sent to you", "初めの部分は確認を通ってお送りしました"],
            ["it was not sent", "お送りしませんでした"],
        ),
        (
            Turn { outcome: "failed", answers: &[false], windows: 2, ..PLAIN },
            ["then no more came from the model", "続きが届きませんでした"],
            DOWN,
        ),
        (
            Turn { outcome: "held", windows: 1, standing: ReviewStanding::Waiting, ..PLAIN },
            ["were sent to you", "初めの部分は確認を通ってお送りしました"],
            ["Nothing of it is sent", "その内容は送られません"],
        ),
    ]);
}

#[test]
fn what_people_decided_waits_no_longer() {
    check(&[
        (Turn { outcome: "escalated", ..PLAIN }, NONE_SENT, WAITS),
        (
            Turn { outcome: "escalated", standing: ReviewStanding::Waiting, ..PLAIN },
            WAITS,
            ["approved", "承認"],
        ),
        (Turn { outcome: "held", standing: ReviewStanding::Waiting, ..PLAIN }, WAITS, NONE_SENT),
        (
            Turn { outcome: "held", standing: ReviewStanding::Approved, ..PLAIN },
            ["The application can fetch what they approved", "アプリケーションが取得できます"],
            WAITS,
        ),
        (
            Turn {
                outcome: "held",
                answers: &[],
                standing: ReviewStanding::Approved,
                guard: Some(["cultural", "pre", "held", "sacred"]),
                ..PLAIN
            },
            ["there is nothing to fetch", "取得できるものはありません"],
            ["can fetch what", "アプリケーションが取得できます"],
        ),
        (
            Turn { outcome: "held", standing: ReviewStanding::Edited, ..PLAIN },
            ["approved it in other words", "言葉を改めたうえで"],
            WAITS,
        ),
        (
            Turn { outcome: "held", standing: ReviewStanding::Rejected, ..PLAIN },
            ["decided that it is not sent", "送らないと決めました"],
            WAITS,
        ),
    ]);
}

#[test]
fn help_marks_and_replies_made_elsewhere_are_told_as_they_were() {
    check(&[
        (
            Turn { agent: Some("verify"), ..PLAIN },
            ["written elsewhere", "別の場所で書かれた返事"],
            ["written for you", "あなたへの返事"],
        ),
        (
            Turn { agent: Some("verify"), outcome: "escalated", ..PLAIN },
            ["did not pass, and the application was told", "確認を通らず"],
            ["took its place", "代わりのメッセージ"],
        ),
        (
            Turn { agent: Some("verify"), crisis: true, ..PLAIN },
            ["somebody might be in danger", "どなたかが危険な状態"],
            ["help were added", "添えました"],
        ),
        (
            Turn { agent: Some("moderations"), answers: &[], crisis: true, ..PLAIN },
            ["nothing was written in answer", "返事は書かれていません"],
            ["help were added", "添えました"],
        ),
        (
            Turn { outcome: "safe_completion", answers: &[], crisis: true, ..PLAIN },
            ["names places where you can find help", "窓口をお伝えしました"],
            ["was checked as strictly", "最も厳しく確認し"],
        ),
        (
            Turn { injection: 70, ..PLAIN },
            ["an attempt to change the rules", "決まりを変えようとする"],
            DOWN,
        ),
        (
            Turn { guard: Some(["pii", "pre", "redacted", "pii"]), ..PLAIN },
            ["replaced before a model saw it", "モデルに渡る前に置き換え"],
            DOWN,
        ),
        (
            Turn { guard: Some(["pii", "post", "redacted", "pii"]), ..PLAIN },
            ["replaced in what came back", "返ってきた内容の中の"],
            DOWN,
        ),
    ]);
}

/// A turn that a guard decided, who is told to have done it, and what in English and Japanese.
type GuardedTurn = (Turn, &'static str, [&'static str; 2]);

fn guarded() -> [GuardedTurn; 5] {
    let stopped = |row| Turn { outcome: "blocked", guard: Some(row), ..PLAIN };
    [
        (
            stopped(["toxicity", "post", "blocked", "toxicity"]),
            "toxicity",
            ["read what was written and stopped it", "書かれたものを読んで止めた"],
        ),
        (
            Turn { answers: &[], ..stopped(["consent", "pre", "blocked", "consent_required"]) },
            "consent",
            ["stopped it before a model was asked", "モデルに尋ねる前に止めた"],
        ),
        (
            Turn { outcome: "held", ..stopped(["cultural", "post", "held", "sacred"]) },
            "cultural",
            ["had it wait for people to decide", "人が決めるまで待つ"],
        ),
        (
            Turn { outcome: "safe_completion", answers: &[false], crisis: true, ..PLAIN },
            "interpretation",
            ["there was no reply to shape", "返事がなかった"],
        ),
        (
            Turn { outcome: "safe_completion", answers: &[], crisis: true, ..PLAIN },
            "interpretation",
            ["answered with care at once", "すぐに配慮して"],
        ),
    ]
}

#[test]
fn the_guard_that_stopped_a_reply_is_named_and_said_to_have_done_what_it_did() {
    for (turn, name, says) in guarded() {
        for (at, language) in ["en", "ja-JP"].into_iter().enumerate() {
            let told = told(&turn, language);
            let [one] = &told.contributing_agents[..] else { panic!("{told:?}") };
            assert_eq!(one.name, name, "{told:?}");
            assert!(one.reasoning.contains(says[at]), "{one:?}");
        }
    }
}

#[test]
fn noise_names_nobody() {
    let named = |sensed| {
        let told = told(&Turn { sensed, ..PLAIN }, "en");
        let agents = told.contributing_agents.into_iter();
        agents.map(|one| (one.name, one.influence)).collect::<Vec<_>>()
    };
    assert!(!named(&[("crisis", 0.03)]).iter().any(|(name, _)| name == "crisis"));
    assert_eq!(named(&[("crisis", 0.03), ("anima", 0.6)]), [("anima".to_owned(), 1.0)]);
}
