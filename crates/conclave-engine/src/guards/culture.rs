//! What communities say about their knowledge: it looks at everything, whoever asks.
//!
//! **Invariant:** what is sacred is decided by people, whatever a recipe or a protocol says.

use super::{Examined, Guard, GuardEffect, GuardError};
use crate::engine::Engine;
use crate::matter::{Hold, Matter, Purpose};
use conclave_core::{Disposition, Finding, GuardAction, GuardCode, GuardKind, Phase, Sensitivity};
use conclave_govern::{CulturalAsk, CulturalFinding, Issue};
use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use std::borrow::Cow;

pub(super) struct Culture;

impl Guard for Culture {
    fn kind(&self) -> GuardKind {
        GuardKind::Culture
    }

    fn examine<'a>(
        &'a self,
        engine: &'a Engine,
        matter: &'a Matter,
        phase: Phase,
    ) -> BoxFuture<'a, Result<Option<Examined>, GuardError>> {
        async move {
            // A text that is only read is put before nobody.
            if matter.purpose == Purpose::Moderations {
                return Ok(None);
            }
            let texts = matter.content.texts(phase).into_iter().map(Cow::into_owned).collect();
            if engine.governance.is_none() && !matter.purpose.is_recipe() {
                return Ok(None);
            }
            let finding = ask_protocols(engine, matter, texts).await?;
            Ok(Some(examined(matter, phase, at_least_held(finding, matter))))
        }
        .boxed()
    }
}

/// What the protocols of the tenant's communities say of texts.
pub(crate) async fn ask_protocols(
    engine: &Engine,
    matter: &Matter,
    texts: Vec<String>,
) -> Result<CulturalFinding, GuardError> {
    let context = &matter.context;
    let Some(governance) = &engine.governance else {
        return Ok(unkept_protocols(!context.affiliations.is_empty()));
    };
    let ask = CulturalAsk {
        texts,
        sensitivity: context.sensitivity,
        affiliations: context.affiliations.clone(),
        labels: context.labels.clone(),
        audience: context.audience.clone(),
        now_ms: engine.clock.now_ms(),
    };
    Ok(governance.look(&matter.tenant, ask).await?)
}

fn examined(matter: &Matter, phase: Phase, finding: CulturalFinding) -> Examined {
    let rule = matter.rule(GuardKind::Culture);
    let action = rule.map_or(GuardAction::Flag, |rule| rule.action);
    let kind = GuardKind::Culture;
    let (code, hold, waits) = match finding {
        CulturalFinding::Clear => return Finding::passed(kind, phase).into(),
        CulturalFinding::Flag { community, issues } => {
            let is_grave = matter.context.sensitivity == Sensitivity::High;
            let waits = is_grave && action == GuardAction::ElderReview;
            let communities = community.into_iter().collect();
            (GuardCode::Cultural, Hold { communities, issues, sacred: false }, waits)
        }
        CulturalFinding::Hold { community, others, issues, sacred } => {
            let communities = community.into_iter().chain(others).collect();
            let code = if sacred { GuardCode::Sacred } else { GuardCode::Cultural };
            (code, Hold { communities, issues, sacred }, true)
        }
    };
    let detail = sentences(&hold.issues);
    let disposition = match (waits, action) {
        (true, GuardAction::Block) => Disposition::Blocked,
        (true, _) if !matter.is_approved(phase, code, &hold.communities) => Disposition::Held,
        _ => Disposition::Flagged,
    };
    let finding = Finding::new(kind, phase, disposition, code, detail);
    let is_binding = hold.sacred;
    match disposition {
        Disposition::Held => {
            Examined { is_binding, ..Examined::with(finding, GuardEffect::Hold(hold)) }
        }
        _ => Examined { is_binding, ..finding.into() },
    }
}

fn unkept_protocols(is_affiliated: bool) -> CulturalFinding {
    if !is_affiliated {
        return CulturalFinding::Clear;
    }
    let detail = "A community is named, and its protocols are not kept here.".to_owned();
    let issue = Issue { code: "protocols_unknown".to_owned(), detail };
    CulturalFinding::Flag { community: None, issues: vec![issue] }
}

/// Sacred material of a recipe is held whatever the protocols say, and whether or not there are any: by
/// everybody it belongs to.
fn at_least_held(finding: CulturalFinding, matter: &Matter) -> CulturalFinding {
    let is_sacred = matter.context.sensitivity == Sensitivity::Sacred;
    let is_held = matches!(finding, CulturalFinding::Hold { .. });
    if !is_sacred || is_held || !matter.purpose.is_recipe() {
        return finding;
    }
    let (known, mut issues) = match finding {
        CulturalFinding::Flag { community, issues } => (community, issues),
        _ => (None, Vec::new()),
    };
    let detail = "The material is marked as sacred.".to_owned();
    issues.push(Issue { code: GuardCode::Sacred.as_str().to_owned(), detail });
    let mut all = known.into_iter().chain(matter.context.affiliations.iter().cloned());
    CulturalFinding::Hold { community: all.next(), others: all.collect(), issues, sacred: true }
}

fn sentences(issues: &[Issue]) -> String {
    issues.iter().map(|issue| issue.detail.as_str()).collect::<Vec<_>>().join(" ")
}
