//! `ai_usage_events` in PostgreSQL, and what an older log lacks of its derived rows.

use super::batch::Derivation;
use super::epoch::key_id;
use super::link::{Conn, LinkError, Param};
use super::log::{LEAF_OF_A, clean};
use crate::db::{DecisionColumns, UsageColumns};
use conclave_ledger::Leaf;
use std::collections::HashMap;
use tokio_postgres::Row;
use tokio_postgres::types::Type;
use uuid::Uuid;

/// How many entries of an older log are looked at together.
const PAGE: i64 = 1_000;

/// Writes the events of entries.
pub(super) fn write(conn: &Conn, events: &[(i64, UsageColumns)]) -> Result<(), LinkError> {
    macro_rules! column {
        (|$event:ident| $value:expr) => {
            events.iter().map(|(_, $event)| $value).collect::<Vec<_>>()
        };
    }
    let uuid = |id: &[u8; 16]| Uuid::from_bytes(*id);
    let sql = "INSERT INTO ai_usage_events
               SELECT seq, id, tenant, subject, agent_name, provider, model, input_tokens,
                      output_tokens, duration_ms, first_ms, cost, safety, consent, eval, success,
                      status, code, flags::json, request, parent, created_ms, requests, session,
                      key_id, attempts
               FROM unnest($1::bigint[], $2::uuid[], $3::bigint[], $4::bytea[], $5::text[],
                           $6::text[], $7::text[], $8::bigint[], $9::bigint[], $10::bigint[],
                           $11::bigint[], $12::bigint[], $13::text[], $14::boolean[],
                           $15::bigint[], $16::boolean[], $17::text[], $18::text[], $19::text[],
                           $20::uuid[], $21::uuid[], $22::bigint[], $23::bigint[], $24::bytea[],
                           $25::text[], $26::bigint[])
                    AS e (seq, id, tenant, subject, agent_name, provider, model, input_tokens,
                          output_tokens, duration_ms, first_ms, cost, safety, consent, eval,
                          success, status, code, flags, request, parent, created_ms, requests, session,
                          key_id, attempts)
               ON CONFLICT DO NOTHING";
    let seqs: Vec<i64> = events.iter().map(|(seq, _)| *seq).collect();
    let values: [Param<'_>; 26] = [
        (&seqs, Type::INT8_ARRAY),
        (&column!(|event| uuid(&event.id)), Type::UUID_ARRAY),
        (&column!(|event| event.tenant), Type::INT8_ARRAY),
        (&column!(|event| event.subject.as_ref().map(|key| &key[..])), Type::BYTEA_ARRAY),
        (&column!(|event| clean(&event.agent_name)), Type::TEXT_ARRAY),
        (&column!(|event| clean(&event.provider)), Type::TEXT_ARRAY),
        (&column!(|event| clean(&event.model)), Type::TEXT_ARRAY),
        (&column!(|event| event.input_tokens), Type::INT8_ARRAY),
        (&column!(|event| event.output_tokens), Type::INT8_ARRAY),
        (&column!(|event| event.duration_ms), Type::INT8_ARRAY),
        (&column!(|event| event.time_to_first_token_ms), Type::INT8_ARRAY),
        (&column!(|event| event.cost_microusd), Type::INT8_ARRAY),
        (&column!(|event| event.safety_status), Type::TEXT_ARRAY),
        (&column!(|event| event.consent_verified), Type::BOOL_ARRAY),
        (&column!(|event| event.eval_score_e2), Type::INT8_ARRAY),
        (&column!(|event| event.success), Type::BOOL_ARRAY),
        (&column!(|event| clean(&event.status)), Type::TEXT_ARRAY),
        (&column!(|event| event.error_code.as_deref().map(clean)), Type::TEXT_ARRAY),
        (&column!(|event| &event.governance_flags[..]), Type::TEXT_ARRAY),
        (&column!(|event| event.request_id.as_ref().map(uuid)), Type::UUID_ARRAY),
        (&column!(|event| event.parent_request_id.as_ref().map(uuid)), Type::UUID_ARRAY),
        (&column!(|event| event.created_ms), Type::INT8_ARRAY),
        (&column!(|event| event.requests), Type::INT8_ARRAY),
        (&column!(|event| event.session.as_ref().map(|key| &key[..])), Type::BYTEA_ARRAY),
        (&column!(|event| event.key_id.as_deref().map(clean)), Type::TEXT_ARRAY),
        (&column!(|event| event.attempts), Type::INT8_ARRAY),
    ];
    conn.execute(sql, &values).map(|_| ())
}

