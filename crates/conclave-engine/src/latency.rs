//! Telling people that a recipe has become slow: an entry of the ledger, a line in the log, an event for
//! webhooks.

use crate::engine::Engine;
use crate::running::Running;
use conclave_ledger::{Body, Draft, Kind, Value as Public};
use conclave_ports::{Announcement, EventKind};
use serde_json::json;

impl Engine {
    /// Notes how a run went, and tells its tenant where the latest runs miss the objective.
    pub(crate) fn note_run(&self, run: &Running, duration_ms: u64, failed: bool) {
        let (tenant, recipe) = (run.who.tenant, run.recipe.name.as_str());
        self.workshop.note(recipe, duration_ms, failed);
        let limits = run.recipe.thresholds(run.context.sensitivity_level);
        let (objective_ms, now_ms) = (limits.p95_ms, self.clock.now_ms());
        let slow = self.workshop.too_slow((tenant, recipe), objective_ms, now_ms);
        let Some(p95_ms) = slow else { return };
        tracing::warn!(
            recipe,
            p95_ms,
            objective_ms,
            "the latest runs take longer than they should"
        );
        let draft = Draft {
            policy: self.settings.policy,
            directives: self.settings.directives,
            build: self.settings.build.clone(),
            public: Public::map([
                ("recipe", Public::from(recipe)),
                ("p95_ms", Public::Uint(p95_ms)),
                ("objective_ms", Public::Uint(objective_ms)),
            ]),
            ..Draft::new(Kind::Other("latency.alert".to_owned()), tenant)
        };
        self.ledger.append_soon(draft, Body::empty());
        let Some(governance) = self.governed.governance.clone() else { return };
        let data = json!({"recipe": recipe, "p95_ms": p95_ms, "objective_ms": objective_ms});
        let (tenant, kind) = (run.tenant.clone(), EventKind::LatencyAlert);
        tokio::spawn(async move {
            if let Err(error) = governance.announce(&tenant, Announcement { kind, data }).await {
                tracing::error!(%error, "nobody could be told that a recipe is slow");
            }
        });
    }
}
