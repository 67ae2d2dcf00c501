//! Whether the model is offered and permitted, for the tenant and for material as sensitive as this.

use super::{Examined, Guard, GuardError};
use crate::engine::Engine;
use crate::matter::Matter;
use conclave_core::{Disposition, Finding, GuardCode, GuardKind, Phase};
use futures_util::FutureExt;
use futures_util::future::{BoxFuture, ready};

pub(super) struct Cost;

impl Guard for Cost {
    fn kind(&self) -> GuardKind {
        GuardKind::Cost
    }

    fn examine<'a>(
        &'a self,
        engine: &'a Engine,
        matter: &'a Matter,
        phase: Phase,
    ) -> BoxFuture<'a, Result<Option<Examined>, GuardError>> {
        let examined = match &matter.model {
            Some(model) if phase == Phase::Before => Some(look(engine, matter, model).into()),
            _ => None,
        };
        ready(Ok(examined)).boxed()
    }
}

fn look(engine: &Engine, matter: &Matter, model: &str) -> Finding {
    let sensitivity = matter.context.sensitivity;
    let block = |code, why: String| {
        Finding::new(GuardKind::Cost, Phase::Before, Disposition::Blocked, code, why)
    };
    if engine.models.find(model).is_none() {
        return block(GuardCode::UnknownModel, "The model is not offered here.".to_owned());
    }
    if !matter.policy().permits(model) {
        let why = "The tenant's policy does not permit the model.".to_owned();
        return block(GuardCode::ModelNotPermitted, why);
    }
    if !engine.settings.permits(model, sensitivity) {
        let why = "The model may not see material of this sensitivity.".to_owned();
        return block(GuardCode::ModelNotPermitted, why);
    }
    let judges = if matter.is_judged_elsewhere { engine.panel.elsewhere() } else { Vec::new() };
    let unfit = judges.iter().find(|judge| !engine.settings.permits(&judge.model, sensitivity));
    if let Some(judge) = unfit {
        let why = format!(
            "The verifier's model `{}` may not see material of this sensitivity.",
            judge.model
        );
        return block(GuardCode::ModelNotPermitted, why);
    }
    match matter.content.excess_tokens() {
        Some(excess) => {
            let why = format!(
                "The input has about {} tokens, at most {} are possible.",
                excess.found, excess.limit
            );
            block(GuardCode::TooLong, why)
        }
        None => Finding::passed(GuardKind::Cost, Phase::Before),
    }
}
