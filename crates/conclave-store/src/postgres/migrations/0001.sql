CREATE TABLE conclave_schema (
    id smallint PRIMARY KEY CHECK (id = 1),
    version integer NOT NULL
);

-- The log. A bundle is one batch: n leaves one after the other, where each ends, their hashes, and
-- the root of the tree after the last. One row for a batch is what makes the commit cheap.
CREATE TABLE log_bundle (
    first bigint PRIMARY KEY,
    n integer NOT NULL CHECK (n > 0),
    root bytea NOT NULL,
    ends integer[] NOT NULL,
    hashes bytea NOT NULL,
    leaves bytea NOT NULL
);
-- Uncompressed, so that one leaf can be cut out without reading the rest.
ALTER TABLE log_bundle ALTER COLUMN leaves SET STORAGE EXTERNAL;
ALTER TABLE log_bundle ALTER COLUMN hashes SET STORAGE EXTERNAL;

-- Words stand in rows of their own, so that one person's can be taken out.
CREATE TABLE log_body (
    seq bigint PRIMARY KEY,
    body bytea NOT NULL
);
ALTER TABLE log_body ALTER COLUMN body SET STORAGE EXTERNAL;
ALTER TABLE log_body SET (toast_tuple_target = 8160);

CREATE TABLE log_head (
    id smallint PRIMARY KEY CHECK (id = 1),
    size bigint NOT NULL,
    root bytea NOT NULL,
    compact_range bytea NOT NULL,
    ts_ms bigint NOT NULL,
    edge bytea NOT NULL
) WITH (fillfactor = 10);
ALTER TABLE log_head ALTER COLUMN edge SET STORAGE EXTERNAL;

-- Tiles of the tree, once they are full; those that are not stand in the head, as its edge.
CREATE TABLE log_tile (
    level smallint NOT NULL,
    idx bigint NOT NULL,
    hashes bytea NOT NULL,
    PRIMARY KEY (level, idx)
);
ALTER TABLE log_tile ALTER COLUMN hashes SET STORAGE EXTERNAL;

CREATE TABLE log_checkpoint (
    size bigint PRIMARY KEY,
    note text NOT NULL,
    at_ms bigint NOT NULL
);

CREATE TABLE log_rotation (
    seq bigint PRIMARY KEY,
    old_vkey text NOT NULL,
    new_vkey text NOT NULL
);

CREATE TABLE log_replica (
    replica bytea NOT NULL,
    epoch bigint NOT NULL,
    hwm bigint NOT NULL,
    PRIMARY KEY (replica, epoch)
) WITH (fillfactor = 10);

CREATE TABLE log_change (
    id bytea PRIMARY KEY,
    seq bigint NOT NULL
);

-- Entries that say which words were deleted.
CREATE TABLE log_forgotten (
    seq bigint PRIMARY KEY
);

CREATE FUNCTION conclave_append_only() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    RAISE EXCEPTION 'the ledger is append-only: % of % is refused', TG_OP, TG_TABLE_NAME
        USING ERRCODE = 'insufficient_privilege';
END $$;

CREATE FUNCTION conclave_head_only_grows() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF NEW.size < OLD.size THEN
        RAISE EXCEPTION 'the ledger is append-only: its head cannot go back from % to %',
            OLD.size, NEW.size USING ERRCODE = 'insufficient_privilege';
    END IF;
    RETURN NEW;
END $$;

CREATE TRIGGER append_only BEFORE UPDATE OR DELETE OR TRUNCATE ON log_bundle
    FOR EACH STATEMENT EXECUTE FUNCTION conclave_append_only();
CREATE TRIGGER append_only BEFORE UPDATE OR DELETE OR TRUNCATE ON log_tile
    FOR EACH STATEMENT EXECUTE FUNCTION conclave_append_only();
CREATE TRIGGER append_only BEFORE UPDATE OR DELETE OR TRUNCATE ON log_checkpoint
    FOR EACH STATEMENT EXECUTE FUNCTION conclave_append_only();
CREATE TRIGGER append_only BEFORE UPDATE OR TRUNCATE ON log_body
    FOR EACH STATEMENT EXECUTE FUNCTION conclave_append_only();
CREATE TRIGGER append_only BEFORE DELETE OR TRUNCATE ON log_head
    FOR EACH STATEMENT EXECUTE FUNCTION conclave_append_only();
CREATE TRIGGER append_only BEFORE DELETE OR TRUNCATE ON log_replica
    FOR EACH STATEMENT EXECUTE FUNCTION conclave_append_only();
CREATE TRIGGER only_grows BEFORE UPDATE ON log_head
    FOR EACH ROW EXECUTE FUNCTION conclave_head_only_grows();

