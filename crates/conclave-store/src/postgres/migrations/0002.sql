-- Which rotation of the keys that wrap others is in force. Whoever uses keys of another one is told.
ALTER TABLE vault ADD COLUMN generation bigint NOT NULL DEFAULT 0;

-- The new root key, wrapped by the one before, for replicas that still have that one.
CREATE TABLE root_handover (
    generation bigint PRIMARY KEY,
    wrapped bytea NOT NULL,
    made timestamptz NOT NULL DEFAULT clock_timestamp()
);
-- Which root key each replica is known to have.
CREATE TABLE root_holder (
    replica bytea PRIMARY KEY,
    generation bigint NOT NULL
);

-- Keys of people of whom nothing is left to open. One is deleted when every replica has let go of it
-- and said so, and nobody has asked for it since.
CREATE TABLE idle_key (
    id bytea PRIMARY KEY,
    n bigint GENERATED ALWAYS AS IDENTITY UNIQUE,
    tenant bigint NOT NULL,
    marked_ms bigint NOT NULL
);
ALTER TABLE replica_lease ADD COLUMN idle_seen bigint NOT NULL DEFAULT 0;

-- How a decision was judged, without words. Those stand in `log_body`.
ALTER TABLE response_audit_log
    ADD COLUMN verifying_agents json,
    ADD COLUMN consensus_result json,
    ADD COLUMN drift_alerts json,
    ADD COLUMN exchange_count bigint,
    ADD COLUMN policy bytea,
    ADD COLUMN directives bytea;
CREATE INDEX audit_by_score ON response_audit_log (subject, safety_score_e4)
    WHERE subject IS NOT NULL;

-- What each request used, also a refused, blocked or failed one. Derived from the log.
CREATE TABLE ai_usage_events (
    seq bigint PRIMARY KEY,
    id uuid NOT NULL UNIQUE,
    tenant bigint NOT NULL,
    subject bytea,
    agent_name text NOT NULL,
    provider text NOT NULL,
    model text NOT NULL,
    input_tokens bigint NOT NULL,
    output_tokens bigint NOT NULL,
    duration_ms bigint NOT NULL,
    time_to_first_token_ms bigint,
    cost_microusd bigint NOT NULL,
    safety_status text NOT NULL,
    consent_verified boolean,
    eval_score_e2 bigint,
    success boolean NOT NULL,
    status text NOT NULL,
    error_code text,
    governance_flags json NOT NULL,
    request_id uuid,
    parent_request_id uuid,
    created_ms bigint NOT NULL,
    requests bigint NOT NULL
);
CREATE INDEX usage_by_tenant ON ai_usage_events (tenant, created_ms);
