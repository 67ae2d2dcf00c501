//! The built-in responder: a kind listener that needs no model and no network.
//!
//! It reads a message for what happened, what is felt and who is in it, decides what kind of
//! message it is, and answers with a reflection, something that lets the feeling be, and an
//! invitation, out of sentences that people wrote.
//!
//! **Invariant:** a reply is never empty, asks at most one thing, gives no advice before the fifth
//! exchange, and is made only of sentences of the data files: no word of the person is repeated but
//! the names of its own lists.

mod act;
mod compose;
mod howto;
mod memory;
mod reading;
mod reply;
mod script;
mod share;
#[cfg(test)]
mod tests;

use crate::draw::mix;
use crate::{FieldState, Language, VoiceError};
use act::{Act, Weighing};
use compose::Composer;
use conclave_core::{Message, Reason, Score};
use howto::Howtos;
use memory::Memory;
use reading::Reading;
use reply::Circumstances;
use script::Script;

macro_rules! file {
    ($name:literal) => {
        include_str!(concat!(env!("CARGO_MANIFEST_DIR"), "/../../data/responder/", $name))
    };
}

const EN: &str = file!("en.toml");
const JA: &str = file!("ja.toml");
const HOWTO: &str = file!("howto.toml");

/// The responder with its sentences.
#[derive(Clone, Debug)]
pub struct Responder {
    english: Script,
    japanese: Script,
    howtos: Howtos,
}

impl Responder {
    /// The responder compiled in.
    ///
    /// # Errors
    /// When a data file is broken.
    pub fn builtin() -> Result<Self, VoiceError> {
        Ok(Self {
            english: Script::parse(Language::English, "responder/en.toml", EN)?,
            japanese: Script::parse(Language::Japanese, "responder/ja.toml", JA)?,
            howtos: Howtos::parse("responder/howto.toml", HOWTO)?,
        })
    }

    /// A reply to the person's last message; never empty. `reasons` are what verifiers held against
    /// an earlier attempt. The same conversation, field, crisis, reasons and seed give the same
    /// reply.
    #[must_use]
    pub fn respond(
        &self,
        conversation: &[Message],
        field: &FieldState,
        crisis: Score,
        reasons: &[Reason],
        seed: u64,
    ) -> String {
        let script = self.script(Language::of_conversation(conversation));
        let (memory, last) = Memory::of(script, conversation);
        let text = last.map(|message| message.content.as_text()).unwrap_or_default();
        let reading = Reading::of(script, &text);
        let act = self.weigh(script, &reading, &text, crisis, &memory);
        let circumstances = Circumstances::new(&reading, field, reasons);
        let seed = reasons.iter().fold(mix(seed, &text), |seed, reason| mix(seed, reason.code()));
        let mut composer = Composer::new(script, &memory, seed);
        match act {
            Act::Howto(at) => composer.add_text(self.howtos.answer(script.language, at)),
            _ => reply::compose(&mut composer, act, &reading, &circumstances),
        }
        composer.finish()
    }

    const fn script(&self, language: Language) -> &Script {
        match language {
            Language::English => &self.english,
            Language::Japanese => &self.japanese,
        }
    }

    fn weigh(
        &self,
        script: &Script,
        reading: &Reading,
        text: &str,
        crisis: Score,
        memory: &Memory,
    ) -> Act {
        if !reading.has_words && memory.exchange == 1 && text.trim().is_empty() {
            return Act::Greeting;
        }
        Weighing {
            script,
            howtos: &self.howtos,
            reading,
            text,
            crisis: crisis.is_crisis(),
            emotional_before: memory.emotional,
        }
        .act()
    }
}
