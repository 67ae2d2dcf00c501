//! Whether words harm, where a recipe sets a line of its own; and the directives' floor under everything
//! that a recipe would return.

use super::interpretation::read_words;
use super::{Examined, Guard, GuardError};
use crate::engine::Engine;
use crate::matter::Matter;
use conclave_core::{Disposition, Finding, GuardAction, GuardCode, GuardKind, Phase};
use conclave_detect::Reading;
use futures_util::FutureExt;
use futures_util::future::BoxFuture;

/// From where on words harm, in hundredths, where a recipe does not say.
const TOXIC: u8 = 50;

pub(super) struct Toxicity;

impl Guard for Toxicity {
    fn kind(&self) -> GuardKind {
        GuardKind::Toxicity
    }

    fn examine<'a>(
        &'a self,
        engine: &'a Engine,
        matter: &'a Matter,
        phase: Phase,
    ) -> BoxFuture<'a, Result<Option<Examined>, GuardError>> {
        async move {
            let rule = matter.rule(GuardKind::Toxicity);
            // Replies to people have the floor's seat on their panel; results of recipes have it here.
            let is_result =
                phase == Phase::After && matter.purpose.is_recipe() && matter.model.is_some();
            if rule.is_none() && !is_result {
                return Ok(None);
            }
            let text = match phase {
                Phase::Before => matter.content.own_words(),
                Phase::After => matter.content.texts(phase).join("\n"),
            };
            let reading = read_words(engine, matter, text, phase).await?;
            let harm = harm_of(&reading);
            let line = rule.and_then(|rule| rule.threshold).unwrap_or(TOXIC);
            if !reading.floor && (rule.is_none() || harm < line) {
                return Ok(Some(Finding::passed(GuardKind::Toxicity, phase).into()));
            }
            let flags = rule.is_some_and(|rule| rule.action == GuardAction::Flag) && !reading.floor;
            let disposition = if flags { Disposition::Flagged } else { Disposition::Blocked };
            let why = format!("Harm of {harm} hundredths; the line is {line}.");
            let code = GuardCode::Toxicity;
            let finding = Finding::new(GuardKind::Toxicity, phase, disposition, code, why);
            Ok(Some(Examined { is_binding: reading.floor, ..finding.into() }))
        }
        .boxed()
    }
}

/// The harm of a text in hundredths, whichever way it was read.
#[must_use]
pub fn harm_of(reading: &Reading) -> u8 {
    let trained = reading.as_reply.map_or(0, |reply| reply.harm.hundredths());
    reading.harm.hundredths().max(trained)
}
