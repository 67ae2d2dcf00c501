-- Governed records: policies, consents, protocols, reviews and the like. Operational: they may change,
-- and every change that matters is an entry of the log.
CREATE TABLE record (
    kind text NOT NULL,
    tenant text NOT NULL,
    id text NOT NULL,
    version bigint NOT NULL,
    state text NOT NULL,
    owner text NOT NULL,
    rank bigint NOT NULL,
    due_ms bigint,
    changed_ms bigint NOT NULL,
    subject bytea,
    data bytea NOT NULL,
    PRIMARY KEY (kind, tenant, id)
);
CREATE INDEX record_by_state ON record (kind, state, rank DESC, due_ms);
CREATE INDEX record_by_owner ON record (kind, owner);

-- What the designs call by name, for people who look into the database.
CREATE VIEW tenant_ai_policies AS
    SELECT tenant AS tenant_id, version, changed_ms, convert_from(data, 'UTF8')::jsonb AS policy
    FROM record WHERE kind = 'policy' AND subject IS NULL;
CREATE VIEW elder_review_queue AS
    SELECT id, tenant AS tenant_id, state AS status, owner AS community, rank AS priority_rank,
           due_ms AS due_at_ms, changed_ms,
           CASE WHEN subject IS NULL THEN convert_from(data, 'UTF8')::jsonb END AS review
    FROM record WHERE kind = 'review';
