-- The purse: accounts by scope and period, and money set aside for requests that run.
CREATE TABLE purse_account (
    tenant bigint NOT NULL,
    scope text NOT NULL,
    name text NOT NULL,
    period text NOT NULL,
    number bigint NOT NULL,
    spent bigint NOT NULL,
    held bigint NOT NULL,
    alerted smallint NOT NULL,
    PRIMARY KEY (tenant, period, number, scope, name)
) WITH (fillfactor = 50);
CREATE TABLE purse_hold (
    id bytea PRIMARY KEY,
    most bigint NOT NULL,
    lines text NOT NULL,
    tenant bigint NOT NULL,
    made_ms bigint NOT NULL,
    expires_ms bigint NOT NULL,
    charged boolean NOT NULL
);
CREATE INDEX hold_by_age ON purse_hold (made_ms);
CREATE INDEX hold_by_end ON purse_hold (expires_ms) WHERE NOT charged;
