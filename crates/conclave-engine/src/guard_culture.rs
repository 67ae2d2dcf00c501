//! The guard of culture in a run: it looks in every recipe, whether or not the recipe names it.
//!
//! **Invariant:** what is sacred is decided by people, whatever a recipe or a protocol says.

use crate::engine::Engine;
use crate::guards::{answer, looked_at};
use crate::running::Running;
use conclave_core::Sensitivity;
use conclave_govern::{CulturalAsk, CulturalFinding, Issue, community_id};
use conclave_recipes::{Guard, GuardAction, GuardOutcome, Phase, Taken};

impl Engine {
    pub(crate) async fn guard_culture(&self, run: &mut Running, phase: Phase) {
        let rule = run.recipe.guard(Guard::Cultural);
        let action = rule.map_or(GuardAction::Flag, |rule| rule.action);
        let at = (Guard::Cultural, phase);
        let sensitivity = sensitivity_of(run);
        let finding = self.finding(run, phase, sensitivity).await;
        let finding = finding.map(|finding| at_least_held(finding, sensitivity, run));
        let (code, communities, issues, holds) = match finding {
            Err(why) => return run.found(at, Taken::Failed, "guard_failed", why),
            Ok(CulturalFinding::Clear) => return run.passed(Guard::Cultural, phase),
            Ok(CulturalFinding::Flag { community, issues }) => {
                let grave = sensitivity == Sensitivity::High && action == GuardAction::ElderReview;
                ("cultural", Vec::from_iter(community), issues, grave)
            }
            Ok(CulturalFinding::Hold { community, others, issues, sacred }) => {
                run.sacred |= sacred;
                let communities = community.into_iter().chain(others).collect();
                (if sacred { "sacred" } else { "cultural" }, communities, issues, true)
            }
        };
        let taken = match (holds, action) {
            (true, GuardAction::Block) => Taken::Blocked,
            (true, _) if !run.is_agreed(phase, code, &communities) => Taken::Held,
            _ => Taken::Flagged,
        };
        if taken == Taken::Held {
            run.belongs_to(communities);
        }
        run.found(at, taken, code, sentences(&issues));
    }

    async fn finding(
        &self,
        run: &Running,
        phase: Phase,
        sensitivity: Sensitivity,
    ) -> Result<CulturalFinding, String> {
        let context = &run.context;
        let Some(governance) = &self.governed.governance else {
            return Ok(unasked(!context.cultural_affiliations.is_empty()));
        };
        let ask = CulturalAsk {
            texts: looked_at(run, phase),
            sensitivity,
            affiliations: context.cultural_affiliations.clone(),
            labels: context.labels.clone(),
            audience: context.audience.clone(),
            now_ms: self.clock.now_ms(),
        };
        // `async`, so that a panic while the future is being made is caught as well.
        answer(async { governance.look(&run.tenant, ask).await }).await
    }

    /// Whether somebody could decide what waits. What nobody can decide is refused at once, not held for
    /// ever.
    pub(crate) async fn is_decidable(&self, run: &Running) -> bool {
        let Some(governance) = &self.governed.governance else { return false };
        // What is sacred and belongs to nobody known is no stranger's to decide.
        if run.sacred && run.communities.is_empty() && run.outcomes.iter().any(is_held_by_culture) {
            return false;
        }
        for community in &run.communities {
            let known = answer(async { governance.has_elders(&run.tenant, community).await }).await;
            match known {
                Ok(true) => {}
                Ok(false) => return false,
                Err(why) => {
                    tracing::error!(run = %run.id, %why, "elders could not be looked up");
                    return false;
                }
            }
        }
        true
    }
}

impl Running {
    /// Notes whose elders must say yes.
    fn belongs_to(&mut self, communities: Vec<String>) {
        for community in communities {
            let id = community_id(&community);
            if !self.communities.iter().any(|known| community_id(known) == id) {
                self.communities.push(community);
            }
        }
    }
}

fn is_held_by_culture(outcome: &GuardOutcome) -> bool {
    outcome.guard == Guard::Cultural && outcome.taken == Taken::Held
}

/// A marked passage is as sacred as the whole.
fn sensitivity_of(run: &Running) -> Sensitivity {
    let marked = run.transcripts.iter().flat_map(|one| &one.segments).any(|one| one.sacred);
    if marked { Sensitivity::Sacred } else { run.context.sensitivity_level }
}

fn unasked(affiliated: bool) -> CulturalFinding {
    if !affiliated {
        return CulturalFinding::Clear;
    }
    let detail = "A community is named, and its protocols are not kept here.".to_owned();
    let issue = Issue { code: "protocols_unknown".to_owned(), detail };
    CulturalFinding::Flag { community: None, issues: vec![issue] }
}

/// Sacred material is held whatever the protocols say, and whether or not there are any: by everybody it
/// belongs to.
fn at_least_held(
    finding: CulturalFinding,
    sensitivity: Sensitivity,
    run: &Running,
) -> CulturalFinding {
    if sensitivity != Sensitivity::Sacred || matches!(finding, CulturalFinding::Hold { .. }) {
        return finding;
    }
    let (known, mut issues) = match finding {
        CulturalFinding::Flag { community, issues } => (community, issues),
        _ => (None, Vec::new()),
    };
    let detail = "The material is marked as sacred.".to_owned();
    issues.push(Issue { code: "sacred".to_owned(), detail });
    let mut all = known.into_iter().chain(run.context.cultural_affiliations.iter().cloned());
    CulturalFinding::Hold { community: all.next(), others: all.collect(), issues, sacred: true }
}

pub(crate) fn sentences(issues: &[Issue]) -> String {
    issues.iter().map(|issue| issue.detail.as_str()).collect::<Vec<_>>().join(" ")
}
