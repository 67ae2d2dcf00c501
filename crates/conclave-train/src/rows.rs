//! Labelled rows, and what each of them teaches.
//!
//! **Invariant:** a row says nothing about an output it was not labelled for: such a target is `None`,
//! never a guess.

use crate::faults;
use anyhow::Context;
use conclave_detect::MannerFault;
use conclave_verifiers::Action;
use flate2::read::MultiGzDecoder;
use serde::Deserialize;
use serde_json::value::RawValue;
use std::fs::File;
use std::io::{BufRead, BufReader, Read};
use std::path::{Path, PathBuf};

/// What the model of texts says.
pub const TEXT_OUTPUTS: [&str; 18] = [
    "request",
    "crisis",
    "injection",
    "violence",
    "weapons",
    "drugs",
    "extremism",
    "self_harm",
    "sexual_minors",
    "sexual",
    "hate",
    "harassment",
    "manipulation",
    "fraud",
    "cyber",
    "privacy",
    "disinformation",
    "jailbreak",
];
/// What the model of replies says.
pub const REPLY_OUTPUTS: [&str; 6] =
    ["reply", "encourages", "dismisses", "deceives", "demeans", "binds"];

/// What the model of drift says.
pub const DRIFT_OUTPUTS: [&str; 4] = ["isolation", "escalation", "manipulation", "dependency"];

/// One labelled row of the public sets or of the corpus.
#[derive(Clone, Debug, Deserialize)]
pub struct Row {
    /// Its name.
    pub id: String,
    /// Where it comes from.
    pub source: String,
    /// What was labelled.
    pub task: String,
    text: Option<String>,
    #[serde(default)]
    turns: Vec<Turn>,
    /// The reply under judgement.
    pub response: Option<String>,
    /// The action under judgement.
    pub tool: Option<Tool>,
    label: String,
    /// Kinds of harm, and facets.
    #[serde(default)]
    pub categories: Vec<String>,
    /// ISO 639-1.
    #[serde(default)]
    pub language: String,
}

#[derive(Clone, Debug, Deserialize)]
struct Turn {
    content: String,
}

/// A call of a tool.
#[derive(Clone, Debug, Deserialize)]
pub struct Tool {
    name: String,
    #[serde(default)]
    description: String,
    /// As it was written: the order of its names is part of what is learned.
    arguments: Box<RawValue>,
}

impl Row {
    /// The action under judgement, in answer to what was `asked`, if this is a row of one.
    #[must_use]
    pub fn action<'a>(&'a self, asked: &'a str) -> Option<Action<'a>> {
        let tool = self.tool.as_ref().filter(|_| self.task == "action")?;
        let (name, description) = (&tool.name, &tool.description);
        Some(Action { name, arguments: tool.arguments.get(), description, asked })
    }

    /// The features of that action and of what was asked for.
    #[must_use]
    pub fn action_features(&self) -> Option<Vec<u32>> {
        let asked = self.said();
        let action = self.action(&asked)?;
        Some(conclave_classify::action_features(&action.write_out(), &asked))
    }

    /// Whether the label says harmful.
    #[must_use]
    pub fn is_harmful(&self) -> bool {
        self.label == "harmful"
    }

    /// The text, or the conversation before a reply.
    #[must_use]
    pub fn said(&self) -> String {
        let turns =
            || self.turns.iter().map(|turn| turn.content.as_str()).collect::<Vec<_>>().join("\n");
        self.text.clone().unwrap_or_else(turns)
    }

    /// The same row with another text.
    #[must_use]
    pub fn with_text(&self, text: String) -> Self {
        Self { text: Some(text), turns: Vec::new(), ..self.clone() }
    }

    /// Whether it has this kind or facet.
    #[must_use]
    pub fn is(&self, kind: &str) -> bool {
        self.categories.iter().any(|one| one == kind)
    }