-- Derived from the log, for queries.
CREATE TABLE response_audit_log (
    seq bigint PRIMARY KEY,
    id uuid NOT NULL UNIQUE,
    replica bytea NOT NULL,
    tenant bigint NOT NULL,
    subject bytea,
    session bytea,
    timestamp_ms bigint NOT NULL,
    outcome text NOT NULL,
    action text NOT NULL,
    safety_score_e4 bigint,
    regeneration_attempts bigint NOT NULL,
    crisis boolean NOT NULL,
    scrutiny text NOT NULL,
    model text NOT NULL,
    latency_ms bigint NOT NULL,
    cost_microusd bigint NOT NULL,
    delivery_seq bigint,
    delivered_ms bigint,
    delivered_bytes bigint,
    delivery_status text,
    anonymized boolean NOT NULL DEFAULT false,
    data_retention_until bigint
);
CREATE INDEX audit_by_tenant ON response_audit_log (tenant, seq);
CREATE INDEX audit_by_outcome ON response_audit_log (outcome, seq);
CREATE INDEX audit_by_session ON response_audit_log (session, seq) WHERE session IS NOT NULL;
CREATE INDEX audit_by_subject ON response_audit_log (subject, seq) WHERE subject IS NOT NULL;
CREATE INDEX audit_escalated ON response_audit_log (seq) WHERE action = 'escalate';
CREATE INDEX audit_undelivered ON response_audit_log (replica, seq) WHERE delivery_status IS NULL;
CREATE INDEX audit_kept ON response_audit_log (tenant, timestamp_ms) WHERE NOT anonymized;
CREATE INDEX audit_by_time ON response_audit_log USING brin (timestamp_ms) WITH (pages_per_range = 16);

-- Who writes under which name, and until when nobody else may.
CREATE TABLE replica_lease (
    replica bytea PRIMARY KEY,
    holder bytea NOT NULL,
    until timestamptz NOT NULL
) WITH (fillfactor = 10);

-- What all replicas of one database must agree on.
CREATE TABLE shared_fact (
    name text PRIMARY KEY,
    value bytea NOT NULL
);

-- The keys of people. Every key is wrapped, and a person is found by a keyed hash; whoever was met
-- by two replicas while the database was away has two keys under one hash.
CREATE TABLE vault (
    id smallint PRIMARY KEY CHECK (id = 1),
    lookup bytea NOT NULL,
    rotated_ms bigint NOT NULL,
    erased_ms bigint,
    legacy boolean NOT NULL
);
CREATE TABLE tenant_key (
    tenant bigint PRIMARY KEY,
    epoch bigint NOT NULL,
    wrapped bytea NOT NULL
);
CREATE TABLE subject_key (
    id bytea PRIMARY KEY,
    tenant bigint NOT NULL,
    epoch bigint NOT NULL,
    wrapped bytea NOT NULL,
    name bytea,
    lookup bytea,
    day bigint,
    created_ms bigint NOT NULL
);
CREATE INDEX key_by_lookup ON subject_key (lookup) WHERE lookup IS NOT NULL;
CREATE INDEX key_of_day ON subject_key (tenant, day) WHERE day IS NOT NULL;
CREATE TABLE erasure (
    n bigint GENERATED ALWAYS AS IDENTITY UNIQUE,
    subject bytea PRIMARY KEY,
    tenant bigint NOT NULL,
    request bytea NOT NULL UNIQUE,
    requested_ms bigint NOT NULL,
    erased_ms bigint
);

-- Operational: may change.
CREATE TABLE api_key (
    id text PRIMARY KEY,
    digest bytea NOT NULL UNIQUE,
    tenant text NOT NULL,
    role text NOT NULL,
    label text NOT NULL,
    created_ms bigint NOT NULL,
    expires_ms bigint,
    revoked_ms bigint,
    last_used_ms bigint
);
CREATE TABLE person (
    name text PRIMARY KEY,
    tenant text NOT NULL,
    role text NOT NULL,
    password_hash text NOT NULL,
    created_ms bigint NOT NULL
);
CREATE TABLE outbox_entry (
    n bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    id bytea NOT NULL UNIQUE,
    kind text NOT NULL,
    tenant bigint NOT NULL,
    public bytea NOT NULL,
    created_ms bigint NOT NULL,
    claimed_by bytea
);

-- Tells every replica that keys or people have changed, whoever changed them.
CREATE TABLE book_version (
    id smallint PRIMARY KEY CHECK (id = 1),
    version bigint NOT NULL
);
INSERT INTO book_version VALUES (1, 1);
CREATE FUNCTION conclave_book_changed() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    UPDATE book_version SET version = version + 1;
    RETURN NULL;
END $$;
CREATE TRIGGER changed AFTER INSERT OR DELETE OR TRUNCATE
    OR UPDATE OF id, digest, tenant, role, label, expires_ms, revoked_ms ON api_key
    FOR EACH STATEMENT EXECUTE FUNCTION conclave_book_changed();
CREATE TRIGGER changed AFTER INSERT OR DELETE OR UPDATE OR TRUNCATE ON person
    FOR EACH STATEMENT EXECUTE FUNCTION conclave_book_changed();
