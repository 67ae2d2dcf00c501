//! `ai_usage_events`: what each request used, taken from its leaf, and the rows of it in SQLite.
//!
//! **Invariant:** every request has an event, also one that was refused, blocked, abandoned or failed.
//! Refusals that were summed up are one event with their number.

use super::columns::column;
use conclave_ledger::{Kind, Leaf, Value, sha256};
use rusqlite::{Connection, OptionalExtension, Row, params};
use serde_json::{Value as Json, json};

/// From this many hundredths on an injection counts as seen.
const INJECTION_SEEN: u64 = 50;

/// One event.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct UsageColumns {
    pub(crate) id: [u8; 16],
    pub(crate) tenant: i64,
    pub(crate) subject: Option<[u8; 16]>,
    /// The recipe, or the interface: `chat`, `embeddings`, `verify`, `moderations`.
    pub(crate) agent_name: String,
    pub(crate) provider: String,
    pub(crate) model: String,
    pub(crate) input_tokens: i64,
    pub(crate) output_tokens: i64,
    pub(crate) duration_ms: i64,
    /// Absent where the first byte left only after everything was decided.
    pub(crate) time_to_first_token_ms: Option<i64>,
    pub(crate) cost_microusd: i64,
    pub(crate) safety_status: &'static str,
    pub(crate) consent_verified: Option<bool>,
    pub(crate) eval_score_e2: Option<i64>,
    pub(crate) success: bool,
    /// The outcome, `refused` or `abandoned`.
    pub(crate) status: String,
    pub(crate) error_code: Option<String>,
    /// What was seen, as a JSON list of names.
    pub(crate) governance_flags: String,
    /// The decision it belongs to, where it belongs to one.
    pub(crate) request_id: Option<[u8; 16]>,
    pub(crate) parent_request_id: Option<[u8; 16]>,
    pub(crate) created_ms: i64,
    /// How many requests it stands for.
    pub(crate) requests: i64,
    pub(crate) session: Option<[u8; 16]>,
    /// The id of the API key.
    pub(crate) key_id: Option<String>,
    /// How often a model was asked.
    pub(crate) attempts: i64,
}

fn text(public: &Value, key: &str) -> String {
    public.get(key).and_then(Value::as_str).unwrap_or_default().to_owned()
}

fn number(public: &Value, key: &str) -> Option<i64> {
    public.get(key).and_then(Value::as_u64).map(column)
}

impl UsageColumns {
    /// The event of an entry; `None` for what is no request.
    pub(crate) fn of(leaf: &Leaf) -> Option<Self> {
        let (draft, public) = (&leaf.draft, &leaf.draft.public);
        let status = match draft.kind {
            Kind::Decision => text(public, "outcome"),
            Kind::RequestRefused => "refused".to_owned(),
            Kind::RequestAbandoned => "abandoned".to_owned(),
            _ => return None,
        };
        let named = |key| Some(text(public, key)).filter(|name| !name.is_empty());
        let agent = named("recipe").or_else(|| named("agent"));
        let flag = |key| public.get(key).and_then(Value::as_bool);
        let parent = public.get("parent_request").and_then(Value::as_bytes);
        Some(Self {
            id: draft.audit.unwrap_or_else(|| made_up_id(leaf)),
            tenant: draft.tenant.cast_signed(),
            subject: draft.subject,
            agent_name: agent.unwrap_or_else(|| "chat".to_owned()),
            provider: text(public, "provider"),
            model: text(public, "model"),
            input_tokens: number(public, "tokens_in").unwrap_or(0),
            output_tokens: number(public, "tokens_out").unwrap_or(0),
            duration_ms: number(public, "latency_ms").unwrap_or(0),
            time_to_first_token_ms: number(public, "first_token_ms"),
            cost_microusd: number(public, "cost").unwrap_or(0),
            safety_status: safety_status(&status, public),
            consent_verified: flag("consent_verified"),
            eval_score_e2: public.get("eval").and_then(|eval| number(eval, "score")),
            success: matches!(&*status, "delivered" | "redacted" | "safe_completion"),
            error_code: error_code(&status, public),
            governance_flags: flags(public).to_string(),
            request_id: draft.audit,
            parent_request_id: parent.and_then(|parent| parent.try_into().ok()),
            created_ms: column(leaf.ts_ms),
            requests: number(public, "count").unwrap_or(1),
            session: draft.session,
            key_id: named("key"),
            attempts: number(public, "attempts").unwrap_or(0),
            status,
        })
    }
}

/// A name for an event without a decision: derived from the entry's, so that it comes out the same
/// when it is derived again.
fn made_up_id(leaf: &Leaf) -> [u8; 16] {
    let (epoch, n) = (leaf.id.epoch.to_be_bytes(), leaf.id.n.to_be_bytes());
    let hash = sha256(&[b"conclave.usage.v1", &leaf.id.replica, &epoch, &n]);
    let mut id = [0; 16];
    id.copy_from_slice(&hash[..16]);
    // A UUID of version 8: one of our own making.
    id[6] = (id[6] & 0x0f) | 0x80;
    id[8] = (id[8] & 0x3f) | 0x80;
    id
}