/// The events with these names and the positions of their entries; `expected` says which there should
/// be. One that cannot be read as an event is not there.
pub(super) fn stored(
    conn: &Conn,
    expected: &[(u64, UsageColumns)],
) -> Result<HashMap<[u8; 16], (u64, UsageColumns)>, LinkError> {
    let ids: Vec<Uuid> = expected.iter().map(|(_, event)| Uuid::from_bytes(event.id)).collect();
    let sql = "SELECT seq, id, tenant, subject, agent_name, provider, model, input_tokens,
                      output_tokens, duration_ms, time_to_first_token_ms, cost_microusd,
                      safety_status, consent_verified, eval_score_e2, success, status, error_code,
                      governance_flags::text, request_id, parent_request_id, created_ms, requests,
                      session, key_id, attempts
               FROM ai_usage_events WHERE id = ANY($1)";
    let rows = conn.query(sql, &[(&ids, Type::UUID_ARRAY)])?;
    let read = rows.iter().map(|row| {
        let event = event(row)?;
        Ok((event.id, (row.try_get::<_, i64>(0)?.cast_unsigned(), event)))
    });
    read.collect()
}

fn event(row: &Row) -> Result<UsageColumns, LinkError> {
    let uuid = |at| -> Result<Option<[u8; 16]>, LinkError> {
        Ok(row.try_get::<_, Option<Uuid>>(at)?.map(Uuid::into_bytes))
    };
    let subject: Option<&[u8]> = row.try_get(3)?;
    let session: Option<&[u8]> = row.try_get(23)?;
    let safety: &str = row.try_get(12)?;
    let known = ["approved", "flagged", "blocked", "elder_review_required"];
    Ok(UsageColumns {
        id: row.try_get::<_, Uuid>(1)?.into_bytes(),
        tenant: row.try_get(2)?,
        subject: subject.map(|_| key_id(row, 3)).transpose()?,
        agent_name: row.try_get(4)?,
        provider: row.try_get(5)?,
        model: row.try_get(6)?,
        input_tokens: row.try_get(7)?,
        output_tokens: row.try_get(8)?,
        duration_ms: row.try_get(9)?,
        time_to_first_token_ms: row.try_get(10)?,
        cost_microusd: row.try_get(11)?,
        safety_status: known.into_iter().find(|name| *name == safety).unwrap_or(""),
        consent_verified: row.try_get(13)?,
        eval_score_e2: row.try_get(14)?,
        success: row.try_get(15)?,
        status: row.try_get(16)?,
        error_code: row.try_get(17)?,
        governance_flags: row.try_get(18)?,
        request_id: uuid(19)?,
        parent_request_id: uuid(20)?,
        created_ms: row.try_get(21)?,
        requests: row.try_get(22)?,
        session: session.map(|_| key_id(row, 23)).transpose()?,
        key_id: row.try_get(24)?,
        attempts: row.try_get(25)?,
    })
}

/// What a step of the schema derives again.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Lacking {
    /// How decisions were judged.
    Judgements,
    /// What was used.
    Events,
}

/// Fills what a log from before some columns lacks, within the transaction that makes them.
pub(super) fn fill(conn: &Conn, lacking: Lacking) -> Result<(), LinkError> {
    let mut from = 0_i64;
    loop {
        let sql = format!(
            "SELECT a.seq, {LEAF_OF_A} FROM generate_series($1::bigint, $1 + $2 - 1) AS a (seq)
             WHERE a.seq < (SELECT size FROM log_head) ORDER BY a.seq"
        );
        let rows = conn.query(&sql, &[(&from, Type::INT8), (&PAGE, Type::INT8)])?;
        if rows.is_empty() {
            return Ok(());
        }
        let mut derived = Derivation::default();
        for row in &rows {
            let leaf: Option<&[u8]> = row.try_get(1)?;
            if let Some(leaf) = leaf.and_then(|leaf| Leaf::decode(leaf).ok()) {
                derived.add(row.try_get(0)?, &leaf);
            }
        }
        let judged = (lacking == Lacking::Judgements).then_some(&derived.decisions);
        for row in judged.into_iter().flatten() {
            fill_decision(conn, row.seq, &row.decision)?;
        }
        if lacking == Lacking::Events && !derived.usage.is_empty() {
            write(conn, &derived.usage)?;
        }
        from += PAGE;
    }
}

fn fill_decision(conn: &Conn, seq: i64, decision: &DecisionColumns) -> Result<(), LinkError> {
    let judged = &decision.judged;
    let sql = "UPDATE response_audit_log SET verifying_agents = $2::text::json,
                   consensus_result = $3::text::json, drift_alerts = $4::text::json,
                   exchange_count = $5, policy = $6, directives = $7
               WHERE seq = $1";
    let values: [Param<'_>; 7] = [
        (&seq, Type::INT8),
        (&judged.verifying_agents, Type::TEXT),
        (&judged.consensus_result, Type::TEXT),
        (&judged.drift_alerts, Type::TEXT),
        (&judged.exchange_count, Type::INT8),
        (&judged.policy.as_slice(), Type::BYTEA),
        (&judged.directives.as_slice(), Type::BYTEA),
    ];
    conn.execute(sql, &values).map(|_| ())
}
