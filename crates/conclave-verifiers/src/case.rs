//! What a verifier is shown.

use crate::acts::{Acts, Lexicon, VerifierDataError};
use crate::call::CallWords;
use crate::floor;
use crate::passages::passages;
use conclave_core::{Candidate, Message, Role, TurnContext};
use conclave_detect::Reading;
use serde::Serialize;
use std::sync::{Arc, OnceLock};

/// How many pieces of prose that actions carry are looked at each; all of them are read together.
const CARRIED_MAX: usize = 16;

/// What the application says of a tool that it offers.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct ToolDescription {
    /// Its name.
    pub name: String,
    /// What it does.
    pub description: String,
}

/// One candidate in the light of its conversation.
///
/// **Invariant:** it holds no ballot, so that verifiers are blind to each other by type.
/// **Invariant:** a clone forgets what was read, so that a clone with another candidate is read
/// anew.
/// **Invariant:** a case that could not be read says so, also in its clones, and keeps the floor that its
/// words reach unexcused: whoever judges it abstains.
#[derive(Debug)]
pub struct Case {
    /// The conversation so far, without the candidate.
    pub conversation: Arc<[Message]>,
    /// The reply under judgement.
    pub candidate: Candidate,
    /// The circumstances.
    pub context: TurnContext,
    /// What the person's words were read as: the last user message in its conversation.
    pub input: Arc<Reading>,
    /// What the reply's words were read as, those that its actions carry included.
    pub reply: Reading,
    /// What names, keys and short values of its tool calls were read as, where they make up words.
    pub(crate) pieces: Vec<Reading>,
    /// How harmful it is, in hundredths, where the floor of the directives stops it.
    pub(crate) floor: Option<u8>,
    tools: Arc<[ToolDescription]>,
    carried: OnceLock<CallWords>,
    read: OnceLock<Arc<Acts>>,
    passages: Vec<Self>,
    unreadable: Option<Arc<str>>,
}

impl Clone for Case {
    fn clone(&self) -> Self {
        let unread = Self::new(
            Arc::clone(&self.conversation),
            self.candidate.clone(),
            self.context.clone(),
            Arc::clone(&self.input),
            self.reply.clone(),
        );
        Self { unreadable: self.unreadable.clone(), tools: Arc::clone(&self.tools), ..unread }
    }
}

impl Case {
    /// Puts a case together; nothing is read before a verifier asks.
    #[must_use]
    pub fn new(
        conversation: Arc<[Message]>,
        candidate: Candidate,
        context: TurnContext,
        input: Arc<Reading>,
        reply: Reading,
    ) -> Self {
        Self {
            conversation,
            candidate,
            context,
            input,
            // Whether it is a refusal that names what it refuses, only a closer reading shows.
            floor: reply.floor.then(|| reply.harm_unamplified.hundredths()),
            reply,
            pieces: Vec::new(),
            tools: [].into(),
            carried: OnceLock::new(),
            read: OnceLock::new(),
            passages: Vec::new(),
            unreadable: None,
        }
    }

    /// The same case, with what the application says of the tools it offers.
    #[must_use]
    pub fn with_tools(self, tools: Arc<[ToolDescription]>) -> Self {
        Self { tools, ..self }
    }

    /// The same case, with every passage of the reply that has something against it, and all prose that
    /// its actions carry, as cases of their own, their words read by `read`.
    #[must_use]
    pub fn read_closely(self, read: impl Fn(&str) -> Reading) -> Self {
        self.read_with(Lexicon::shared(), read)
    }

    fn read_with(
        self,
        lexicon: Result<Arc<Lexicon>, VerifierDataError>,
        read: impl Fn(&str) -> Reading,
    ) -> Self {
        match lexicon {
            Ok(lexicon) => self.read_passages(&lexicon, read),
            Err(error) => self.left_unread(&error.to_string()),
        }
    }

    /// The same case as one that could not be read.
    #[must_use]
    pub fn left_unread(self, why: &str) -> Self {
        Self { unreadable: Some(why.into()), ..self }
    }

    /// Why it could not be read; nobody may vote on it then.
    #[must_use]
    pub fn unreadable(&self) -> Option<&str> {
        self.unreadable.as_deref()
    }