/// Every status there is.
const SAFETY: [&str; 4] = ["approved", "flagged", "blocked", "elder_review_required"];

/// What a run of a recipe says of itself, else what follows from how a turn ended.
fn safety_status(status: &str, public: &Value) -> &'static str {
    let stated = public.get("safety_status").and_then(Value::as_str);
    if let Some(stated) = stated.and_then(|name| SAFETY.into_iter().find(|one| *one == name)) {
        return stated;
    }
    let action = public.get("action").and_then(Value::as_str);
    match (status, action) {
        ("delivered", Some("flag")) | ("redacted" | "safe_completion", _) => "flagged",
        ("delivered", _) => "approved",
        ("held", _) => "elder_review_required",
        _ => "blocked",
    }
}

fn error_code(status: &str, public: &Value) -> Option<String> {
    let failure = || {
        let choices = public.get("choices").and_then(Value::as_array)?;
        let attempts = choices.first()?.get("attempts").and_then(Value::as_array)?;
        Some(text(attempts.last()?, "failure")).filter(|failure| !failure.is_empty())
    };
    match status {
        "refused" => Some(text(public, "code")),
        "blocked" => {
            let refusal = text(public, "refusal");
            Some(if refusal.is_empty() { "content_filter".to_owned() } else { refusal })
        }
        "failed" => Some(failure().unwrap_or_else(|| "failed".to_owned())),
        _ => None,
    }
}

/// What was seen, in names of a closed list and numbers of directives.
fn flags(public: &Value) -> Json {
    let is = |key| public.get(key).and_then(Value::as_bool) == Some(true);
    let injection = public.get("injection").and_then(Value::as_u64);
    let drift = public.get("drift").and_then(Value::as_str).filter(|state| *state != "green");
    let directive = public.get("directive").and_then(Value::as_u64);
    let mut flags = Vec::new();
    flags.extend(is("crisis").then(|| json!("crisis")));
    flags.extend(is("escalating").then(|| json!("escalating")));
    flags.extend(injection.filter(|seen| *seen >= INJECTION_SEEN).map(|_| json!("injection")));
    flags.extend(drift.map(|state| json!(format!("drift.{state}"))));
    flags.extend(directive.map(|number| json!(format!("directive.{number}"))));
    // Runs that say where they stand also say what each guard did, and so does everything that is no run.
    if public.get("safety_status").is_some() || public.get("recipe").is_none() {
        flags.extend(guard_flags(public));
    }
    Json::Array(flags)
}

/// Guards that did anything but let it pass, each once, such as `pii.redacted`.
fn guard_flags(public: &Value) -> Vec<Json> {
    let rows = public.get("guards").and_then(Value::as_array).unwrap_or_default();
    let mut seen = Vec::new();
    for row in rows.iter().filter_map(Value::as_array) {
        let word = |at: usize| row.get(at).and_then(Value::as_str);
        if let (Some(guard), Some(taken)) = (word(0), word(2))
            && taken != "passed"
        {
            let flag = json!(format!("{guard}.{taken}"));
            if !seen.contains(&flag) {
                seen.push(flag);
            }
        }
    }
    seen
}

/// Writes the event of an entry.
pub(super) fn insert(conn: &Connection, seq: i64, event: &UsageColumns) -> rusqlite::Result<()> {
    let sql = "INSERT INTO ai_usage_events VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11,
               ?12, ?13, ?14, ?15, ?16, ?17, ?18, ?19, ?20, ?21, ?22, ?23, ?24, ?25, ?26) ON CONFLICT DO NOTHING";
    let UsageColumns { id, tenant, subject, agent_name, provider, model, .. } = event;
    conn.prepare_cached(sql)?
        .execute(params![
            seq,
            id,
            tenant,
            subject,
            agent_name,
            provider,
            model,
            event.input_tokens,
            event.output_tokens,
            event.duration_ms,
            event.time_to_first_token_ms,
            event.cost_microusd,
            event.safety_status,
            event.consent_verified,
            event.eval_score_e2,
            event.success,
            event.status,
            event.error_code,
            event.governance_flags,
            event.request_id,
            event.parent_request_id,
            event.created_ms,
            event.requests,
            event.session,
            event.key_id,
            event.attempts,
        ])
        .map(|_| ())
}

/// Whether the event of an entry says what its leaf says.
pub(crate) fn is_derived(
    conn: &Connection,
    seq: i64,
    expected: &UsageColumns,
) -> rusqlite::Result<bool> {
    let sql = "SELECT * FROM ai_usage_events WHERE seq = ?1";
    let same = conn.prepare_cached(sql)?.query_row([seq], |row| says(row, expected)).optional()?;
    match same {
        Some(same) => Ok(same),
        // The same audit id twice: only the first has an event.
        None => {
            let sql = "SELECT 1 FROM ai_usage_events WHERE id = ?1 AND seq < ?2";
            conn.prepare_cached(sql)?.exists(params![expected.id, seq])
        }
    }
}

