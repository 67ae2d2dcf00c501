//! What has been said before in the conversation.

use super::reading::{Named, Reading};
use super::script::{Cue, Script};
use crate::lexicon::fold;
use conclave_core::{Message, Role};

/// How far back the responder remembers, in messages of each side.
const MESSAGES_MAX: usize = 40;

/// For how many messages a person is who the talk is about.
const PERSON_HELD: usize = 3;

/// For how many messages a loss is what the talk is about.
const LOSS_HELD: usize = 4;

/// What is remembered of the conversation before the last message of the person.
#[derive(Clone, Debug, Default)]
pub(super) struct Memory {
    /// Earlier replies, folded, the latest first.
    said: Vec<String>,
    /// How the sentences of the last two replies begin.
    beginnings: Vec<String>,
    /// Who or what the person talked about, the latest first, and how often.
    pub(super) topics: Vec<Named>,
    mentions: Vec<usize>,
    /// What the message before the last was about.
    pub(super) latest_topic: Option<Named>,
    /// The person who was last spoken of, where that was lately.
    pub(super) latest_person: Option<Named>,
    /// Something of the person's life has been talked about.
    pub(super) emotional: bool,
    /// Something unwelcome has been told.
    pub(super) heavy: bool,
    /// Somebody was lost, as lately told.
    pub(super) loss: bool,
    /// Who was spoken of when a loss was told: they are not spoken of as if they were there.
    lost: Vec<usize>,
    /// The person wants to be listened to and not advised.
    pub(super) listen_only: bool,
    /// How many of the latest replies in a row asked something.
    pub(super) questions_running: usize,
    /// Which exchange this is, from 1.
    pub(super) exchange: usize,
}

impl Memory {
    /// The last message of the person, and what is remembered from before it.
    pub(super) fn of<'a>(
        script: &Script,
        conversation: &'a [Message],
    ) -> (Self, Option<&'a Message>) {
        let last = conversation.iter().rposition(|message| message.role == Role::User);
        let before = conversation.get(..last.unwrap_or(0)).unwrap_or_default();
        let mut memory = Self {
            exchange: 1 + before.iter().filter(|one| one.role == Role::User).count(),
            ..Self::default()
        };
        for message in of_role(before, Role::Assistant) {
            memory.said.push(fold(&message.content.as_text()));
        }
        memory.beginnings = memory
            .said
            .iter()
            .take(2)
            .flat_map(|reply| sentences(reply))
            .map(|sentence| beginning(sentence.trim()))
            .collect();
        memory.questions_running =
            memory.said.iter().take_while(|reply| is_question(reply)).count();
        for (age, message) in of_role(before, Role::User).enumerate() {
            let reading = Reading::of(script, &message.content.as_text());
            if age == 0 {
                memory.latest_topic = reading.topics.first().cloned();
            }
            if age < PERSON_HELD && memory.latest_person.is_none() {
                memory.latest_person = reading.person(script).cloned();
            }
            memory.learn(script, &reading, age);
        }
        (memory, last.and_then(|at| conversation.get(at)))
    }

    fn learn(&mut self, script: &Script, reading: &Reading, age: usize) {
        self.emotional |= reading.is_emotional(script);
        self.heavy |= reading.is_heavy(script);
        if reading.is_loss(script) {
            self.loss |= age < LOSS_HELD;
            self.lost.extend(reading.topics.iter().map(|named| named.topic));
        }
        self.listen_only |= reading.has(Cue::Listen);
        for named in &reading.topics {
            let known = self.topics.iter().position(|other| other.topic == named.topic);
            match known.and_then(|at| self.mentions.get_mut(at)) {
                Some(mentions) => *mentions += 1,
                None => {
                    self.topics.push(named.clone());
                    self.mentions.push(1);
                }
            }
        }
    }

    /// Whether a loss was ever told.
    pub(super) const fn knows_loss(&self) -> bool {
        self.loss || !self.lost.is_empty()
    }

    /// Whether this topic may be among the lost.
    pub(super) fn is_lost(&self, topic: usize) -> bool {
        self.lost.contains(&topic)
    }

    /// What the talk keeps coming back to, where that weighs and is not lost.
    pub(super) fn thread(&self, script: &Script) -> Option<&Named> {
        self.main_topic().filter(|named| {
            let light = script.topics.get(named.topic).is_none_or(|topic| topic.light);
            !light && !self.is_lost(named.topic)
        })
    }

    /// What was talked about most; of several, what came up first.
    pub(super) fn main_topic(&self) -> Option<&Named> {
        self.topics
            .iter()
            .zip(&self.mentions)
            .rev()
            .max_by_key(|(_, mentions)| **mentions)
            .map(|(named, _)| named)
    }

    /// The person who was last spoken of and whom these pronouns can stand for.
    pub(super) fn person(&self, script: &Script, reading: &Reading) -> Option<&Named> {
        let (she, he) = (reading.has(Cue::She), reading.has(Cue::He));
        if she == he {
            return None;
        }
        let other = if she { &script.gender.male } else { &script.gender.female };
        self.topics
            .iter()
            .find(|named| script.topics.get(named.topic).is_some_and(|topic| topic.person))
            .filter(|named| !other.contains(&named.name) && !named.name.ends_with('s'))
    }

    /// Whether any sentence of this template has been said, whatever stood in its slots.
    pub(super) fn has_said(&self, template: &str) -> bool {
        sentences(template).any(|sentence| {
            let spoken = fold(longest_literal(sentence));
            !spoken.is_empty() && self.said.iter().any(|reply| reply.contains(&spoken))
        })
    }

    /// Whether one of the last two replies has a sentence that begins like this template.
    pub(super) fn begins_alike(&self, template: &str) -> bool {
        self.beginnings.contains(&beginning(&fold(template)))
    }
}

/// The messages of one side, the latest first.
fn of_role(messages: &[Message], role: Role) -> impl Iterator<Item = &Message> {
    messages.iter().rev().filter(move |message| message.role == role).take(MESSAGES_MAX)
}

/// Whether a text asks something, in either language.
pub(super) fn is_question(text: &str) -> bool {
    text.contains(['?', '？']) || text.contains("か。")
}

/// The sentences of a text, with their stops.
pub(super) fn sentences(text: &str) -> impl Iterator<Item = &str> {
    text.split_inclusive(['.', '!', '?', '。', '！', '？'])
        .filter(|sentence| sentence.chars().any(char::is_alphanumeric))
}

/// The longest part of a template outside its slots.
fn longest_literal(template: &str) -> &str {
    template.split(['{', '}']).step_by(2).max_by_key(|part| part.len()).unwrap_or_default()
}

/// The first word of an English sentence, the first letters of a Japanese one.
fn beginning(sentence: &str) -> String {
    if sentence.is_ascii() {
        let word = sentence.split(' ').next().unwrap_or_default();
        word.trim_end_matches(|letter: char| !letter.is_alphanumeric()).to_owned()
    } else {
        sentence.chars().take(4).collect()
    }
}
