//! What somebody has agreed to, and whether that covers what is asked.
//!
//! **Invariant:** consent is given for a purpose; that some record exists is never enough.
//! **Invariant:** what was taken back stays taken back: an older record does not bring it back.

use crate::names::{Unfit, named_list, sentence};
use serde::{Deserialize, Serialize};

/// So many things can be agreed to in one record.
const SCOPES_MAX: usize = 32;
/// So many purposes.
const PURPOSES_MAX: usize = 16;
/// So many others who may be given the result.
const PARTIES_MAX: usize = 32;
/// The longest account of how somebody agreed or took it back, in bytes.
const EVIDENCE_BYTES_MAX: usize = 2_000;

/// How somebody said it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum EvidenceKind {
    /// On paper.
    Written,
    /// Aloud, before a witness or a recorder.
    Verbal,
    /// In an application.
    Electronic,
}

impl EvidenceKind {
    /// The stable name.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Written => "written",
            Self::Verbal => "verbal",
            Self::Electronic => "electronic",
        }
    }
}

/// What shows that somebody said it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ConsentEvidence {
    /// How.
    pub kind: EvidenceKind,
    /// Where it can be found, such as the number of a form.
    pub reference: String,
}

/// Consent that was taken back.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Withdrawal {
    /// When.
    pub at_ms: u64,
    /// What shows it.
    pub evidence: ConsentEvidence,
}

/// What one person agreed to at one time.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ConsentRecord {
    /// Who: as the tenant knows them.
    pub subject: String,
    /// What may be done, such as `research`.
    pub scopes: Vec<String>,
    /// What for.
    pub purposes: Vec<String>,
    /// Who else may be given the result; nobody where empty.
    #[serde(default)]
    pub parties: Vec<String>,
    /// From when on.
    pub given_ms: u64,
    /// Until when; for good where absent.
    #[serde(default)]
    pub expires_ms: Option<u64>,
    /// What shows it.
    pub evidence: ConsentEvidence,
    /// Set once it was taken back, and never unset.
    #[serde(default)]
    pub withdrawn: Option<Withdrawal>,
}

impl ConsentEvidence {
    /// Whether it can be kept.
    ///
    /// # Errors
    /// When it is empty or too long.
    pub fn check(&self) -> Result<(), Unfit> {
        sentence("evidence.reference", &self.reference, 1, EVIDENCE_BYTES_MAX)
    }
}

impl ConsentRecord {
    /// Whether it can be kept.
    ///
    /// # Errors
    /// When a list is empty where it may not be, too long, or holds something that is no name.
    pub fn check(&self) -> Result<(), Unfit> {
        sentence("subject", &self.subject, 1, 256)?;
        named_list("scopes", &self.scopes, 1, SCOPES_MAX)?;
        named_list("purposes", &self.purposes, 1, PURPOSES_MAX)?;
        named_list("parties", &self.parties, 0, PARTIES_MAX)?;
        self.evidence.check()?;
        if self.expires_ms.is_some_and(|end| end <= self.given_ms) {
            return Err(Unfit::new("expires_ms", "must be later than given_ms"));
        }
        Ok(())
    }

    /// What of an ask this record does not speak of.
    fn missing(&self, ask: &ConsentAsk) -> Vec<String> {
        let has = |list: &[String], wanted: &str| list.iter().any(|one| same(one, wanted));
        let scopes = ask.scopes.iter().filter(|scope| !has(&self.scopes, scope));
        let mut missing: Vec<_> = scopes.map(|scope| format!("the scope `{scope}`")).collect();
        if !has(&self.purposes, &ask.purpose) {
            missing.push(format!("the purpose `{}`", ask.purpose));
        }
        if let Some(party) = ask.party.as_ref().filter(|party| !has(&self.parties, party)) {
            missing.push(format!("the party `{party}`"));
        }
        missing
    }

