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
