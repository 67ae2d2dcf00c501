//! What is looked at before a model is asked: the input, and how strictly the turn is treated.
//!
//! **Invariant:** nothing here calls a model.

use crate::holding::Hold;
use crate::long_text::{graver, read_all};
use crate::memory::Remembered;
use crate::permission::{Interface, Refusal};
use crate::settings::Settings;
use crate::turn::{Turn, brought};
use conclave_core::{
    AuditId, Category, DirectiveId, Message, Mode, Role, Score, Scrutiny, Sensitivity,
};
use conclave_detect::{Course, Detector, DriftState, READ_TOGETHER, Reading};
use conclave_instinct::Instinct;
use conclave_ports::Pseudonyms;
use conclave_recipes::GuardOutcome;
use std::sync::Arc;

/// What the input came to.
#[derive(Clone, Debug)]
pub(crate) struct Examination {
    /// The id under which the turn will be decided.
    pub id: AuditId,
    /// Whose turn it is; a name that is given up meanwhile cannot be recorded any more.
    pub who: Pseudonyms,
    pub input: Arc<Reading>,
    /// What is remembered, this message included.
    pub remembered: Remembered,
    pub scrutiny: Scrutiny,
    /// Whether the person is long known and calm: fewer verifiers are asked then.
    pub established: bool,
    pub stop: Option<Stop>,
    /// Why the turn or its reply waits for a person.
    pub hold: Option<Hold>,
    /// What guards did, where they did not just let it pass.
    pub outcomes: Vec<GuardOutcome>,
    /// Through which door it came.
    pub interface: Interface,
    /// Where the person stood before this message.
    pub drift_before: &'static str,
}

/// Why the model is not asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Stop {
    /// The input asks for harm.
    Harmful { category: Option<Category>, directive: DirectiveId },
    /// A person in crisis asks for means: the system itself answers.
    CrisisWithMeans,
    /// It belongs to a community, whose elders decide.
    Held,
    /// It belongs to a community, and nobody is here who could decide.
    NoElders,
    /// It may not go on, whoever asks.
    Refused(Refusal),
    /// A guard could not be asked, and nobody is here who could decide instead.
    Unguarded,
}

/// Decides from what was read whether, and how strictly, the turn goes on.
pub(crate) fn examine(
    instinct: &Instinct,
    settings: &Settings,
    turn: &Turn,
    (id, who): (AuditId, Pseudonyms),
    input: Reading,
    remembered: Remembered,
) -> Examination {
    let scrutiny = scrutiny(settings, turn, &input, &remembered);
    let stop = stop(instinct, settings, &input);
    let established = scrutiny == Scrutiny::Normal && remembered.is_established();
    Examination {
        id,
        who,
        input: Arc::new(input),
        remembered,
        scrutiny,
        established,
        stop,
        hold: None,
        outcomes: Vec::new(),
        interface: Interface::Chat,
        drift_before: DriftState::default().as_str(),
    }
}

/// So many earlier messages that were never seen are read with a turn.
const EARLIER_MAX: usize = 8;

/// What there is to read of a turn.
#[derive(Clone, Debug)]
pub(crate) struct Input {
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
pub(crate) struct Heard {
    pub said: String,
    pub reading: Reading,
    /// It and the messages before it, read as one text; absent for the first.
    pub together: Option<Reading>,
    /// Messages right before it that nobody has answered: they ask as much as it does.
    pub unanswered: Option<Reading>,
}

impl Heard {
    /// What the person asks for now.
    pub(crate) fn asks(self) -> Reading {
        match self.unanswered {
            Some(unanswered) => graver(self.reading, unanswered),
            None => self.reading,
        }
    }
}

impl Input {
    /// The person's last words, what tools and files brought, and what the person said before that was
    /// not `seen`: a client may bring a whole conversation to a house that never heard of it.
    pub(crate) fn of(turn: &Turn, seen: u32) -> Self {
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
    pub(crate) fn read(&self, detector: &Detector) -> Vec<Heard> {
        let said: Vec<&str> = self.said.iter().map(String::as_str).collect();
        let mut heard: Vec<_> = (said.len() - self.unread..said.len())
            .map(|at| Heard {
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

fn scrutiny(
    settings: &Settings,
    turn: &Turn,
    input: &Reading,
    remembered: &Remembered,
) -> Scrutiny {
    let context = &turn.context;
    let drift = remembered.course.as_ref().map(Course::state).unwrap_or_default();
    let strict = input.is_crisis()
        || drift == DriftState::Red
        || context.minor
        || context.vulnerable
        || !remembered.is_known
        || context.mode == Mode::ChildSafe
        || context.sensitivity == Sensitivity::Sacred;
    let raised = remembered.newcomer()
        || remembered.trend.now.any()
        || drift == DriftState::Yellow
        || input.is_injection()
        || context.sensitivity == Sensitivity::High;
    let asked = match (strict, raised) {
        (true, _) => Scrutiny::Strict,
        (false, true) => Scrutiny::Raised,
        (false, false) => Scrutiny::Normal,
    };
    asked.max(settings.scrutiny_min)
}

fn stop(instinct: &Instinct, settings: &Settings, input: &Reading) -> Option<Stop> {
    if input.is_harmful() {
        if input.is_crisis() {
            return Some(Stop::CrisisWithMeans);
        }
        let category = input.gravest();
        let directive = category.map_or(FIRST, |category| instinct.for_category(category));
        return Some(Stop::Harmful { category, directive });
    }
    // Crisis wins contact over everything else that could stop a turn.
    let refuse_injection = settings.block_injection && input.is_injection() && !input.is_crisis();
    refuse_injection.then(|| Stop::Harmful {
        category: Some(Category::Injection),
        directive: instinct.for_category(Category::Injection),
    })
}

/// The core that every other directive serves.
const FIRST: DirectiveId = DirectiveId(1);

/// What a decision remembers of a score.
pub(crate) fn is_crisis(score: Score) -> bool {
    score.hundredths() >= 50
}