    /// Whether it speaks of any of this for the same purpose.
    fn touches(&self, ask: &ConsentAsk) -> bool {
        let purpose = self.purposes.iter().any(|one| same(one, &ask.purpose));
        purpose && ask.scopes.iter().any(|asked| self.scopes.iter().any(|one| same(one, asked)))
    }
}

/// Names differ neither by case nor by space around them.
fn same(one: &str, other: &str) -> bool {
    one.trim().to_lowercase() == other.trim().to_lowercase()
}

/// Whether the records of a person cover an ask. Records of anybody else count for nothing, and so does
/// an ask that names no scope: nobody has agreed to everything.
#[must_use]
pub fn check(records: &[(String, ConsentRecord)], ask: &ConsentAsk) -> ConsentState {
    let theirs: Vec<_> =
        records.iter().filter(|(_, record)| record.subject == ask.subject).collect();
    if ask.scopes.is_empty() && !theirs.is_empty() {
        return ConsentState::NotCovered { missing: vec!["a scope".to_owned()] };
    }
    let taken_back = theirs.iter().filter(|(_, record)| record.touches(ask));
    let taken_back = taken_back
        .filter_map(|(id, record)| record.withdrawn.as_ref().map(|w| (w.at_ms, id.clone())))
        .filter(|(at_ms, _)| *at_ms <= ask.now_ms)
        .max();
    let stands = |record: &ConsentRecord| {
        let begun = record.given_ms <= ask.now_ms;
        let later = taken_back.as_ref().is_none_or(|(at_ms, _)| record.given_ms > *at_ms);
        record.withdrawn.is_none() && begun && later
    };
    let over = |record: &ConsentRecord| record.expires_ms.is_some_and(|end| end <= ask.now_ms);
    let covering = || theirs.iter().filter(|(_, record)| record.missing(ask).is_empty());
    if let Some((id, _)) = covering().find(|(_, record)| stands(record) && !over(record)) {
        return ConsentState::Granted { record: id.clone() };
    }
    if let Some((at_ms, record)) = taken_back {
        return ConsentState::Withdrawn { record, at_ms };
    }
    let expired = covering().filter(|(_, record)| stands(record));
    if let Some((at_ms, id)) = expired.filter_map(|(id, r)| Some((r.expires_ms?, id))).max() {
        return ConsentState::Expired { record: id.clone(), at_ms };
    }
    let living = theirs.iter().filter(|(_, record)| stands(record) && !over(record));
    match living.map(|(_, record)| record.missing(ask)).min_by_key(Vec::len) {
        Some(missing) => ConsentState::NotCovered { missing },
        None => ConsentState::Missing,
    }
}

/// What would be done with the words of somebody, and when.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConsentAsk {
    /// Whose words: a pseudonym, or the id of the storyteller as the tenant knows them.
    pub subject: String,
    /// Everything that would be done, such as `research`; all of it must be covered.
    pub scopes: Vec<String>,
    /// What for; consent is given for a purpose.
    pub purpose: String,
    /// Who would be given the result, if somebody else.
    pub party: Option<String>,
    /// Now, in milliseconds since the Unix epoch.
    pub now_ms: u64,
}

/// Whether it is covered.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "state", rename_all = "snake_case")]
pub enum ConsentState {
    /// By this record.
    Granted {
        /// Its id.
        record: String,
    },
    /// Nobody has agreed to anything.
    Missing,
    /// It was, and was taken back.
    Withdrawn {
        /// The record's id.
        record: String,
        /// When.
        at_ms: u64,
    },
    /// It was, for a time that is over.
    Expired {
        /// The record's id.
        record: String,
        /// When it ended.
        at_ms: u64,
    },
    /// There is consent, but not to this.
    NotCovered {
        /// What is missing: scopes, the purpose or the party, in plain words.
        missing: Vec<String>,
    },
}

impl ConsentState {
    /// Whether it may be done.
    #[must_use]
    pub const fn is_granted(&self) -> bool {
        matches!(self, Self::Granted { .. })
    }
}

#[cfg(test)]
#[path = "consent_tests.rs"]
mod tests;