fn says(row: &Row<'_>, expected: &UsageColumns) -> rusqlite::Result<bool> {
    let status: String = row.get(12)?;
    let stored = UsageColumns {
        id: row.get(1)?,
        tenant: row.get(2)?,
        subject: row.get(3)?,
        agent_name: row.get(4)?,
        provider: row.get(5)?,
        model: row.get(6)?,
        input_tokens: row.get(7)?,
        output_tokens: row.get(8)?,
        duration_ms: row.get(9)?,
        time_to_first_token_ms: row.get(10)?,
        cost_microusd: row.get(11)?,
        safety_status: expected.safety_status,
        consent_verified: row.get(13)?,
        eval_score_e2: row.get(14)?,
        success: row.get(15)?,
        status: row.get(16)?,
        error_code: row.get(17)?,
        governance_flags: row.get(18)?,
        request_id: row.get(19)?,
        parent_request_id: row.get(20)?,
        created_ms: row.get(21)?,
        requests: row.get(22)?,
        session: row.get(23)?,
        key_id: row.get(24)?,
        attempts: row.get(25)?,
    };
    Ok(stored == *expected && status == expected.safety_status)
}

#[cfg(test)]
mod tests {
    use super::*;
    use conclave_ledger::{Draft, EntryId};

    fn leaf(kind: Kind, public: Value) -> Leaf {
        let id = EntryId { replica: [3; 8], epoch: 1, n: 9 };
        Leaf { id, ts_ms: 17, draft: Draft { public, ..Draft::new(kind, 3) }, commitments: vec![] }
    }

    #[test]
    fn every_end_of_a_request_has_its_status() {
        let cases = [
            ("delivered", "deliver", "approved", true, None),
            ("delivered", "flag", "flagged", true, None),
            ("redacted", "redact", "flagged", true, None),
            ("safe_completion", "deliver", "flagged", true, None),
            ("blocked", "block", "blocked", false, Some("content_filter")),
            ("held", "hold", "elder_review_required", false, None),
            ("escalated", "escalate", "blocked", false, None),
            ("failed", "deliver", "blocked", false, Some("failed")),
        ];
        for (outcome, action, safety, success, code) in cases {
            let public = Value::map([("outcome", outcome.into()), ("action", action.into())]);
            let event = UsageColumns::of(&leaf(Kind::Decision, public)).unwrap();
            assert_eq!((event.safety_status, event.success), (safety, success), "{outcome}");
            assert_eq!((&*event.status, event.error_code.as_deref()), (outcome, code));
            assert_eq!((&*event.agent_name, event.requests), ("chat", 1));
        }
    }

    #[test]
    fn a_run_says_why_it_was_blocked_where_it_stands_and_what_guards_did() {
        let row = |words: [&str; 4]| Value::Array(words.into_iter().map(Value::from).collect());
        let run = |outcome: &str, safety: &str, refusal: Option<&str>| {
            let guards = vec![
                row(["consent", "pre", "passed", ""]),
                row(["pii", "pre", "redacted", "pii"]),
                row(["pii", "post", "redacted", "pii"]),
            ];
            let public = Value::map([
                ("outcome", outcome.into()),
                ("safety_status", safety.into()),
                ("refusal", refusal.map_or(Value::Null, Value::from)),
                ("guards", Value::Array(guards)),
            ]);
            UsageColumns::of(&leaf(Kind::Decision, public)).unwrap()
        };
        let blocked = run("blocked", "blocked", Some("consent_withdrawn"));
        assert_eq!(blocked.error_code.as_deref(), Some("consent_withdrawn"));
        assert_eq!(blocked.governance_flags, r#"["pii.redacted"]"#);
        assert_eq!(run("held", "flagged", None).safety_status, "flagged", "a draft");
        let sacred = run("held", "elder_review_required", None);
        assert_eq!(sacred.safety_status, "elder_review_required");
    }

    #[test]
    fn refusals_count_and_have_a_name_of_their_own() {
        let public = Value::map([("code", "invalid_api_key".into()), ("count", 8_u64.into())]);
        let event = UsageColumns::of(&leaf(Kind::RequestRefused, public.clone())).unwrap();
        assert_eq!((event.requests, event.error_code.as_deref()), (8, Some("invalid_api_key")));
        assert_eq!((&*event.status, event.request_id), ("refused", None));
        assert_eq!(event.id[6] >> 4, 8);
        assert_eq!(UsageColumns::of(&leaf(Kind::RequestRefused, public)).unwrap().id, event.id);
        assert!(UsageColumns::of(&leaf(Kind::Delivery, Value::Null)).is_none());
    }

    #[test]
    fn flags_are_names_of_a_closed_list() {
        let public = Value::map([
            ("crisis", true.into()),
            ("escalating", true.into()),
            ("injection", 50_u64.into()),
            ("drift", "red".into()),
            ("directive", 17_u64.into()),
        ]);
        let expected = json!(["crisis", "escalating", "injection", "drift.red", "directive.17"]);
        assert_eq!(flags(&public), expected);
        assert_eq!(flags(&Value::map([("drift", "green".into())])), json!([]));
    }
}
