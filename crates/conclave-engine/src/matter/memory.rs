//! What is remembered between turns: how a conversation moves, and where a person stands.
//!
//! **Invariant:** everything remembered stands in the words beside the last decision: a restart loses
//! nothing, and whoever erases a person erases this with them.
//! **Invariant:** bounded: beyond so many conversations or people the archive is asked again.

use super::reading::ReadMessage;
use conclave_core::{AuditId, Message, Role, Score};
use conclave_detect::{Course, Observed, Trend};
use conclave_ports::StoredDecision;
use conclave_ports::{Archive, ArchiveError, MEMORY_WORDS, Pseudonyms, Whose};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Turns after which a person is no newcomer.
const FIRST_TURNS: u32 = 3;
/// After so many messages somebody is no stranger any more.
const ESTABLISHED_TURNS: u32 = 30;
/// How many conversations, and how many people, are held in memory.
const HELD_MAX: usize = 50_000;
/// How many decisions that were made without knowing what was before are passed over on the way back.
const UNKNOWN_MAX: usize = 64;
/// What is remembered after a turn, as it is stored.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Remembered {
    /// Whether what was remembered before could be looked up. What follows from nothing is written down,
    /// but is not what the next turn goes on from.
    #[serde(default = "known", skip_serializing_if = "is_true")]
    pub is_known: bool,
    /// How the conversation moves.
    pub trend: Trend,
    /// Where the person stands; absent for anonymous ones.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub course: Option<Course>,
}

