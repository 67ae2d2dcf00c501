-- Which process writes under a name: the last that came. One that came earlier, from a directory that
-- looks the same, has lost the right to write.
ALTER TABLE replica_lease ADD COLUMN IF NOT EXISTS writer bigint NOT NULL DEFAULT 0;
ALTER TABLE replica_lease ADD COLUMN IF NOT EXISTS claim bytea NOT NULL DEFAULT '';
