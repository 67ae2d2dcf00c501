//! Rows of labelled cases, and the panel that judges them.

use conclave_core::{
    Ballot, Candidate, Category, Consensus, Message, Mode, Role, Score, Scrutiny, ToolCall,
    TurnContext, Vote, decide, intake,
};
use conclave_detect::{Detector, Reading, Signal, SignalKind};
use conclave_verifiers::{Case, Judge};
use serde::Deserialize;
use std::sync::Arc;

/// One labelled case.
#[derive(Clone, Deserialize)]
pub struct Row {
    #[serde(default)]
    pub pair: usize,
    #[serde(default)]
    pub split: String,
    #[serde(default)]
    pub side: String,
    pub turns: Vec<Turn>,
    pub reply: String,
    #[serde(default)]
    pub expect: String,
    #[serde(default)]
    pub crisis: f32,
    #[serde(default)]
    pub input_harm: f32,
    #[serde(default)]
    pub reply_harm: f32,
    pub category: Option<String>,
    pub tool: Option<Tool>,
}

/// One message.
#[derive(Clone, Deserialize)]
pub struct Turn {
    pub role: String,
    pub content: String,
}

/// One tool call.
#[derive(Clone, Deserialize)]
pub struct Tool {
    pub name: String,
    pub arguments: String,
}

impl Row {
    /// The rows of a file.
    pub fn all(text: &str) -> Vec<Self> {
        let lines = text.lines().filter(|line| !line.trim().is_empty());
        lines
            .map(|line| serde_json::from_str(line).unwrap_or_else(|e| panic!("{e}: {line}")))
            .collect()
    }

    /// A bare row.
    pub fn of(turns: Vec<Turn>, reply: String) -> Self {
        Self {
            pair: 0,
            split: String::new(),
            side: String::new(),
            turns,
            reply,
            expect: String::new(),
            crisis: 0.0,
            input_harm: 0.0,
            reply_harm: 0.0,
            category: None,
            tool: None,
        }
    }

    /// The case a verifier is shown, with readings as the row states them.
    pub fn case(&self) -> Case {
        let category = self.category.as_deref().and_then(Category::parse);
        let mut input = reading(self.input_harm, category);
        input.crisis = Score::new(self.crisis);
        let reply = stated(self);
        Case::new(
            self.conversation(),
            self.candidate(),
            TurnContext::default(),
            input.into(),
            reply,
        )
    }

    /// The case a verifier is shown, with readings as the detector gives them.
    pub fn case_read_by(&self, detector: &Detector) -> Case {
        let turns: Vec<_> = self
            .turns
            .iter()
            .map(|turn| (Role::parse(&turn.role).unwrap_or(Role::User), turn.content.as_str()))
            .collect();
        let input = detector.read_conversation(&turns, Mode::Normal).last;
        let reply = detector.read(&self.reply, Mode::Normal);
        let context = TurnContext::default();
        Case::new(self.conversation(), self.candidate(), context, input.into(), reply)
    }

    /// The conversation.
    pub fn conversation(&self) -> Arc<[Message]> {
        let role = |turn: &Turn| Role::parse(&turn.role).expect("a role");
        self.turns.iter().map(|turn| Message::text(role(turn), turn.content.clone())).collect()
    }

    /// The candidate.
    pub fn candidate(&self) -> Candidate {
        let calls = self.tool.iter().map(|tool| ToolCall {
            id: "call".into(),
            name: tool.name.clone(),
            arguments: tool.arguments.clone(),
        });
        Candidate { text: self.reply.clone(), tool_calls: calls.collect(), ..Candidate::default() }
    }
}

/// What the detector would say of the reply, as the row states it.
pub fn stated(row: &Row) -> Reading {
    reading(row.reply_harm, row.category.as_deref().and_then(Category::parse))
}

fn reading(harm: f32, category: Option<Category>) -> Reading {
    let mut reading = Reading::empty(Mode::Normal);
    reading.harm = Score::new(harm);
    reading.harm_unamplified = reading.harm;
    if let Some(category) = category.filter(|_| harm > 0.0) {
        reading.categories.insert(category, reading.harm);
    }
    // What a row states is certain, and no doubt.
    if harm > 0.0 {
        reading.signals.push(Signal {
            kind: SignalKind::Pattern,
            category: category.unwrap_or(Category::Violence),
            start: 0,
            end: 1,
            weight: Score::ONE,
            source: "stated".into(),
        });
    }
    reading
}

/// Every verifier's ballot.
pub fn ballots(judges: &[Box<dyn Judge>], case: &Case) -> Vec<Ballot> {
    judges.iter().map(|judge| intake(judge.seat(), Ok(judge.judge(case)), 0)).collect()
}

/// What the panel decides.
pub fn panel(judges: &[Box<dyn Judge>], case: &Case, scrutiny: Scrutiny) -> Consensus {
    decide(&ballots(judges, case), scrutiny.bars(), case.input.crisis.is_crisis())
}

/// What was objected to, for a message.
pub fn objections(judges: &[Box<dyn Judge>], case: &Case) -> String {
    let mut told = Vec::new();
    for judge in judges {
        if let Some(opinion) = judge.judge(case).filter(|opinion| opinion.vote != Vote::Safe) {
            told.push(format!(
                "{} {} {:.2} {:?} {:?}",
                judge.seat().verifier,
                opinion.vote.as_str(),
                opinion.confidence,
                opinion.reasons,
                opinion.flagged_patterns
            ));
        }
    }
    told.join("; ")
}
