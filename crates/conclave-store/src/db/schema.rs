//! The tables, as migrations that only ever grow.
//!
//! **Invariant:** `log_*` is the log; everything else is derived from it and could be made again.

/// The ledger's database. `response_audit_log` is keyed by the position of the decision; its few
/// indexes are paid for by every turn.
pub(crate) const LEDGER: &[&str] = &[
    "
CREATE TABLE log_entry (
    seq INTEGER PRIMARY KEY,
    leaf BLOB NOT NULL,
    leaf_hash BLOB NOT NULL
) STRICT;
CREATE TABLE log_body (
    seq INTEGER PRIMARY KEY,
    body BLOB NOT NULL
) STRICT;
CREATE TABLE log_head (
    id INTEGER PRIMARY KEY CHECK (id = 1),
    size INTEGER NOT NULL,
    root BLOB NOT NULL,
    compact_range BLOB NOT NULL,
    ts_ms INTEGER NOT NULL
) STRICT;
CREATE TABLE log_batch (
    size INTEGER PRIMARY KEY,
    root BLOB NOT NULL
) STRICT;
CREATE TABLE log_replica (
    replica BLOB NOT NULL,
    epoch INTEGER NOT NULL,
    hwm INTEGER NOT NULL,
    PRIMARY KEY (replica, epoch)
) STRICT, WITHOUT ROWID;
CREATE TABLE log_change (
    id BLOB PRIMARY KEY,
    seq INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
CREATE TABLE response_audit_log (
    seq INTEGER PRIMARY KEY,
    id BLOB NOT NULL UNIQUE,
    tenant INTEGER NOT NULL,
    subject BLOB,
    session BLOB,
    timestamp_ms INTEGER NOT NULL,
    outcome TEXT NOT NULL,
    action TEXT NOT NULL,
    safety_score_e4 INTEGER,
    regeneration_attempts INTEGER NOT NULL,
    crisis INTEGER NOT NULL,
    scrutiny TEXT NOT NULL,
    model TEXT NOT NULL,
    latency_ms INTEGER NOT NULL,
    cost_microusd INTEGER NOT NULL,
    delivery_seq INTEGER,
    delivered_ms INTEGER,
    delivered_bytes INTEGER,
    delivery_status TEXT
) STRICT;
CREATE INDEX audit_by_tenant ON response_audit_log (tenant, timestamp_ms, outcome);
CREATE INDEX audit_by_outcome ON response_audit_log (outcome, timestamp_ms);
CREATE INDEX audit_by_subject ON response_audit_log (subject, safety_score_e4)
    WHERE subject IS NOT NULL;
CREATE INDEX audit_undelivered ON response_audit_log (seq) WHERE delivery_status IS NULL;
",
    "
CREATE INDEX audit_by_session ON response_audit_log (session, seq);
CREATE INDEX audit_latest_of_subject ON response_audit_log (subject, seq)
    WHERE subject IS NOT NULL;
",
    // Tiles of level 0 stand here once they are full; those above grow in place. A log that is
    // older than this step gets its tiles when it is opened, see `tiles::ensure`.
    "
CREATE TABLE log_tile (
    level INTEGER NOT NULL,
    idx INTEGER NOT NULL,
    hashes BLOB NOT NULL,
    PRIMARY KEY (level, idx)
) STRICT;
CREATE TABLE log_checkpoint (
    size INTEGER PRIMARY KEY,
    note TEXT NOT NULL,
    at_ms INTEGER NOT NULL
) STRICT;
CREATE TABLE log_rotation (
    seq INTEGER PRIMARY KEY,
    old_vkey TEXT NOT NULL,
    new_vkey TEXT NOT NULL
) STRICT;
",
    "
CREATE TABLE log_forgotten (
    seq INTEGER PRIMARY KEY
) STRICT;
ALTER TABLE response_audit_log ADD COLUMN anonymized INTEGER NOT NULL DEFAULT 0;
ALTER TABLE response_audit_log ADD COLUMN data_retention_until INTEGER;
",
    // A log that is older than this step gets these rows when it is opened, see `log::ensure_derived`.
    "
ALTER TABLE response_audit_log ADD COLUMN verifying_agents TEXT;
ALTER TABLE response_audit_log ADD COLUMN consensus_result TEXT;
ALTER TABLE response_audit_log ADD COLUMN drift_alerts TEXT;
ALTER TABLE response_audit_log ADD COLUMN exchange_count INTEGER;
ALTER TABLE response_audit_log ADD COLUMN policy BLOB;
ALTER TABLE response_audit_log ADD COLUMN directives BLOB;
CREATE INDEX audit_escalated ON response_audit_log (seq) WHERE action = 'escalate';
CREATE TABLE ai_usage_events (
    seq INTEGER PRIMARY KEY,
    id BLOB NOT NULL UNIQUE,
    tenant INTEGER NOT NULL,
    subject BLOB,
    agent_name TEXT NOT NULL,
    provider TEXT NOT NULL,
    model TEXT NOT NULL,
    input_tokens INTEGER NOT NULL,
    output_tokens INTEGER NOT NULL,
    duration_ms INTEGER NOT NULL,
    time_to_first_token_ms INTEGER,
    cost_microusd INTEGER NOT NULL,
    safety_status TEXT NOT NULL,
    consent_verified INTEGER,
    eval_score_e2 INTEGER,
    success INTEGER NOT NULL,
    status TEXT NOT NULL,
    error_code TEXT,
    governance_flags TEXT NOT NULL,
    request_id BLOB,
    parent_request_id BLOB,
    created_ms INTEGER NOT NULL,
    requests INTEGER NOT NULL
) STRICT;
CREATE INDEX usage_by_tenant ON ai_usage_events (tenant, created_ms);
",
    // What was used is added up by conversation and by key too; the events are derived again when the
    // log is opened.
    "
DELETE FROM ai_usage_events;
ALTER TABLE ai_usage_events ADD COLUMN session BLOB;
ALTER TABLE ai_usage_events ADD COLUMN key_id TEXT;
ALTER TABLE ai_usage_events ADD COLUMN attempts INTEGER NOT NULL DEFAULT 0;
",
    // Decisions under the names of the design, with the words beside them as they are kept: sealed.
    // And what was used, by day, tenant, agent and model.
    "
CREATE INDEX audit_by_time ON response_audit_log (timestamp_ms);
CREATE VIEW response_audit AS
    SELECT lower(substr(hex(a.id), 1, 8) || '-' || substr(hex(a.id), 9, 4) || '-' ||
                 substr(hex(a.id), 13, 4) || '-' || substr(hex(a.id), 17, 4) || '-' ||
                 substr(hex(a.id), 21)) AS id,
           a.tenant AS tenant_id, iif(a.subject IS NULL, NULL, lower(hex(a.subject))) AS user_id,
           iif(a.session IS NULL, NULL, lower(hex(a.session))) AS session_id,
           strftime('%Y-%m-%dT%H:%M:%fZ', a.timestamp_ms / 1000.0, 'unixepoch') AS timestamp,
           a.verifying_agents, a.consensus_result, a.safety_score_e4 / 10000.0 AS safety_score,
           a.action,
           strftime('%Y-%m-%dT%H:%M:%fZ', a.delivered_ms / 1000.0, 'unixepoch')
               AS delivery_timestamp,
           a.delivery_status, a.regeneration_attempts, a.drift_alerts,
           strftime('%Y-%m-%dT%H:%M:%fZ', a.data_retention_until / 1000.0, 'unixepoch')
               AS data_retention_until,
           a.anonymized, a.exchange_count, a.latency_ms, a.crisis, a.outcome, a.policy,
           a.directives, a.seq AS leaf_position, b.body AS sealed_words
    FROM response_audit_log a LEFT JOIN log_body b ON b.seq = a.seq;
CREATE VIEW ai_usage_daily AS
    SELECT tenant AS tenant_id, date(day * 86400, 'unixepoch') AS day, agent_name, model,
           sum(requests) AS requests, sum(input_tokens) AS input_tokens,
           sum(output_tokens) AS output_tokens, sum(cost_microusd) / 1000000.0 AS cost_usd_estimate,
           min(iif(share >= 0.95, duration_ms, NULL)) AS p95_duration_ms,
           sum(iif(safety_status = 'flagged', requests, 0)) AS flagged,
           sum(iif(safety_status = 'blocked', requests, 0)) AS blocked,
           sum(iif(safety_status = 'elder_review_required', requests, 0)) AS elder_review_required
    FROM (SELECT *, created_ms / 86400000 AS day,
                 cume_dist() OVER (PARTITION BY tenant, created_ms / 86400000, agent_name, model
                                   ORDER BY duration_ms) AS share
          FROM ai_usage_events)
    GROUP BY 1, 2, 3, 4;
",
    // Which process writes: the last that came.
    "
CREATE TABLE IF NOT EXISTS log_writer (
    id INTEGER PRIMARY KEY CHECK (id = 1),
    epoch INTEGER NOT NULL,
    claim BLOB NOT NULL
) STRICT;
",
];

/// The first schema with tiles and checkpoints.
pub(crate) const TILES_SINCE: i64 = 3;
/// The first schema that knows what was forgotten.
pub(crate) const FORGETS_SINCE: i64 = 4;
/// The first schema with the rows of what was used and how it was judged.
pub(crate) const USAGE_SINCE: i64 = 6;

/// The keys of people. Every key in it is wrapped, and a person is found by a keyed hash.
pub(crate) const KEYS: &[&str] = &[
    "
CREATE TABLE vault (
    id INTEGER PRIMARY KEY CHECK (id = 1),
    lookup BLOB NOT NULL,
    rotated_ms INTEGER NOT NULL,
    erased_ms INTEGER,
    legacy INTEGER NOT NULL
) STRICT;
CREATE TABLE tenant_key (
    tenant INTEGER PRIMARY KEY,
    epoch INTEGER NOT NULL,
    wrapped BLOB NOT NULL
) STRICT;
CREATE TABLE subject_key (
    id BLOB PRIMARY KEY,
    tenant INTEGER NOT NULL,
    epoch INTEGER NOT NULL,
    wrapped BLOB NOT NULL,
    name BLOB,
    lookup BLOB UNIQUE,
    day INTEGER,
    created_ms INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
CREATE INDEX key_of_day ON subject_key (tenant, day) WHERE day IS NOT NULL;
CREATE TABLE erasure (
    subject BLOB PRIMARY KEY,
    tenant INTEGER NOT NULL,
    request BLOB NOT NULL UNIQUE,
    requested_ms INTEGER NOT NULL,
    erased_ms INTEGER
) STRICT, WITHOUT ROWID;
",
    // Beside a shared database: how often its keys had been replaced when this copy was made.
    "
ALTER TABLE vault ADD COLUMN generation INTEGER NOT NULL DEFAULT 0;
",
    // Beside a shared database: keys it was given lately, for when it comes back older than that.
    "
CREATE TABLE kept_key (
    id BLOB PRIMARY KEY,
    tenant INTEGER NOT NULL,
    epoch INTEGER NOT NULL,
    wrapped BLOB NOT NULL,
    name BLOB,
    lookup BLOB,
    day INTEGER,
    created_ms INTEGER NOT NULL,
    kept_ms INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
",
];

/// The operational database: what is not part of the log and may change.
pub(crate) const OPS: &[&str] = &[
    "
CREATE TABLE api_key (
    id TEXT PRIMARY KEY,
    digest BLOB NOT NULL UNIQUE,
    tenant TEXT NOT NULL,
    role TEXT NOT NULL,
    label TEXT NOT NULL,
    created_ms INTEGER NOT NULL,
    expires_ms INTEGER,
    revoked_ms INTEGER,
    last_used_ms INTEGER
) STRICT;
CREATE TABLE outbox_entry (
    n INTEGER PRIMARY KEY AUTOINCREMENT,
    id BLOB NOT NULL UNIQUE,
    kind TEXT NOT NULL,
    tenant INTEGER NOT NULL,
    public BLOB NOT NULL,
    created_ms INTEGER NOT NULL
) STRICT;
",
    "
CREATE TABLE person (
    name TEXT PRIMARY KEY,
    tenant TEXT NOT NULL,
    role TEXT NOT NULL,
    password_hash TEXT NOT NULL,
    created_ms INTEGER NOT NULL
) STRICT;
",
    // Governed records, and what the designs call by name for people who look into the database.
    "
CREATE TABLE record (
    kind TEXT NOT NULL,
    tenant TEXT NOT NULL,
    id TEXT NOT NULL,
    version INTEGER NOT NULL,
    state TEXT NOT NULL,
    owner TEXT NOT NULL,
    rank INTEGER NOT NULL,
    due_ms INTEGER,
    changed_ms INTEGER NOT NULL,
    subject BLOB,
    data BLOB NOT NULL,
    PRIMARY KEY (kind, tenant, id)
) STRICT;
CREATE INDEX record_by_state ON record (kind, state, rank DESC, due_ms);
CREATE INDEX record_by_owner ON record (kind, owner);
CREATE VIEW tenant_ai_policies AS
    SELECT tenant AS tenant_id, version, changed_ms, CAST(data AS TEXT) AS policy
    FROM record WHERE kind = 'policy' AND subject IS NULL;
CREATE VIEW elder_review_queue AS
    SELECT id, tenant AS tenant_id, state AS status, owner AS community, rank AS priority_rank,
           due_ms AS due_at_ms, changed_ms,
           CASE WHEN subject IS NULL THEN CAST(data AS TEXT) END AS review
    FROM record WHERE kind = 'review';
",
    // The purse: accounts by scope and period, and money set aside for requests that run.
    "
CREATE TABLE purse_account (
    tenant INTEGER NOT NULL,
    scope TEXT NOT NULL,
    name TEXT NOT NULL,
    period TEXT NOT NULL,
    number INTEGER NOT NULL,
    spent INTEGER NOT NULL,
    held INTEGER NOT NULL,
    alerted INTEGER NOT NULL,
    PRIMARY KEY (tenant, period, number, scope, name)
) STRICT, WITHOUT ROWID;
CREATE TABLE purse_hold (
    id BLOB PRIMARY KEY,
    most INTEGER NOT NULL,
    lines TEXT NOT NULL,
    tenant INTEGER NOT NULL,
    made_ms INTEGER NOT NULL,
    expires_ms INTEGER NOT NULL,
    charged INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
CREATE INDEX hold_by_age ON purse_hold (made_ms);
CREATE INDEX hold_by_end ON purse_hold (expires_ms) WHERE charged = 0;
",
    // What a review says is sealed now, also where it is about nobody.
    "
DROP VIEW elder_review_queue;
CREATE VIEW elder_review_queue AS
    SELECT id, tenant AS tenant_id, state AS status, owner AS community, rank AS priority_rank,
           due_ms AS due_at_ms, changed_ms
    FROM record WHERE kind = 'review';
",
    // The fields of a policy as columns; what a policy leaves out is empty and means the operator's
    // word. What a review says is sealed; how urgent it is, whose and until when, is not.
    "
DROP VIEW tenant_ai_policies;
CREATE VIEW tenant_ai_policies AS
    SELECT tenant_id, version, changed_ms, policy -> '$.allowed_models' AS allowed_models,
           policy -> '$.blocked_models' AS blocked_models,
           policy ->> '$.max_cost_per_request_usd' AS max_cost_per_request,
           policy ->> '$.daily_budget_usd' AS daily_budget_usd,
           policy ->> '$.monthly_budget_usd' AS monthly_budget_usd,
           policy -> '$.require_consent_for_agents' AS require_consent_for_agents,
           policy ->> '$.auto_downgrade_enabled' AS auto_downgrade_enabled,
           policy ->> '$.downgrade_at_percent' AS downgrade_at_percent,
           policy ->> '$.downgrade_model' AS downgrade_model, policy -> '$.rates' AS rates,
           policy -> '$.modes' AS modes, policy -> '$.regions' AS regions,
           policy ->> '$.retention_days' AS retention_days,
           policy ->> '$.audit_failure' AS audit_failure,
           policy -> '$.alert_at_percent' AS alert_at_percent, policy
    FROM (SELECT tenant AS tenant_id, version, changed_ms, CAST(data AS TEXT) AS policy
          FROM record WHERE kind = 'policy' AND subject IS NULL);
DROP VIEW elder_review_queue;
CREATE VIEW elder_review_queue AS
    SELECT id, tenant AS tenant_id, state AS status, owner AS community,
           CASE (rank - 1) % 4 WHEN 0 THEN 'low' WHEN 1 THEN 'medium' WHEN 2 THEN 'high'
               WHEN 3 THEN 'urgent' END AS priority,
           rank > 4 AS before_the_council, rank AS priority_rank,
           strftime('%Y-%m-%dT%H:%M:%fZ', due_ms / 1000.0, 'unixepoch') AS due_at,
           due_ms AS due_at_ms, changed_ms
    FROM record WHERE kind = 'review';
",
    // Whose hands a key is in: two keys of one person are one person.
    "ALTER TABLE api_key ADD COLUMN person TEXT",
];
