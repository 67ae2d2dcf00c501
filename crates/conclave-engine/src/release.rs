//! Streaming by windows: parts of a reply that leave before the whole is decided.
//!
//! **Invariant:** a window leaves only after the panel has passed it together with all text before it
//! and found no harm in it by itself, and after that is durable in the ledger.
//! **Invariant:** what left is the beginning of what the decision says was delivered; nothing that a
//! panel did not pass is in it.
//! **Invariant:** once something left, no other candidate is asked for: it could not be taken back.

use crate::decision::{Choice, Window};
use crate::deliver::{Course, DeliverError, Reply, in_time, request};
use crate::engine::Engine;
use crate::preflight::{Examination, is_crisis};
use crate::record;
use crate::settings::StreamPolicy;
use crate::spans;
use crate::turn::Turn;
use crate::windows::{Cut, Cutter};
use conclave_core::{
    AuditId, Ballot, Candidate, Deliberation, GenerationFailure, Mode, PanelRun, Reason, Scrutiny,
    Shortfall, Step, Usage, decide,
};
use conclave_ledger::{Body, Draft, Kind, Value, sha256};
use conclave_ports::trace::{self, SpanKind};
use std::time::Duration;
use tokio::sync::mpsc::{self, UnboundedSender};
use tokio::time::Instant;

/// How many pieces a model may be ahead of the panel; then it waits.
const PIECES_AHEAD_MAX: usize = 64;

/// What whoever waits for a streamed reply is told.
pub enum Progress {
    /// This text may leave.
    Released(ReleasedWindow),
    /// It is decided; nothing comes after this.
    Decided(Box<Result<Reply, DeliverError>>),
}

/// Text that passed and whose window is durable.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReleasedWindow {
    /// The decision it will belong to.
    pub id: AuditId,
    /// When the turn began, in milliseconds since the Unix epoch.
    pub timestamp_ms: u64,
    /// The text, which goes on from what was released before.
    pub text: String,
}

/// What left so far, and whether more may.
struct Stream {
    released: UnboundedSender<Progress>,
    timestamp_ms: u64,
    text: String,
    windows: Vec<Window>,
    /// Nobody listens any more, or a window could not be recorded: the rest waits for the decision.
    is_held: bool,
}

/// What became of an attempt while it was being written.
type Written = (Result<Candidate, GenerationFailure>, Option<Vec<Ballot>>);

impl Engine {
    /// Whether parts of a reply to this turn may leave before the whole is decided. Where most is at
    /// stake they may not, whatever the policy says.
    pub(crate) fn may_release(&self, turn: &Turn, examined: &Examination) -> bool {
        self.settings.stream == StreamPolicy::Windowed
            && turn.choices <= 1
            // Every window has a panel of its own: what is set aside covers two for a whole reply.
            && self.steward.as_ref().is_none_or(|steward| steward.judges_for_free())
            && examined.scrutiny < Scrutiny::Strict
            && !is_crisis(examined.input.crisis)
            && turn.context.mode != Mode::ChildSafe
            && !turn.context.minor
    }

    /// The loop of a deliberation, with windows that leave meanwhile.
    pub(crate) async fn deliberate_in_windows(
        &self,
        course: &Course<'_>,
        released: UnboundedSender<Progress>,
    ) -> Choice {
        let mut deliberation = Deliberation::new(course.limits);
        let mut model_time = Duration::ZERO;
        let mut stream = Stream {
            released,
            timestamp_ms: self.clock.now_ms(),
            text: String::new(),
            windows: Vec::new(),
            is_held: false,
        };
        let verdict = loop {
            if Instant::now() >= course.deadline {
                deliberation.expire();
            }
            match deliberation.next() {
                // What left cannot be taken back, so nothing else is tried.
                Step::Generate { .. } if !stream.windows.is_empty() => deliberation.expire(),
                Step::Generate { attempt, reasons } => {
                    let asked = Instant::now();
                    let (candidate, ballots) =
                        self.write(course, attempt, reasons, &mut stream).await;
                    model_time += asked.elapsed();
                    deliberation.generated(candidate);
                    if let Some(ballots) = ballots {
                        deliberation.verified(ballots);
                    }
                }
                Step::Verify { .. } => {
                    let Some(candidate) = deliberation.last_candidate() else { continue };
                    let candidate = candidate.clone();
                    deliberation.verified(self.ballots(course, candidate).await);
                }
                Step::Finish(verdict) => break verdict,
            }
        };
        let mut choice = Choice { model_time, ..self.closed(course, deliberation, verdict) };
        choice.delivered.text = joined(&stream.text, choice.delivered.text);
        choice.windows = stream.windows;
        choice
    }

