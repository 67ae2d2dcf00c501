//! Streaming by windows: parts of a reply that leave before the whole is decided.
//!
//! **Invariant:** a window leaves only after the panel has passed it together with all text before it
//! and found no harm in it by itself, and after that is durable in the ledger.
//! **Invariant:** what left is the beginning of what the decision says was delivered; nothing that a
//! panel did not pass is in it.
//! **Invariant:** once something left, no other candidate is asked for: it could not be taken back.

use super::windows::{Cut, Cutter};
use super::{Asking, Course, Deliberated};
use crate::conclude::{Choice, DeliverError, Reply, Window, entry};
use crate::engine::Engine;
use crate::matter::{Matter, MatterContent, TurnContent, said_bytes};
use crate::settings::StreamPolicy;
use conclave_core::{
    AuditId, Ballot, Candidate, Deliberation, GenerationFailure, Message, Mode, PanelRun, Passage,
    Phase, Reason, Scrutiny, Shortfall, Step, Usage, decide,
};
use conclave_ledger::{Body, Draft, Kind, Value, sha256};
use conclave_money::RequestSize;
use conclave_pii::last_safe_cut;
use conclave_ports::UpstreamRefusal;
use std::borrow::Cow;
use std::sync::Arc;
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
struct Written {
    candidate: Result<Candidate, GenerationFailure>,
    /// The ballots of a veto that ended it.
    vetoed: Option<Vec<Ballot>>,
    /// What the provider said of the request, where it refused it.
    upstream: Option<UpstreamRefusal>,
}

impl Written {
    fn new(candidate: Result<Candidate, GenerationFailure>, vetoed: Option<Vec<Ballot>>) -> Self {
        Self { candidate, vetoed, upstream: None }
    }
}

/// What the panel said of a window: of everything so far, and of its end by itself.
struct WindowPanels {
    whole: PanelRun,
    tail: Option<PanelRun>,
}

impl WindowPanels {
    fn each(&self) -> impl Iterator<Item = &PanelRun> {
        std::iter::once(&self.whole).chain(&self.tail)
    }

    fn vetoed(&self) -> Option<&PanelRun> {
        self.each().find(|run| !run.consensus.vetoes.is_empty())
    }

    fn pass(&self) -> bool {
        let is_harmful = |run: &PanelRun| run.consensus.shortfalls.contains(&Shortfall::Harmful);
        self.whole.consensus.delivers() && !self.each().any(is_harmful)
    }
}

/// The text of a reply so far, as guards see it before its end leaves.
struct WindowContent {
    conversation: Arc<[Message]>,
    text: String,
}

impl MatterContent for WindowContent {
    fn texts(&self, phase: Phase) -> Vec<Cow<'_, str>> {
        match phase {
            Phase::Before => self.conversation.iter().map(|one| one.content.as_text()).collect(),
            Phase::After => vec![Cow::Borrowed(&self.text)],
        }
    }

    fn replace(&mut self, phase: Phase, texts: Vec<Option<String>>) {
        // What was said before is looked at, and was replaced before the model saw it.
        if let (Phase::After, Some(Some(text))) = (phase, texts.into_iter().next()) {
            self.text = text;
        }
    }

    fn size(&self, _output_tokens_max: Option<u64>) -> RequestSize {
        RequestSize::default()
    }
}

impl Engine {
    /// Whether parts of a reply to this turn may leave before the whole is decided. Where most is at
    /// stake they may not, whatever the policy says.
    pub(crate) fn may_release(&self, matter: &Matter<TurnContent>) -> bool {
        self.settings.stream == StreamPolicy::Windowed
            && matter.content.turn.choices <= 1
            // Every window has a panel of its own: what is reserved covers two for a whole reply.
            && self.steward.as_ref().is_none_or(|steward| steward.judges_for_free())
            && matter.scrutiny < Scrutiny::Strict
            && !matter.crisis().is_crisis()
            && matter.context.mode != Mode::ChildSafe
            && !matter.context.minor
    }

