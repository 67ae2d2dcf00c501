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