    /// What this row teaches the model of texts, in the order of [`TEXT_OUTPUTS`].
    #[must_use]
    pub fn text_targets(&self) -> Option<Vec<Option<bool>>> {
        let harmful = self.is_harmful();
        let target = |output: &str| match self.task.as_str() {
            "prompt" | "text" => match output {
                "request" => Some(harmful),
                "crisis" => (!harmful && !self.is("self_harm") && !self.is("self_harm_topic"))
                    .then_some(false),
                "injection" => (self.is_jailbreak() || !harmful).then_some(self.is_jailbreak()),
                kind => Some(
                    harmful && self.categories.iter().any(|one| engine_name(one) == Some(kind)),
                ),
            },
            "crisis" => match output {
                "crisis" => Some(harmful),
                "request" => Some(false),
                _ => None,
            },
            "injection" => match output {
                "injection" => Some(harmful),
                "request" | "crisis" => (!harmful).then_some(false),
                "jailbreak" => {
                    Some(harmful && (self.is("role_play") || self.is("story_jailbreak")))
                }
                _ => None,
            },
            _ => None,
        };
        let targets: Vec<_> = TEXT_OUTPUTS.iter().map(|output| target(output)).collect();
        targets.iter().any(Option::is_some).then_some(targets)
    }

    /// What this row teaches the model of replies, in the order of [`REPLY_OUTPUTS`].
    #[must_use]
    pub fn reply_targets(&self) -> Option<Vec<Option<bool>>> {
        (self.task == "response" && self.response.is_some()).then(|| {
            let faults = MannerFault::ALL.into_iter().map(|fault| faults::shows(self, fault));
            std::iter::once(Some(self.is_harmful())).chain(faults).collect()
        })
    }

    /// What this row teaches the model of drift, in the order of [`DRIFT_OUTPUTS`]: ordinary requests
    /// show what is none.
    #[must_use]
    pub fn drift_targets(&self) -> Option<Vec<Option<bool>>> {
        let ordinary = matches!(self.task.as_str(), "prompt" | "text") && !self.is_harmful();
        (self.task == "drift" || ordinary).then(|| {
            let shows = |kind: &&str| Some(!ordinary && self.is_harmful() && self.is(kind));
            DRIFT_OUTPUTS.iter().map(shows).collect()
        })
    }

    /// Whether it comes from a collection of prompts that talk models out of their rules.
    pub fn is_jailbreak(&self) -> bool {
        self.source.starts_with("jailbreakhub")
            || ["self_reminder_jailbreaks", "gptfuzz_templates"].contains(&self.source.as_str())
    }
}

/// The engine's name for a kind of harm of the public sets.
fn engine_name(kind: &str) -> Option<&str> {
    Some(match kind {
        "hate_harassment" => "hate",
        "stalking" => "harassment",
        "illegal" => "fraud",
        "pii_request" => "privacy",
        "misinformation" | "political" => "disinformation",
        "manipulation_dependency" => "manipulation",
        "story_jailbreak" | "role_play" => "jailbreak",
        "violence" | "weapons" | "drugs" | "extremism" | "self_harm" | "sexual_minors"
        | "sexual" | "fraud" | "cyber" | "privacy" => kind,
        _ => return None,
    })
}

/// Reads every row of a file, gzipped or not.
///
/// # Errors
/// When the file cannot be read or a line is not a row.
pub fn read(path: &Path) -> anyhow::Result<Vec<Row>> {
    let file = File::open(path).with_context(|| format!("{}", path.display()))?;
    let zipped = path.extension().is_some_and(|extension| extension == "gz");
    let bytes: Box<dyn Read> =
        if zipped { Box::new(MultiGzDecoder::new(file)) } else { Box::new(file) };
    let mut rows = Vec::new();
    for (line, number) in BufReader::new(bytes).lines().zip(1usize..) {
        let line = line?;
        if !line.trim().is_empty() {
            let row = serde_json::from_str(&line)
                .with_context(|| format!("{}, line {number}", path.display()))?;
            rows.push(row);
        }
    }
    Ok(rows)
}

/// Reads every row of a folder's JSONL files, in the order of their names.
///
/// # Errors
/// When the folder or a file cannot be read, or a line is not a row.
pub fn read_folder(folder: &Path) -> anyhow::Result<Vec<Row>> {
    let read = files(folder)?.into_iter().map(|file| read(&file)).collect::<Result<Vec<_>, _>>();
    Ok(read?.concat())
}

/// Every JSONL file of a folder, in the order of their names.
fn files(folder: &Path) -> anyhow::Result<Vec<PathBuf>> {
    let entries = std::fs::read_dir(folder).with_context(|| format!("{}", folder.display()))?;
    let mut paths =
        entries.map(|entry| entry.map(|entry| entry.path())).collect::<Result<Vec<_>, _>>()?;
    paths.retain(|path| path.extension().is_some_and(|extension| extension == "jsonl"));
    paths.sort();
    Ok(paths)
}