    /// The loop of a deliberation, with windows that leave meanwhile.
    pub(crate) async fn deliberate_in_windows(
        &self,
        course: &Course<'_>,
        released: UnboundedSender<Progress>,
    ) -> Choice {
        let mut deliberation = Deliberation::new(course.limits);
        let mut model_time = Duration::ZERO;
        let mut upstream = None;
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
                    let written = self.write(course, attempt, reasons, &mut stream).await;
                    model_time += asked.elapsed();
                    upstream = written.upstream;
                    if course.was_silent(&written.candidate) {
                        deliberation.expire();
                    }
                    deliberation.generated(written.candidate);
                    if let Some(ballots) = written.vetoed {
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
        let attempts = deliberation.into_attempts();
        let done = Deliberated { verdict, attempts, model_time, upstream };
        let mut choice = self.close(course, done).await;
        choice.released = stream.text;
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
        let asked = course.request(0, attempt, reasons);
        let asked = course.model.generate_in_pieces(asked, sender);
        let asking = Asking { asked, patience_ends: course.deadline };
        let mut writing = std::pin::pin!(course.answer_in_time(attempt, asking));
        let mut cutter = Cutter::default();
        let written = loop {
            tokio::select! {
                biased;
                Some(piece) = pieces.recv() => cutter.push(&piece),
                written = &mut writing => break written,
            }
            if let Some(ballots) = self.pass_windows(course, &mut cutter, stream).await {
                let input_bytes = said_bytes(&course.turn().conversation);
                let candidate = Ok(cut_off(cutter.text(), input_bytes));
                return Written::new(candidate, Some(ballots));
            }
        };
        let candidate = match written.candidate {
            Ok(candidate) => candidate,
            failed => return Written { upstream: written.upstream, ..Written::new(failed, None) },
        };
        // A model may have finished before its last pieces were looked at.
        while let Ok(piece) = pieces.try_recv() {
            cutter.push(&piece);
        }
        if let Some(ballots) = self.pass_windows(course, &mut cutter, stream).await {
            return Written::new(Ok(candidate), Some(ballots));
        }
        // The last sentences never closed a window; by themselves they are looked at all the same.
        let last = candidate.text.get(cutter.tail()..).filter(|_| cutter.tail() > 0);
        let run = self.judged(course, last.unwrap_or_default()).await;
        let vetoed = run.filter(|run| !run.consensus.vetoes.is_empty()).map(|run| run.ballots);
        Written::new(Ok(candidate), vetoed)
    }

    /// Passes every window that has closed; the ballots of a veto end it.
    async fn pass_windows(
        &self,
        course: &Course<'_>,
        cutter: &mut Cutter,
        stream: &mut Stream,
    ) -> Option<Vec<Ballot>> {
        while let Some(cut) = cutter.next_window().filter(|_| !stream.is_held) {
            let vetoed = self.pass_window(course, cutter.text(), cut, stream).await;
            if vetoed.is_some() {
                return vetoed;
            }
        }
        None
    }

    /// Puts the text so far before the panel, and its end by itself. Passed, what is new of it leaves;
    /// objected to, it waits for what comes next, which may put it right; vetoed, the ballots are given
    /// back.
    async fn pass_window(
        &self,
        course: &Course<'_>,
        text: &str,
        cut: Cut,
        stream: &mut Stream,
    ) -> Option<Vec<Ballot>> {
        let window = text.get(..cut.end)?;
        let whole = self.judged(course, window).await?;
        let tail = match window.get(cut.tail..).filter(|_| cut.tail > 0) {
            Some(tail) => self.judged(course, tail).await,
            None => None,
        };
        let panels = WindowPanels { whole, tail };
        if let Some(vetoed) = panels.vetoed() {
            return Some(vetoed.ballots.clone());
        }
        if panels.pass() {
            match self.guard_window(course, text, cut.end).await {
                Some(sent) => self.release(course, &sent, &panels, stream).await,
                // What somebody must decide about waits for the end.
                None => stream.is_held = true,
            }
        }
        None
    }

    /// The text up to the end of a window as guards let it leave: what identifies people is replaced or put
    /// back in it, and nothing is cut that may still become such a thing; what has come after the window
    /// shows whether its last sentence has ended. `None` where it must wait.
    async fn guard_window(&self, course: &Course<'_>, text: &str, end: usize) -> Option<String> {
        if !course.matter.tokens.is_empty() && may_be_json(text) {
            return None;
        }
        let end = last_safe_cut(text, end);
        let content = WindowContent {
            conversation: Arc::clone(&course.turn().conversation),
            text: text.get(..end)?.to_owned(),
        };
        let mut window = course.matter.with_content(content);
        match self.guard(&mut window, Phase::After).await {
            Passage::Open => Some(window.content.text),
            Passage::Held | Passage::Closed => None,
        }
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
        panels: &WindowPanels,
        stream: &mut Stream,
    ) {
        // What left stays as it was, so that only what goes on from it can leave.
        let Some(fresh) = text.strip_prefix(&stream.text).filter(|fresh| !fresh.is_empty()) else {
            return;
        };
        let start = stream.text.len();
        let end = text.len();
        let mut salt = [0; 32];
        self.entropy.fill(&mut salt);
        let who = &course.matter.who;
        let draft = Draft {
            audit: Some(course.matter.id.0.into_bytes()),
            subject: who.subject,
            session: Some(who.session),
            public: Value::map([
                ("index", entry::length(stream.windows.len())),
                ("start", entry::length(start)),
                ("end", entry::length(end)),
                ("text", Value::Bytes(sha256(&[&salt, fresh.as_bytes()]).to_vec())),
                ("crisis", Value::Bool(course.limits.crisis)),
                ("bars", entry::bars(course.limits.bars)),
                ("panel", entry::panel(&panels.whole)),
                ("tail", panels.tail.as_ref().map_or(Value::Null, entry::panel)),
            ]),
            ..self.settings.draft(Kind::Window, who.tenant)
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
            id: course.matter.id,
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

/// Whether a reply may be JSON as a whole. What is put back in JSON is written as its strings need it, and
/// whether it is JSON only its end shows, so that no window of it can leave.
fn may_be_json(text: &str) -> bool {
    let text = text.trim_start();
    let is_list = |inner: &str| inner.trim_start().starts_with(['{', '[', '"', ']']);
    text.starts_with('{') || text.strip_prefix('[').is_some_and(is_list)
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
