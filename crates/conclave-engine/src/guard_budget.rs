//! The last guard of a run: whether the money is there, set aside before anything is spent.

use crate::engine::Engine;
use crate::governance::{GovernError, Purse, PurseError};
use crate::guards::answer;
use crate::running::Running;
use conclave_core::{MicroUsd, Usage};
use conclave_govern::Size;
use conclave_recipes::{Guard, GuardAction, Phase, Taken, Work};

/// What a prompt has besides what was given, in tokens.
const PROMPT_TOKENS: u64 = 8_192;

/// The most that one call for a run reads and writes: a token for each byte.
pub(crate) fn at_most(run: &Running) -> Usage {
    let said = run.transcripts.iter().flat_map(|one| &one.segments).map(|one| one.text.len());
    let given = said.sum::<usize>() + run.input.to_string().len();
    Usage {
        input_tokens: u64::try_from(given).unwrap_or(u64::MAX).saturating_add(PROMPT_TOKENS),
        output_tokens: u64::from(run.recipe.limits.output_tokens_max),
    }
}

/// Why no money was set aside.
enum Short {
    Exceeded(String),
    Failed(String),
}

impl Engine {
    /// Sets money aside for everything the run may cost; where that is too much, for a cheaper model if the
    /// recipe says so.
    pub(crate) async fn guard_budget(&self, run: &mut Running) {
        let rule = run.recipe.guard(Guard::Budget).cloned();
        let Some(purse) = self.governed.purse.clone() else {
            if rule.is_some() {
                run.found(
                    (Guard::Budget, Phase::Pre),
                    Taken::Flagged,
                    "no_purse",
                    "No budget is kept.",
                );
            }
            return;
        };
        if run.recipe.work != Work::Model {
            return;
        }
        let at = (Guard::Budget, Phase::Pre);
        let most = self.most(run, &run.model);
        match self.set_aside_for_run(&*purse, run, most).await {
            Ok(()) => run.passed(Guard::Budget, Phase::Pre),
            Err(Short::Failed(why)) => run.found(at, Taken::Failed, "guard_failed", why),
            Err(Short::Exceeded(why)) => {
                let downgrades = rule.is_some_and(|rule| rule.action == GuardAction::Downgrade);
                let cheaper = if downgrades { self.cheaper_for_run(run, most) } else { None };
                let Some((model, less)) = cheaper else {
                    return run.found(at, Taken::Blocked, "insufficient_quota", why);
                };
                match self.set_aside_for_run(&*purse, run, less).await {
                    Ok(()) => {
                        run.model = model;
                        run.downgraded = true;
                        run.found(at, Taken::Downgraded, "downgraded", why);
                    }
                    Err(Short::Failed(why)) => run.found(at, Taken::Failed, "guard_failed", why),
                    Err(Short::Exceeded(why)) => {
                        run.found(at, Taken::Blocked, "insufficient_quota", why);
                    }
                }
            }
        }
    }

    /// The recipe's other model, if it is permitted and costs less.
    fn cheaper_for_run(&self, run: &Running, most: MicroUsd) -> Option<(String, MicroUsd)> {
        let model = self.workshop.model(run.recipe.models.fallback?).to_owned();
        let sensitivity = run.context.sensitivity_level;
        self.models.find(&model)?;
        let less = self.most(run, &model);
        (self.workshop.permits(&model, sensitivity) && less < most).then_some((model, less))
    }

    /// The most that a run can cost with this model: every attempt as long as can be, also by the model
    /// that stands in, and what judging the result can cost.
    fn most(&self, run: &Running, model: &str) -> MicroUsd {
        let usage = at_most(run);
        let other = run.recipe.models.fallback.map(|class| self.workshop.model(class));
        let asked = std::iter::once(model).chain(other).filter_map(|name| self.models.find(name));
        let once = asked.map(|offered| offered.cost(usage).0).max().unwrap_or(0);
        let models = once.saturating_mul(u64::from(crate::run_model::ATTEMPTS_MAX));
        let size = Size {
            prompt_tokens: usage.input_tokens,
            output_tokens: usage.output_tokens,
            choices: 1,
            attempts: 1,
        };
        let judging = self.steward.as_ref().map(|steward| steward.judging(&size));
        MicroUsd(models).saturating_add(judging.unwrap_or(MicroUsd(0)))
    }

    /// Why no money was set aside; whoever is to be told of the first refusal is.
    fn short(&self, run: &Running, error: PurseError) -> Short {
        let why = error.to_string();
        let PurseError::Exceeded { crossing, .. } = error else { return Short::Failed(why) };
        crossing.iter().for_each(|crossing| self.note_crossing(&run.tenant, crossing));
        Short::Exceeded(why)
    }

    async fn set_aside_for_run(
        &self,
        purse: &dyn Purse,
        run: &mut Running,
        most: MicroUsd,
    ) -> Result<(), Short> {
        let ask = conclave_govern::Reserve {
            id: run.id.0.into_bytes(),
            scopes: conclave_govern::Scopes {
                tenant: run.tenant.clone(),
                key: run.key.as_ref().map(|key| key.as_str().to_owned()),
                user: run.who.subject.map(hex::encode),
                session: None,
                recipe: Some(run.recipe.name.clone()),
            },
            most,
            now_ms: self.clock.now_ms(),
        };
        let asked = async { Ok::<_, GovernError>(purse.reserve(ask).await) };
        match answer(asked).await {
            Ok(Ok(())) => {
                run.reserved = Some(most);
                Ok(())
            }
            Ok(Err(error)) => Err(self.short(run, error)),
            Err(why) => Err(Short::Failed(why)),
        }
    }
}
