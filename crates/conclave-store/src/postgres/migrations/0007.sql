-- Decisions under the names of the design, with the words beside them as they are kept: sealed.
CREATE VIEW response_audit AS
    SELECT a.id, a.tenant AS tenant_id, encode(a.subject, 'hex') AS user_id,
           encode(a.session, 'hex') AS session_id,
           to_timestamp(a.timestamp_ms / 1000.0) AS "timestamp",
           a.verifying_agents, a.consensus_result, a.safety_score_e4 / 10000.0 AS safety_score,
           a.action, to_timestamp(a.delivered_ms / 1000.0) AS delivery_timestamp,
           a.delivery_status, a.regeneration_attempts, a.drift_alerts,
           to_timestamp(a.data_retention_until / 1000.0) AS data_retention_until, a.anonymized,
           a.exchange_count, a.latency_ms, a.crisis, a.outcome, a.policy, a.directives,
           a.seq AS leaf_position, b.body AS sealed_words
    FROM response_audit_log a LEFT JOIN log_body b ON b.seq = a.seq;

-- What was used, by day, tenant, agent and model.
CREATE VIEW ai_usage_daily AS
    SELECT tenant AS tenant_id, (to_timestamp(created_ms / 1000.0) AT TIME ZONE 'UTC')::date AS day,
           agent_name, model, sum(requests)::bigint AS requests,
           sum(input_tokens)::bigint AS input_tokens, sum(output_tokens)::bigint AS output_tokens,
           sum(cost_microusd) / 1000000.0 AS cost_usd_estimate,
           percentile_disc(0.95) WITHIN GROUP (ORDER BY duration_ms) AS p95_duration_ms,
           coalesce(sum(requests) FILTER (WHERE safety_status = 'flagged'), 0)::bigint AS flagged,
           coalesce(sum(requests) FILTER (WHERE safety_status = 'blocked'), 0)::bigint AS blocked,
           coalesce(sum(requests) FILTER (WHERE safety_status = 'elder_review_required'), 0)::bigint
               AS elder_review_required
    FROM ai_usage_events GROUP BY 1, 2, 3, 4;

-- The fields of a policy as columns; what a policy leaves out is empty and means the operator's word.
DROP VIEW tenant_ai_policies;
CREATE VIEW tenant_ai_policies AS
    SELECT tenant_id, version, changed_ms, policy -> 'allowed_models' AS allowed_models,
           policy -> 'blocked_models' AS blocked_models,
           (policy ->> 'max_cost_per_request_usd')::numeric AS max_cost_per_request,
           (policy ->> 'daily_budget_usd')::numeric AS daily_budget_usd,
           (policy ->> 'monthly_budget_usd')::numeric AS monthly_budget_usd,
           policy -> 'require_consent_for_agents' AS require_consent_for_agents,
           (policy ->> 'auto_downgrade_enabled')::boolean AS auto_downgrade_enabled,
           (policy ->> 'downgrade_at_percent')::integer AS downgrade_at_percent,
           policy ->> 'downgrade_model' AS downgrade_model, policy -> 'rates' AS rates,
           policy -> 'modes' AS modes, policy -> 'regions' AS regions,
           (policy ->> 'retention_days')::integer AS retention_days,
           policy ->> 'audit_failure' AS audit_failure,
           policy -> 'alert_at_percent' AS alert_at_percent, policy
    FROM (SELECT tenant AS tenant_id, version, changed_ms,
                 convert_from(data, 'UTF8')::jsonb AS policy
          FROM record WHERE kind = 'policy' AND subject IS NULL) stored;

-- What a review says is sealed; how urgent it is, whose and until when, is not.
DROP VIEW elder_review_queue;
CREATE VIEW elder_review_queue AS
    SELECT id, tenant AS tenant_id, state AS status, owner AS community,
           CASE (rank - 1) % 4 WHEN 0 THEN 'low' WHEN 1 THEN 'medium' WHEN 2 THEN 'high'
               WHEN 3 THEN 'urgent' END AS priority,
           rank > 4 AS before_the_council, rank AS priority_rank,
           to_timestamp(due_ms / 1000.0) AS due_at, due_ms AS due_at_ms, changed_ms
    FROM record WHERE kind = 'review';
