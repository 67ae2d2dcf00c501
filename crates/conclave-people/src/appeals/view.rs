//! Appeals as they are shown: to the person and their application with words, to those who oversee without.

use super::{AppealRecord, Appeals, FILED};
use crate::people::PeopleError;
use crate::records::{query, read_or_report};
use conclave_core::TenantId;
use conclave_govern::{Appeal, AppealConcern, AppealOutcome, AppealRuling, AppealedReply};
use conclave_ports::{RecordKind, RecordQuery};
use serde::Serialize;

/// An appeal as somebody may see it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct AppealView {
    /// Always `appeal`.
    pub object: &'static str,
    /// Its id.
    pub id: String,
    /// The decision it is against.
    pub audit_id: String,
    /// The review in which somebody rules on it.
    pub review_id: String,
    /// `filed`, or how it ended.
    pub status: &'static str,
    /// What had become of the reply.
    pub about: AppealedReply,
    /// What the person thinks was wrong.
    pub concern: AppealConcern,
    /// What they wrote, where the reader may see it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub words: Option<String>,
    /// The language they are answered in.
    pub language: String,
    /// When it was filed.
    pub filed_ms: u64,
    /// By when somebody is to have ruled.
    pub due_ms: u64,
    /// How it was ruled.
    pub ruling: Option<RulingView>,
}

/// How an appeal was ruled, as somebody may see it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct RulingView {
    /// What was found.
    pub outcome: AppealOutcome,
    /// Why, in the words to the person, where the reader may see them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub words: Option<String>,
    /// Whether there is a corrected reply to be fetched.
    pub has_corrected_reply: bool,
    /// When.
    pub decided_ms: u64,
}

impl AppealView {
    /// With the words, for the person and for the application they talk through.
    #[must_use]
    pub fn for_person(record: &AppealRecord) -> Self {
        let AppealRecord { id, appeal } = record;
        Self { words: Some(appeal.words.clone()), ..view(id, appeal, true) }
    }

    /// Without a word of anybody.
    #[must_use]
    pub fn for_overseer(record: &AppealRecord) -> Self {
        view(&record.id, &record.appeal, false)
    }
}

fn view(id: &str, appeal: &Appeal, with_words: bool) -> AppealView {
    let ruling = |ruling: &AppealRuling| RulingView {
        outcome: ruling.outcome,
        words: with_words.then(|| ruling.words.clone()),
        has_corrected_reply: ruling.corrected.is_some(),
        decided_ms: ruling.decided_ms,
    };
    AppealView {
        object: "appeal",
        id: id.to_owned(),
        audit_id: appeal.audit_id.clone(),
        review_id: appeal.review_id.clone(),
        status: appeal.ruling.as_ref().map_or(FILED, |ruling| ruling.outcome.as_str()),
        about: appeal.about,
        concern: appeal.concern,
        words: None,
        language: appeal.language.clone(),
        filed_ms: appeal.filed_ms,
        due_ms: appeal.due_ms,
        ruling: appeal.ruling.as_ref().map(ruling),
    }
}

/// Which appeals to list.
#[derive(Clone, Debug, Default)]
pub struct AppealFilter {
    /// Only those that wait, or only those that ended so; all where absent.
    pub status: Option<FiledAppeals>,
    /// Only of the person with these names; of everybody where absent.
    pub subjects: Option<Vec<[u8; 16]>>,
    /// Leaves out so many.
    pub offset: u32,
    /// At most this many.
    pub limit: u32,
}

/// Appeals by how far they are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FiledAppeals {
    /// Nobody has ruled.
    Waiting,
    /// Somebody has ruled so.
    Ruled(AppealOutcome),
}

impl FiledAppeals {
    /// Finds the state with this name.
    #[must_use]
    pub fn parse(name: &str) -> Option<Self> {
        if name == FILED {
            return Some(Self::Waiting);
        }
        AppealOutcome::ALL.into_iter().find(|one| one.as_str() == name).map(Self::Ruled)
    }

    const fn as_str(self) -> &'static str {
        match self {
            Self::Waiting => FILED,
            Self::Ruled(outcome) => outcome.as_str(),
        }
    }
}

impl Appeals {
    /// A page of the appeals of a tenant, those that are due first.
    ///
    /// # Errors
    /// When the records do not answer.
    pub async fn list(
        &self,
        tenant: &TenantId,
        filter: &AppealFilter,
    ) -> Result<Vec<AppealRecord>, PeopleError> {
        let states = match filter.status {
            Some(status) => vec![status.as_str().to_owned()],
            None => {
                let ruled = AppealOutcome::ALL.map(|one| one.as_str().to_owned());
                [FILED.to_owned()].into_iter().chain(ruled).collect()
            }
        };
        let owners: Vec<Option<String>> = match &filter.subjects {
            Some(names) => names.iter().map(|name| Some(hex::encode(name))).collect(),
            None => vec![None],
        };
        let mut found = Vec::new();
        for owner in owners {
            // Somebody may have several names; their pages are put together.
            let limit = filter.offset.saturating_add(filter.limit);
            let all = query(RecordKind::Appeal, Some(tenant), limit);
            let query = RecordQuery { owner, states: states.clone(), ..all };
            found.extend(self.people.records.list(query).await?);
        }
        let page = found.into_iter().skip(filter.offset as usize).take(filter.limit as usize);
        let readable = page.filter_map(|record| {
            Some(AppealRecord { appeal: read_or_report(&record)?, id: record.key.id })
        });
        Ok(readable.collect())
    }

    /// One appeal of a tenant.
    ///
    /// # Errors
    /// When the records do not answer.
    pub async fn find(
        &self,
        tenant: &TenantId,
        id: &str,
    ) -> Result<Option<AppealRecord>, PeopleError> {
        Ok(self.people.find_appeal(tenant, id).await?.map(|found| found.record))
    }
}