    fn read_passages(mut self, lexicon: &Arc<Lexicon>, read: impl Fn(&str) -> Reading) -> Self {
        let whole = self.acts(lexicon);
        let mut cases: Vec<Self> = Vec::new();
        for (text, acts) in passages(&self.candidate.text, &whole) {
            cases.push(self.part(text, acts, read(text)));
        }
        let mut floor = floor::stops(&self, &whole, &read);
        let mut pieces = Vec::new();
        for text in self.carried().made_up() {
            let (acts, reading) = (whole.of_part(text), read(text));
            floor = floor.max(floor_of(&reading));
            // Names and short values are words once they say something that could be held against them.
            if acts.gravest() > 0 {
                cases.push(self.part(text, acts, reading.clone()));
            }
            pieces.push(reading);
        }
        for text in self.carried().prose.iter().take(CARRIED_MAX) {
            let (acts, reading) = (whole.of_part(text), read(text));
            // What an action carries is said to somebody else, and declines nothing.
            floor = floor.max(floor_of(&reading));
            for (passage, acts) in passages(text, &acts) {
                cases.push(self.part(passage, acts, read(passage)));
            }
            cases.push(self.part(text, acts, reading));
        }
        self.floor = floor;
        self.pieces = pieces;
        self.passages = cases;
        self
    }

    /// A part of the reply as a case of its own.
    fn part(&self, text: &str, acts: Acts, reply: Reading) -> Self {
        Self {
            conversation: Arc::clone(&self.conversation),
            candidate: Candidate { text: text.to_owned(), ..Candidate::default() },
            context: self.context.clone(),
            input: Arc::clone(&self.input),
            floor: None,
            reply,
            pieces: Vec::new(),
            tools: [].into(),
            carried: OnceLock::new(),
            read: OnceLock::from(Arc::new(acts)),
            passages: Vec::new(),
            unreadable: None,
        }
    }

    /// The passages that are cases of their own.
    pub(crate) fn passages(&self) -> &[Self] {
        &self.passages
    }

    /// The person's last words; empty when nobody has spoken.
    #[must_use]
    pub fn last_user_text(&self) -> String {
        self.conversation
            .iter()
            .rev()
            .find(|message| message.role == Role::User)
            .map(|message| message.content.as_text().into_owned())
            .unwrap_or_default()
    }

    /// Which exchange this is, from 1: how often the person has spoken.
    #[must_use]
    pub fn exchange(&self) -> usize {
        self.conversation.iter().filter(|message| message.role == Role::User).count().max(1)
    }

    /// What its tool calls say in words.
    pub(crate) fn carried(&self) -> &CallWords {
        self.carried.get_or_init(|| CallWords::read(&self.candidate.tool_calls))
    }

    /// Whether it asks for an action and says nothing.
    pub(crate) fn is_action_alone(&self) -> bool {
        self.has_action() && self.candidate.text.trim().is_empty()
    }

    /// Whether there are words to judge: its own, or those that its actions carry. Silence is judged as well.
    pub(crate) fn has_words(&self) -> bool {
        let carries = || !self.carried().prose.is_empty() || !self.passages.is_empty();
        !self.is_action_alone() || carries()
    }

    /// What the application says that a tool does; empty where it says nothing.
    pub(crate) fn description_of(&self, tool: &str) -> &str {
        let told = self.tools.iter().find(|one| one.name == tool);
        told.map_or("", |one| one.description.as_str())
    }

    /// Whether the candidate asks for an action.
    #[must_use]
    pub fn has_action(&self) -> bool {
        !self.candidate.tool_calls.is_empty()
    }

    /// What the reply does and what the person's turn is, read once for every verifier that shares
    /// a lexicon.
    pub(crate) fn acts(&self, lexicon: &Arc<Lexicon>) -> Arc<Acts> {
        let read = self.read.get_or_init(|| Arc::new(Acts::read(self, lexicon)));
        if read.is_of(lexicon) {
            return Arc::clone(read);
        }
        Arc::new(Acts::read(self, lexicon))
    }
}

/// How harmful words are that the floor stops, in hundredths.
fn floor_of(reading: &Reading) -> Option<u8> {
    reading.floor.then(|| reading.harm_unamplified.hundredths())
}

#[cfg(test)]
mod tests {
    use super::*;
    use conclave_core::Mode;

    #[test]
    fn a_case_whose_lexicon_fails_says_so_and_keeps_its_floor() {
        let floored = Reading { floor: true, ..Reading::empty(Mode::Normal) };
        let input = Arc::new(Reading::empty(Mode::Normal));
        let (said, context) = (Candidate::default(), TurnContext::default());
        let case = Case::new([].into(), said, context, input, floored);
        let broken = || Lexicon::from_files(&[("broken.toml", "nothing")]).map(Arc::new);
        let unread = case.clone().read_with(broken(), |_| Reading::empty(Mode::Normal));
        assert!(unread.unreadable().is_some_and(|why| why.contains("broken.toml")));
        assert!(unread.clone().unreadable().is_some(), "a clone is no more readable");
        assert!(crate::floor_ballot(&unread).is_some());
        let read = case.read_closely(|_| Reading::empty(Mode::Normal));
        assert_eq!(read.unreadable(), None);
    }
}