    /// One attempt: the model writes, and every window is judged as it closes. A veto ends it at once,
    /// with what was written so far and the ballots that fell.
    async fn write(
        &self,
        course: &Course<'_>,
        attempt: u8,
        reasons: Vec<Reason>,
        stream: &mut Stream,
    ) -> Written {
        let (sender, mut pieces) = mpsc::channel(PIECES_AHEAD_MAX);
        let asked = request(course, 0, attempt, reasons);
        let input_bytes = record::said_bytes(&course.turn.conversation);
        let answered = in_time(course, course.model.generate_in_pieces(asked, sender));
        let told = |answered: &_| spans::about_model((&course.turn.model, attempt), answered);
        let mut writing = std::pin::pin!(trace::span("chat", SpanKind::Client, answered, told));
        let mut cutter = Cutter::default();
        let written = loop {
            tokio::select! {
                biased;
                Some(piece) = pieces.recv() => cutter.push(&piece),
                written = &mut writing => break written,
            }
            if let Some(ballots) = self.pass_windows(course, &mut cutter, stream).await {
                return (Ok(cut_off(cutter.text(), input_bytes)), Some(ballots));
            }
        };
        let Ok(candidate) = written else { return (written, None) };
        // A model may have finished before its last pieces were looked at.
        while let Ok(piece) = pieces.try_recv() {
            cutter.push(&piece);
        }
        if let Some(ballots) = self.pass_windows(course, &mut cutter, stream).await {
            return (Ok(candidate), Some(ballots));
        }
        // The last sentences never closed a window; by themselves they are looked at all the same.
        let last = candidate.text.get(cutter.tail()..).filter(|_| cutter.tail() > 0);
        let run = self.judged(course, last.unwrap_or_default()).await;
        let vetoed = run.filter(|run| !run.consensus.vetoes.is_empty());
        (Ok(candidate), vetoed.map(|run| run.ballots))
    }

    /// Passes every window that has closed; the ballots of a veto end it.
    async fn pass_windows(
        &self,
        course: &Course<'_>,
        cutter: &mut Cutter,
        stream: &mut Stream,
    ) -> Option<Vec<Ballot>> {
        while let Some(cut) = cutter.next_window().filter(|_| !stream.is_held) {
            let vetoed = self.pass(course, cutter.text(), cut, stream).await;
            if vetoed.is_some() {
                return vetoed;
            }
        }
        None
    }

    /// Puts the text so far before the panel, and its end by itself. Passed, what is new of it leaves;
    /// objected to, it waits for what comes next, which may put it right; vetoed, the ballots are given
    /// back.
    async fn pass(
        &self,
        course: &Course<'_>,
        text: &str,
        cut: Cut,
        stream: &mut Stream,
    ) -> Option<Vec<Ballot>> {
        let text = text.get(..cut.end)?;
        let whole = self.judged(course, text).await?;
        let tail = match text.get(cut.tail..).filter(|_| cut.tail > 0) {
            Some(tail) => self.judged(course, tail).await,
            None => None,
        };
        let runs = || std::iter::once(&whole).chain(&tail);
        if let Some(vetoed) = runs().find(|run| !run.consensus.vetoes.is_empty()) {
            return Some(vetoed.ballots.clone());
        }
        let is_harmful = |run: &PanelRun| run.consensus.shortfalls.contains(&Shortfall::Harmful);
        if whole.consensus.delivers() && !runs().any(is_harmful) {
            // What belongs to a community waits for the end, and for its elders.
            if self.look(course.turn, vec![text.to_owned()]).await.waits() {
                stream.is_held = true;
                return None;
            }
            self.release(course, text, (&whole, tail.as_ref()), stream).await;
        }
        None
    }

