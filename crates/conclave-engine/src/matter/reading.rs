//! What there is to read of a turn, and how strictly it is treated in the light of it.
//!
//! **Invariant:** nothing here calls a model.

use super::long_text::{graver, read_all};
use super::memory::Remembered;
use super::turn::{Turn, brought};
use conclave_core::{Message, Mode, Role, Scrutiny, Sensitivity, Threshold, TurnContext};
use conclave_detect::{Course, Detector, DriftState, READ_TOGETHER, Reading};

/// So many earlier messages that were never seen are read with a turn.
const EARLIER_MAX: usize = 8;

/// What there is to read of a turn.
#[derive(Clone, Debug)]
pub(crate) struct MessagesToRead {
    /// What the person said, oldest first, as far as it is needed.
    said: Vec<String>,
    /// How many of those, from the end, are to be read each.
    unread: usize,
    /// How many unseen ones before them are too many to be read.
    pub skipped: u32,
    /// Whether the last of them was not heard before: where a tool's result goes on with a turn, or the
    /// model does, the person has said nothing since.
    pub is_new: bool,
    /// What the person said right before the last message, without an answer in between.
    unanswered: String,
    brought: Vec<String>,
    mode: Mode,
}

/// One message of the person, and how it is read.
#[derive(Clone, Debug)]
pub(crate) struct ReadMessage {
    pub said: String,
    pub reading: Reading,
    /// It and the messages before it, read as one text; absent for the first.
    pub together: Option<Reading>,
    /// Messages right before it that nobody has answered: they ask as much as it does.
    pub unanswered: Option<Reading>,
}

impl ReadMessage {
    /// Holds it to a stricter line of harm.
    pub(crate) fn lower_threshold(&mut self, own: Threshold) {
        let all = [Some(&mut self.reading), self.together.as_mut(), self.unanswered.as_mut()];
        for reading in all.into_iter().flatten() {
            reading.threshold = reading.threshold.min(own);
        }
    }

    /// What the person asks for now.
    pub(crate) fn asks(self) -> Reading {
        match self.unanswered {
            Some(unanswered) => graver(self.reading, unanswered),
            None => self.reading,
        }
    }
}

impl MessagesToRead {
    /// The person's last words, what tools and files brought, and what the person said before that was
    /// not `seen`: a client may bring a whole conversation to a house that never heard of it.
    pub(crate) fn since(turn: &Turn, seen: u32) -> Self {
        let seen = usize::try_from(seen).unwrap_or(usize::MAX);
        let said: Vec<_> = turn.conversation.iter().filter(|one| one.role == Role::User).collect();
        let unseen = said.len().saturating_sub(seen);
        let unread = unseen.clamp(1, EARLIER_MAX + 1).min(said.len());
        let needed = (unread + READ_TOGETHER - 1).min(said.len());
        let needed = &said[said.len() - needed..];
        Self {
            said: needed.iter().map(|one| one.content.as_text().into_owned()).collect(),
            unread,
            skipped: u32::try_from(unseen.saturating_sub(unread)).unwrap_or(u32::MAX),
            is_new: unseen > 0 || ends_with_person(turn),
            unanswered: unanswered(&turn.conversation),
            brought: brought(&turn.conversation),
            mode: effective_mode(turn),
        }
    }

    /// Reads each message that was not read before, the last one last. What tools and files brought is
    /// read for injection only, because nobody asked for anything there.
    pub(crate) fn read(&self, detector: &Detector) -> Vec<ReadMessage> {
        let said: Vec<&str> = self.said.iter().map(String::as_str).collect();
        let mut heard: Vec<_> = (said.len() - self.unread..said.len())
            .map(|at| ReadMessage {
                said: said[at].to_owned(),
                reading: detector.read(said[at], self.mode),
                together: detector.together(&said[..=at], self.mode),
                unanswered: None,
            })
            .collect();
        if let Some(last) = heard.last_mut() {
            let before = Some(self.unanswered.as_str()).filter(|said| !said.is_empty());
            let read = |said: &str| read_all(said, |part| detector.read(part, self.mode));
            last.unanswered = before.map(read);
            for brought in &self.brought {
                let smuggled = detector.read(brought, self.mode).injection;
                last.reading.injection = last.reading.injection.max(smuggled);
            }
        }
        heard
    }
}

/// What the person said since the last answer, but for the last message.
fn unanswered(conversation: &[Message]) -> String {
    let since = conversation.iter().rev().take_while(|one| one.role != Role::Assistant);
    let own = since.filter(|one| one.role == Role::User).skip(1);
    let mut said: Vec<_> = own.map(|one| one.content.as_text()).collect();
    said.reverse();
    said.join("\n")
}

/// Whether the person had the last word; what the tenant adds after it is not said by anybody.
fn ends_with_person(turn: &Turn) -> bool {
    let spoken = |role: Role| !matches!(role, Role::System | Role::Developer);
    let last = turn.conversation.iter().rev().find(|one| spoken(one.role));
    last.is_some_and(|one| one.role == Role::User)
}

/// A minor is always read in child-safe mode.
fn effective_mode(turn: &Turn) -> Mode {
    if turn.context.minor { Mode::ChildSafe } else { turn.context.mode }
}

/// How strictly a turn is treated: by what it says, what is remembered, and what was stated.
pub(crate) fn scrutiny(
    context: &TurnContext,
    reading: &Reading,
    remembered: &Remembered,
) -> Scrutiny {
    let drift = remembered.course.as_ref().map(Course::state).unwrap_or_default();
    let strict = reading.crisis.is_crisis()
        || reading.is_doubt()
        || drift == DriftState::Red
        || context.minor
        || context.vulnerable
        // An archive that does not answer must not make a known person new.
        || !remembered.is_known
        || context.mode == Mode::ChildSafe
        || context.sensitivity == Sensitivity::Sacred;
    let raised = remembered.newcomer()
        || remembered.trend.now.any()
        || drift == DriftState::Yellow
        || reading.injection.is_injection()
        || context.sensitivity == Sensitivity::High;
    match (strict, raised) {
        (true, _) => Scrutiny::Strict,
        (false, true) => Scrutiny::Raised,
        (false, false) => Scrutiny::Normal,
    }
}
