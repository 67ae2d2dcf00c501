//! The panel on what a recipe would say to a person: the same verifiers, bars and arithmetic as for any reply.

use crate::engine::Engine;
use crate::execute::spoken;
use crate::off_thread;
use crate::running::{Running, texts};
use crate::unread::{Patience, Unread};
use conclave_core::{
    Candidate, Message, MicroUsd, Mode, PanelRun, Role, Scrutiny, Sensitivity, TurnContext, decide,
};
use conclave_recipes::{Address, Phase};
use serde_json::Value;
use std::sync::Arc;

impl Engine {
    /// Has the verifiers vote on words that speak to somebody; nothing is asked where there are none.
    ///
    /// # Errors
    /// When what the person wrote could not be read: nobody can judge an answer to it.
    pub(crate) async fn vote(&self, run: &mut Running) -> Result<(), String> {
        let Some(output) = &run.output else { return Ok(()) };
        let to_people = run.recipe.prose.iter().filter(|place| place.address == Address::To);
        let said: Vec<_> =
            to_people.flat_map(|place| spoken(output, &place.at, &place.member)).collect();
        if said.is_empty() {
            return Ok(());
        }
        let candidate = Candidate { text: said.join("\n\n"), ..Candidate::default() };
        let conversation = conversation(run);
        let last = conversation.last().map(|one| one.content.as_text().into_owned());
        let input = self.read_words(last.unwrap_or_default(), Phase::Pre).await?;
        let stated = &run.context;
        let context = TurnContext {
            country: stated.country.clone(),
            sensitivity: stated.sensitivity_level,
            affiliations: stated.cultural_affiliations.clone(),
            ..TurnContext::default()
        };
        let (input, mode) = (Arc::new(input), Mode::Normal);
        let unread = Unread { conversation, candidate, context, input, mode };
        let case = off_thread::reading(&self.detector, move |detector| {
            unread.read(detector, Patience::Every)
        })
        .await;
        let ballots = self.panel.judge(Arc::new(case), self.settings.panel_deadline, false).await;
        let consensus = decide(&ballots, self.settings.bars(scrutiny(run)), run.crisis);
        let judged = ballots.iter().fold(MicroUsd(0), |sum, one| sum.saturating_add(one.cost));
        run.cost = run.cost.saturating_add(judged);
        run.panel = Some(PanelRun { ballots, consensus });
        Ok(())
    }
}

/// How strictly a run is treated.
pub(crate) fn scrutiny(run: &Running) -> Scrutiny {
    match run.context.sensitivity_level {
        Sensitivity::Sacred => Scrutiny::Strict,
        _ if run.crisis => Scrutiny::Strict,
        Sensitivity::High => Scrutiny::Raised,
        Sensitivity::Low | Sensitivity::Medium => Scrutiny::Normal,
    }
}

/// What the person wrote, message by message; else whatever was given.
fn conversation(run: &Running) -> Arc<[Message]> {
    let thread = run.input.get("ticket_thread").and_then(Value::as_array);
    let said = thread.into_iter().flatten().filter_map(|one| one.get("text")?.as_str());
    let messages: Vec<_> = said.map(|text| Message::text(Role::User, text)).collect();
    if messages.is_empty() {
        return [Message::text(Role::User, texts(&run.input).join("\n"))].into();
    }
    messages.into()
}