const fn known() -> bool {
    true
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde asks with a reference")]
const fn is_true(flag: &bool) -> bool {
    *flag
}

impl Default for Remembered {
    fn default() -> Self {
        Self { is_known: true, trend: Trend::default(), course: None }
    }
}

impl Remembered {
    /// Takes in what the person said in earlier turns: how the conversation moves. Where the person stands
    /// moves with each turn's own message only, so that nothing that is brought again counts again.
    pub(crate) fn observe_earlier(&mut self, message: &ReadMessage) {
        let ReadMessage { reading, together, .. } = message;
        let harm = together.as_ref().map_or(Score::ZERO, |together| together.harm);
        self.trend.observe(reading.harm.max(reading.crisis), harm);
        if reading.is_doubt() {
            self.trend.note_doubt(&message.said);
        }
    }

    /// Lets go of doubts that were not about this conversation. Who is named has conversations of their own,
    /// and a client may bring the last message alone; then everything remembered counts.
    pub(crate) fn keep_own_doubts(&mut self, conversation: &[Message]) {
        let own = conversation.iter().filter(|one| one.role == Role::User);
        let said: Vec<_> = own.map(|one| one.content.as_text()).collect();
        if self.course.is_none() && said.len() > 1 {
            self.trend.keep_doubts_about(said.iter().map(AsRef::as_ref));
        }
    }

    /// Takes in the message of this turn.
    pub(crate) fn observe(&mut self, message: &ReadMessage, timestamp_ms: u64, id: AuditId) {
        self.observe_earlier(message);
        if let Some(course) = &mut self.course {
            let marks = message.reading.marks_with(message.together.as_ref());
            let (text, audit_id) = (&message.said, &id.to_string());
            course.observe(&Observed { text, marks, timestamp_ms, audit_id });
        }
    }

    /// Whether this is one of the first turns of a known person.
    pub(crate) fn newcomer(&self) -> bool {
        self.course.as_ref().is_some_and(|course| course.messages <= FIRST_TURNS)
    }

    /// Whether the person has been heard often, and nothing of it gave reason for care.
    pub(crate) fn is_established(&self) -> bool {
        let calm = |course: &Course| course.messages >= ESTABLISHED_TURNS && course.is_calm();
        self.is_known && !self.trend.now.any() && self.course.as_ref().is_some_and(calm)
    }
}

/// Remembers conversations and people: from memory, and from the archive at first sight.
pub struct Memory {
    archive: Arc<dyn Archive>,
    conversations: RecentMap<Trend>,
    people: RecentMap<Course>,
}

impl Memory {
    /// Nothing is remembered yet.
    #[must_use]
    pub fn new(archive: Arc<dyn Archive>) -> Self {
        Self { archive, conversations: RecentMap::default(), people: RecentMap::default() }
    }

    /// What is known before a turn. Where the archive does not answer nothing is, which is the strictest
    /// reading, and what follows from it is not gone on from: an outage must not make anybody new.
    pub async fn recall(&self, who: &Pseudonyms) -> Remembered {
        let trend = match self.conversations.get(who.session) {
            Some(trend) => Ok(trend),
            None => self.look_up(who.tenant, Whose::Session(who.session), "trend").await,
        };
        let course = match who.subject {
            None => Ok(None),
            Some(subject) => self.course(who.tenant, subject).await.map(Some),
        };
        match (trend, course) {
            (Ok(trend), Ok(course)) => Remembered { is_known: true, trend, course },
            (trend, course) => {
                let error = trend.as_ref().err().or(course.as_ref().err());
                tracing::warn!(?error, "what was said earlier could not be looked up");
                let course = course.unwrap_or_else(|_| Some(Course::default()));
                Remembered { is_known: false, trend: trend.unwrap_or_default(), course }
            }
        }
    }

    /// Where a person stands.
    pub(crate) async fn course(
        &self,
        tenant: u64,
        subject: [u8; 16],
    ) -> Result<Course, ArchiveError> {
        match self.people.get(subject) {
            Some(course) => Ok(course),
            None => self.look_up(tenant, Whose::Subject(subject), "course").await,
        }
    }

    /// Lets go of a person and of their conversations.
    pub fn forget(&self, subject: [u8; 16], sessions: &[[u8; 16]]) {
        self.people.forget(subject);
        sessions.iter().for_each(|session| self.conversations.forget(*session));
    }

    /// Holds what is known after a turn.
    pub(crate) fn keep(&self, who: &Pseudonyms, remembered: &Remembered) {
        if !remembered.is_known {
            return;
        }
        self.conversations.put(who.session, remembered.trend);
        if let (Some(subject), Some(course)) = (who.subject, &remembered.course) {
            self.people.put(subject, course.clone());
        }
    }

    async fn look_up<T: DeserializeOwned + Default>(
        &self,
        tenant: u64,
        whose: Whose,
        part: &str,
    ) -> Result<T, ArchiveError> {
        let mut before = None;
        for _ in 0..UNKNOWN_MAX {
            let found = self.archive.latest(tenant, whose, before).await?;
            before = found.as_ref().map(|entry| entry.seq);
            let stored = found.and_then(|entry| StoredDecision::from_entries(vec![entry]).ok()?);
            let mut words =
                stored.and_then(|stored| stored.words(MEMORY_WORDS)).unwrap_or_default();
            if words["is_known"] != false {
                return Ok(serde_json::from_value(words[part].take()).unwrap_or_default());
            }
        }
        Err(ArchiveError("too many turns were decided while it did not answer".to_owned()))
    }
}

/// A bounded map of what was used lately. It has two halves: when the younger is full it becomes the older
/// one, and what nobody asked for since the last change is dropped with the half that it replaces.
pub(crate) struct RecentMap<T>(Mutex<Halves<T>>);

struct Halves<T> {
    young: HashMap<[u8; 16], T>,
    old: HashMap<[u8; 16], T>,
}

impl<T> Default for RecentMap<T> {
    fn default() -> Self {
        Self(Mutex::new(Halves { young: HashMap::new(), old: HashMap::new() }))
    }
}

impl<T: Clone> RecentMap<T> {
    pub(crate) fn get(&self, key: [u8; 16]) -> Option<T> {
        let mut halves = self.lock();
        if let Some(value) = halves.young.get(&key) {
            return Some(value.clone());
        }
        let value = halves.old.remove(&key)?;
        halves.insert(key, value.clone());
        Some(value)
    }

    fn forget(&self, key: [u8; 16]) {
        let mut halves = self.lock();
        halves.young.remove(&key);
        halves.old.remove(&key);
    }

    pub(crate) fn put(&self, key: [u8; 16], value: T) {
        let mut halves = self.lock();
        halves.old.remove(&key);
        halves.insert(key, value);
    }

    fn lock(&self) -> MutexGuard<'_, Halves<T>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<T> Halves<T> {
    fn insert(&mut self, key: [u8; 16], value: T) {
        if self.young.len() >= HELD_MAX / 2 && !self.young.contains_key(&key) {
            self.old = std::mem::take(&mut self.young);
        }
        self.young.insert(key, value);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(n: usize) -> [u8; 16] {
        u128::try_from(n).unwrap().to_be_bytes()
    }

    #[test]
    fn what_is_in_use_stays_when_the_map_is_full() {
        let map = RecentMap::default();
        for n in 0..=2 * HELD_MAX {
            map.put(key(n), n);
            assert_eq!(map.get(key(0)), Some(0), "after {n}");
        }
        let halves = map.0.lock().unwrap();
        assert!(halves.young.len() + halves.old.len() <= HELD_MAX);
        drop(halves);
        assert_eq!(map.get(key(1)), None, "nobody asked for it");
        assert_eq!(map.get(key(2 * HELD_MAX)), Some(2 * HELD_MAX));
        map.forget(key(0));
        assert_eq!(map.get(key(0)), None);
    }
}
