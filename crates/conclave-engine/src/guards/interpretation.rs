//! What the person asks for, read before any model is asked: harm, and attempts to override instructions.
//!
//! Crisis is not a reason to stop; whoever is in crisis is answered in any case (see
//! [`crate::conclude`]). Trend, drift and doubt raise scrutiny when the matter is admitted.
//!
//! **Invariant:** a doubt is marked and not refused, except where children read, where a policy says so, and
//! from the third in one conversation on.

use super::{Examined, Guard, GuardError, within_patience};
use crate::engine::Engine;
use crate::matter::{Matter, Purpose, long_text};
use crate::shares::Load;
use conclave_core::{Disposition, Finding, GuardCode, GuardKind, Mode, Phase};
use conclave_detect::Reading;
use conclave_govern::{OnDoubt, UnjudgedParts};
use futures_util::FutureExt;
use futures_util::future::BoxFuture;

pub(super) struct Interpretation;

impl Guard for Interpretation {
    fn kind(&self) -> GuardKind {
        GuardKind::Interpretation
    }

    fn examine<'a>(
        &'a self,
        engine: &'a Engine,
        matter: &'a Matter,
        phase: Phase,
    ) -> BoxFuture<'a, Result<Option<Examined>, GuardError>> {
        async move {
            if phase == Phase::After {
                return Ok(None);
            }
            Ok(match matter.purpose {
                // Nothing of what becomes a vector is judged.
                Purpose::Embeddings => None,
                Purpose::Chat | Purpose::Moderations | Purpose::Verify => {
                    let is_binding = matter.reading.floor;
                    Some(Examined { is_binding, ..look(engine, matter).into() })
                }
                Purpose::Recipe(_) if matter.model.is_none() => None,
                // Material is data: what it asks for is no request, but it may try to give orders.
                Purpose::Recipe(_) => {
                    let texts = matter.content.texts(phase).join("\n");
                    let reading = read_words(engine, matter, texts, phase).await?;
                    Some(injection_or_none(&reading).into())
                }
            })
        }
        .boxed()
    }
}

fn look(engine: &Engine, matter: &Matter) -> Finding {
    let reading = &matter.reading;
    let is_doubt = reading.is_doubt();
    // A reply made elsewhere is judged whatever was asked; what was asked stands in the decision.
    if matter.purpose != Purpose::Verify {
        if reading.is_harmful() && !is_doubt {
            let subject = reading.subject().map_or("harm", |category| category.as_str());
            return blocked(GuardCode::Harmful, format!("The person asks for {subject}."));
        }
        if let Some(why) = doubt_refusal(engine, matter).filter(|_| is_doubt) {
            return blocked(GuardCode::Harmful, why.to_owned());
        }
        let refuses_unjudged = matter.policy().unjudged.max(Some(engine.settings.unjudged))
            == Some(UnjudgedParts::Refuse);
        let talks = matter.purpose == Purpose::Chat;
        if refuses_unjudged && talks && matter.content.has_unjudged() {
            let why = "It holds parts that nobody can judge, and the policy refuses those.";
            return blocked(GuardCode::Unjudged, why.to_owned());
        }
        let blocks = engine.settings.block_injection || matter.policy().block_injection;
        // Crisis wins contact over everything that could stop a turn.
        if blocks && reading.injection.is_injection() && !reading.crisis.is_crisis() {
            return blocked(GuardCode::Injection, "It tries to override instructions.".to_owned());
        }
    }
    if is_doubt {
        let why = "It may be that the person asks for harm; one weak sign says so.";
        return flagged(GuardCode::Doubt, why);
    }
    injection_or_none(reading)
}

/// Why a doubt about what the person asks for is refused like harm.
fn doubt_refusal(engine: &Engine, matter: &Matter) -> Option<&'static str> {
    let strictest = matter.policy().on_doubt.max(Some(engine.settings.on_doubt));
    if matter.reading.mode == Mode::ChildSafe {
        Some("It may be that harm is asked for, and children may read.")
    } else if strictest == Some(OnDoubt::Block) {
        Some("It may be that harm is asked for, and the policy refuses doubts.")
    } else if matter.remembered.trend.refuses_doubts() {
        Some("It may be that harm is asked for, as before in this conversation.")
    } else {
        None
    }
}

fn injection_or_none(reading: &Reading) -> Finding {
    if !reading.injection.is_injection() {
        return Finding::passed(GuardKind::Interpretation, Phase::Before);
    }
    flagged(GuardCode::Injection, "Somebody tries to give orders to the model.")
}

fn flagged(code: GuardCode, why: &str) -> Finding {
    Finding::new(GuardKind::Interpretation, Phase::Before, Disposition::Flagged, code, why)
}

fn blocked(code: GuardCode, why: String) -> Finding {
    Finding::new(GuardKind::Interpretation, Phase::Before, Disposition::Blocked, code, why)
}

/// What a text is read as, all of it: before, as a request; after, as a reply.
///
/// # Errors
/// When nobody could read it.
pub async fn read_words<C: ?Sized>(
    engine: &Engine,
    matter: &Matter<C>,
    text: String,
    phase: Phase,
) -> Result<Reading, GuardError> {
    let load = if matter.is_long { Load::Held } else { Load::of_text(text.len()) };
    let (detector, sharer) = (engine.detectors.of(&matter.tenant), matter.sharer());
    let reading = engine.shares.read(detector, sharer, load, move |detector| {
        long_text::read_all(&text, |passage| match phase {
            Phase::Before => detector.read(passage, Mode::Normal),
            Phase::After => detector.read_reply("", passage, Mode::Normal),
        })
    });
    within_patience(async { Ok(reading.await) }.boxed()).await
}