    /// What the panel says of a text; nothing of one that says nothing.
    async fn judged(&self, course: &Course<'_>, text: &str) -> Option<PanelRun> {
        if text.trim().is_empty() {
            return None;
        }
        let candidate = Candidate { text: text.to_owned(), ..Candidate::default() };
        let ballots = self.ballots(course, candidate).await;
        let consensus = decide(&ballots, course.limits.bars, course.limits.crisis);
        Some(PanelRun { ballots, consensus })
    }

    /// Makes a window durable, and only then lets it leave.
    async fn release(
        &self,
        course: &Course<'_>,
        text: &str,
        (whole, tail): (&PanelRun, Option<&PanelRun>),
        stream: &mut Stream,
    ) {
        let (start, end) = (stream.text.len(), text.len());
        let mut salt = [0; 32];
        self.entropy.fill(&mut salt);
        let fresh = text.get(start..).unwrap_or_default();
        let who = &course.examined.who;
        let draft = Draft {
            kind: Kind::Window,
            audit: Some(course.examined.id.0.into_bytes()),
            tenant: who.tenant,
            subject: who.subject,
            session: Some(who.session),
            parent: None,
            policy: self.settings.policy,
            directives: self.settings.directives,
            build: self.settings.build.clone(),
            public: Value::map([
                ("index", record::length(stream.windows.len())),
                ("start", record::length(start)),
                ("end", record::length(end)),
                ("text", Value::Bytes(sha256(&[&salt, fresh.as_bytes()]).to_vec())),
                ("crisis", Value::Bool(course.limits.crisis)),
                ("bars", record::bars(course.limits.bars)),
                ("panel", record::panel(whole)),
                ("tail", tail.map_or(Value::Null, record::panel)),
            ]),
        };
        let appended = match self.ledger.append(draft, Body::empty()).await {
            Ok(appended) => appended,
            Err(error) => {
                tracing::warn!(%error, "a window could not be recorded; the rest waits");
                stream.is_held = true;
                return;
            }
        };
        stream.windows.push(Window { start, end, salt, leaf_hash: appended.leaf_hash });
        let released = ReleasedWindow {
            id: course.examined.id,
            timestamp_ms: stream.timestamp_ms,
            text: fresh.to_owned(),
        };
        stream.text = text.to_owned();
        // Nobody to send it to: what follows is judged as a whole, once.
        stream.is_held = stream.released.send(Progress::Released(released)).is_err();
    }
}

/// What was written until a veto, and its tokens by our own count. Nobody saw what its provider counts, so
/// that it is charged at its most.
fn cut_off(text: &str, input_bytes: usize) -> Candidate {
    let usage = Usage {
        input_tokens: Usage::tokens_of(input_bytes),
        output_tokens: Usage::tokens_of(text.len()),
    };
    Candidate { text: text.to_owned(), usage, is_cut_off: true, ..Candidate::default() }
}

/// The whole of what a person gets, beginning with what left.
pub(crate) fn joined(released: &str, delivered: String) -> String {
    if delivered.starts_with(released) {
        return delivered;
    }
    if delivered.is_empty() {
        return released.to_owned();
    }
    format!("{released}\n\n{delivered}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_left_is_the_beginning_of_what_was_delivered() {
        for (released, delivered, whole) in [
            ("", "All of it.", "All of it."),
            ("One.", "One. Two.", "One. Two."),
            ("One.", "We cannot go on.", "One.\n\nWe cannot go on."),
            ("One.", "", "One."),
        ] {
            assert_eq!(joined(released, delivered.to_owned()), whole);
        }
    }
}
