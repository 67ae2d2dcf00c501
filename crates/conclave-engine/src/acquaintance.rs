//! Whether a person is new here: the first turns of a known user are looked at more closely.

use crate::ports::Archive;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

/// Turns after which a person is no newcomer.
pub(crate) const FIRST_TURNS: u32 = 3;
/// How many people are remembered at once; beyond that the archive is asked again.
const REMEMBERED_MAX: usize = 100_000;

/// Counts turns per subject: from memory, and from the archive at first sight.
pub struct Acquaintances {
    archive: Arc<dyn Archive>,
    turns: Mutex<HashMap<[u8; 16], u32>>,
}

impl Acquaintances {
    /// Nobody is remembered yet.
    #[must_use]
    pub fn new(archive: Arc<dyn Archive>) -> Self {
        Self { archive, turns: Mutex::new(HashMap::new()) }
    }

    /// Counts one more turn of the subject and says whether it is one of the first.
    pub(crate) async fn is_newcomer(&self, subject: [u8; 16]) -> bool {
        if let Some(before) = self.bump(subject) {
            return before < FIRST_TURNS;
        }
        // An archive that does not answer makes a newcomer of everybody: the stricter reading.
        let before = self.archive.turns_of(subject, FIRST_TURNS).await.unwrap_or(0);
        let mut turns = self.turns.lock().unwrap_or_else(PoisonError::into_inner);
        if turns.len() >= REMEMBERED_MAX {
            turns.clear();
        }
        turns.insert(subject, before.saturating_add(1));
        before < FIRST_TURNS
    }

    fn bump(&self, subject: [u8; 16]) -> Option<u32> {
        let mut turns = self.turns.lock().unwrap_or_else(PoisonError::into_inner);
        let count = turns.get_mut(&subject)?;
        let before = *count;
        *count = count.saturating_add(1);
        Some(before)
    }
}
