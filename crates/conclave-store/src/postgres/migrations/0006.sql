-- What was used is added up by conversation and by key too. The events are derived again: see `usage::fill`.
DELETE FROM ai_usage_events;
ALTER TABLE ai_usage_events ADD COLUMN session bytea;
ALTER TABLE ai_usage_events ADD COLUMN key_id text;
ALTER TABLE ai_usage_events ADD COLUMN attempts bigint NOT NULL DEFAULT 0;

-- What a review says is sealed now, also where it is about nobody.
DROP VIEW elder_review_queue;
CREATE VIEW elder_review_queue AS
    SELECT id, tenant AS tenant_id, state AS status, owner AS community, rank AS priority_rank,
           due_ms AS due_at_ms, changed_ms
    FROM record WHERE kind = 'review';
