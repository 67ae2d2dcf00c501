//! What a run says, as guards see it: the caller's input, the material of others, and the result.

use super::model::CALLS_MAX;
use crate::{Recipe, RunContext, Transcript, Work, prompt};
use conclave_core::Phase;
use conclave_engine::{ExcessTokens, MatterContent};
use conclave_money::{MESSAGE_TOKENS, RequestSize};
use serde_json::Value;
use std::borrow::Cow;
use std::collections::HashSet;
use std::sync::Arc;

/// How deep JSON is walked; requests are refused at half of it.
const DEPTH_MAX: usize = 128;
/// Members that name things and are no words of people.
const NAMES: [&str; 5] = ["transcript_id", "transcript_ids", "id", "source_id", "storyteller_id"];
/// The member that says who speaks.
const SPEAKER: &str = "speaker";
/// Members of an input that are the material of others.
const MATERIAL: [&str; 6] =
    ["transcripts", "raw_content", "ticket_thread", "profile_context", "request", "response"];

/// The texts of one run.
pub(crate) struct RunContent {
    pub recipe: Arc<Recipe>,
    /// The input as a model may see it.
    pub input: Value,
    /// The transcripts as a model may see them.
    pub transcripts: Vec<Transcript>,
    /// The circumstances as a model may see them.
    pub told: RunContext,
    /// What came of it.
    pub output: Option<Value>,
}

impl RunContent {
    /// Calls `see` with the name of each member and its text.
    fn each_place<'a>(&'a self, phase: Phase, see: &mut impl FnMut(&'a str, &'a str)) {
        if phase == Phase::After {
            if let Some(output) = &self.output {
                each_text(output, "", 0, see);
            }
            return;
        }
        each_text(&self.input, "", 0, see);
        for segment in self.transcripts.iter().flat_map(|one| &one.segments) {
            see(SPEAKER, &segment.speaker);
            see("text", &segment.text);
        }
        see("purpose", &self.told.purpose);
        let stated = self.told.cultural_affiliations.iter().chain(&self.told.consent_scope);
        stated.for_each(|text| see("", text));
    }

    fn each_place_mut(&mut self, phase: Phase, change: &mut impl FnMut(&mut String)) {
        if phase == Phase::After {
            if let Some(output) = &mut self.output {
                each_text_mut(output, 0, change);
            }
            return;
        }
        each_text_mut(&mut self.input, 0, change);
        for segment in self.transcripts.iter_mut().flat_map(|one| &mut one.segments) {
            change(&mut segment.speaker);
            change(&mut segment.text);
        }
        change(&mut self.told.purpose);
        let stated = self.told.cultural_affiliations.iter_mut();
        stated.chain(&mut self.told.consent_scope).for_each(change);
    }
}

impl MatterContent for RunContent {
    fn texts(&self, phase: Phase) -> Vec<Cow<'_, str>> {
        let mut all = Vec::new();
        self.each_place(phase, &mut |_, text| all.push(Cow::Borrowed(text)));
        all
    }

    fn speakers(&self, phase: Phase) -> HashSet<Cow<'_, str>> {
        let mut all = HashSet::new();
        self.each_place(phase, &mut |name, text| {
            if name == SPEAKER {
                all.insert(Cow::Borrowed(text));
            }
        });
        all
    }

    fn replace(&mut self, phase: Phase, texts: Vec<Option<String>>) {
        let mut texts = texts.into_iter();
        self.each_place_mut(phase, &mut |place| {
            if let Some(Some(text)) = texts.next() {
                *place = text;
            }
        });
    }

    fn own_words(&self) -> String {
        let Value::Object(members) = &self.input else { return String::new() };
        let own = members.iter().filter(|(name, _)| !MATERIAL.contains(&name.as_str()));
        own.flat_map(|(_, member)| texts(member)).collect::<Vec<_>>().join("\n")
    }

    fn excess_tokens(&self) -> Option<ExcessTokens> {
        // About four bytes make a token.
        let said: usize = self.transcripts.iter().map(Transcript::text_bytes).sum();
        let found = (said + self.input.to_string().len()).div_ceil(4);
        let found = u64::try_from(found).unwrap_or(u64::MAX);
        let limit = u64::from(self.recipe.limits.input_tokens_max);
        (self.recipe.work == Work::Model && found > limit).then_some(ExcessTokens { found, limit })
    }

    /// A token for each byte that a model is told; every model of the recipe may be asked twice, and the
    /// result is judged once.
    fn size(&self, _output_tokens_max: Option<u64>) -> RequestSize {
        let told = prompt(&self.recipe, &self.told, &self.input, &self.transcripts);
        let told = told.map_or(0, |told| told.system.len() + told.user.len());
        let told = u64::try_from(told).unwrap_or(u64::MAX);
        RequestSize {
            prompt_tokens: told.saturating_add(3 * MESSAGE_TOKENS),
            output_tokens: u64::from(self.recipe.limits.output_tokens_max),
            calls: u64::from(CALLS_MAX),
            panels: 1,
        }
    }
}

/// Every text of a JSON value that may hold words of people.
pub(crate) fn texts(value: &Value) -> Vec<String> {
    let mut all = Vec::new();
    each_text(value, "", 0, &mut |_, text| all.push(text.to_owned()));
    all
}

fn each_text<'a>(
    value: &'a Value,
    name: &'a str,
    depth: usize,
    see: &mut impl FnMut(&'a str, &'a str),
) {
    match value {
        Value::String(text) => see(name, text),
        Value::Array(items) if depth < DEPTH_MAX => {
            items.iter().for_each(|item| each_text(item, name, depth + 1, see));
        }
        Value::Object(members) if depth < DEPTH_MAX => {
            let spoken = members.iter().filter(|(name, _)| !NAMES.contains(&name.as_str()));
            spoken.for_each(|(name, member)| each_text(member, name, depth + 1, see));
        }
        _ => {}
    }
}

fn each_text_mut(value: &mut Value, depth: usize, change: &mut impl FnMut(&mut String)) {
    match value {
        Value::String(text) => change(text),
        Value::Array(items) if depth < DEPTH_MAX => {
            items.iter_mut().for_each(|item| each_text_mut(item, depth + 1, change));
        }
        Value::Object(members) if depth < DEPTH_MAX => {
            let spoken = members.iter_mut().filter(|(name, _)| !NAMES.contains(&name.as_str()));
            spoken.for_each(|(_, member)| each_text_mut(member, depth + 1, change));
        }
        _ => {}
    }
}

/// Replaces texts of a JSON value.
pub(crate) fn change_texts(value: &mut Value, change: &mut impl FnMut(&mut String)) {
    each_text_mut(value, 0, change);
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn names_of_things_are_no_words_and_stay() {
        let mut value =
            json!({"transcript_id": "t-1", "text": "one", "list": ["two", {"id": "x"}]});
        assert_eq!(texts(&value), ["one", "two"]);
        change_texts(&mut value, &mut |text| text.make_ascii_uppercase());
        assert_eq!(
            value,
            json!({"transcript_id": "t-1", "text": "ONE", "list": ["TWO", {"id": "x"}]})
        );
    }
}
