-- A database that was put back from an older copy. Replicas that remember more ask the others to append
-- nothing new until what is missing has been handed over again; an operator can accept that it is lost.
CREATE TABLE restore_wait (
    replica bytea PRIMARY KEY,
    size bigint NOT NULL
);
CREATE TABLE restore_accepted (
    number bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    new_size bigint NOT NULL,
    old_size bigint NOT NULL
);
