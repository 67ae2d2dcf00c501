//! The anchor that is a file: one line for each checkpoint, written by a thread of its own.
//!
//! **Invariant:** whoever hands a checkpoint over never waits for the file. One on a mount that hangs
//! stops neither signing nor, for longer than a few seconds, the end of the program.

use serde_json::json;
use std::collections::VecDeque;
use std::fs::OpenOptions;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// How many checkpoints may wait; the oldest gives way, because every later one vouches for it.
const WAITING_MAX: usize = 1_000;
/// With so many waiting, somebody should look: there is one a second.
const WAITING_TOLD: usize = 10;
/// How long the end of the program waits for what is not written yet.
const END_PATIENCE: Duration = Duration::from_secs(3);

/// Adds one line to a file and makes it durable.
type Append = dyn Fn(&Path, &str) -> io::Result<()> + Send + Sync;

/// A file that gets every checkpoint.
pub struct FileAnchor {
    path: PathBuf,
    queue: Arc<Queue>,
}

#[derive(Default)]
struct Queue {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Default)]
struct State {
    waiting: VecDeque<String>,
    /// Whether one was taken out and is being written.
    writing: bool,
    closed: bool,
    trouble: Option<String>,
}

impl FileAnchor {
    /// Begins to write to a file, which is opened for each line, so that it can be moved away.
    ///
    /// # Errors
    /// When no thread can be started.
    pub fn new(path: PathBuf) -> io::Result<Self> {
        Self::writing_with(path, Box::new(append))
    }

    fn writing_with(path: PathBuf, append: Box<Append>) -> io::Result<Self> {
        let queue = Arc::<Queue>::default();
        let (its, file) = (Arc::clone(&queue), path.clone());
        let run = move || its.write_all(&file, &*append);
        std::thread::Builder::new().name("anchor".to_owned()).spawn(run)?;
        Ok(Self { path, queue })
    }

    /// Hands a checkpoint over.
    pub fn published(&self, size: u64, note: &str) {
        let mut state = self.queue.state();
        state.waiting.push_back(json!({"size": size, "note": note}).to_string());
        if state.waiting.len() > WAITING_MAX {
            state.waiting.pop_front();
        }
        drop(state);
        self.queue.changed.notify_all();
    }

    /// What is wrong, if something is.
    pub fn trouble(&self) -> Option<String> {
        let state = self.queue.state();
        let waiting = state.waiting.len();
        let behind = (waiting >= WAITING_TOLD)
            .then(|| format!("{waiting} checkpoints wait for the anchor {}", self.path.display()));
        state.trouble.clone().or(behind)
    }

    /// Waits until everything is written, for a while; says whether it is.
    pub fn settle(&self, patience: Duration) -> bool {
        let busy = |state: &mut State| state.writing || !state.waiting.is_empty();
        let waited = self.queue.changed.wait_timeout_while(self.queue.state(), patience, busy);
        !waited.unwrap_or_else(PoisonError::into_inner).1.timed_out()
    }
}

impl Drop for FileAnchor {
    fn drop(&mut self) {
        self.queue.state().closed = true;
        self.queue.changed.notify_all();
        if !self.settle(END_PATIENCE) {
            tracing::error!("the last checkpoints could not be anchored in their file in time");
        }
    }
}

impl Queue {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Writes what comes until nothing more can.
    fn write_all(&self, path: &Path, append: &Append) {
        while let Some(line) = self.next() {
            let trouble = append(path, &line).err();
            let trouble = trouble.map(|error| {
                tracing::error!(%error, "a checkpoint could not be anchored in its file");
                format!("cannot write to the anchor {}: {error}", path.display())
            });
            let mut state = self.state();
            (state.trouble, state.writing) = (trouble, false);
            drop(state);
            self.changed.notify_all();
        }
    }

    fn next(&self) -> Option<String> {
        let idle = |state: &mut State| state.waiting.is_empty() && !state.closed;
        let waited = self.changed.wait_while(self.state(), idle);
        let mut state = waited.unwrap_or_else(PoisonError::into_inner);
        let line = state.waiting.pop_front()?;
        state.writing = true;
        Some(line)
    }
}

fn append(path: &Path, line: &str) -> io::Result<()> {
    let mut file = OpenOptions::new().create(true).append(true).open(path)?;
    writeln!(file, "{line}")?;
    file.sync_all()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::mpsc::channel;

    const LONG: Duration = Duration::from_secs(20);

    #[test]
    fn a_file_gets_a_line_for_each_checkpoint_and_trouble_is_told() {
        let dir = tempfile::tempdir().unwrap();
        let anchor = FileAnchor::new(dir.path().join("notes.jsonl")).unwrap();
        anchor.published(1, "a\n\nb\n");
        anchor.published(2, "c\n");
        assert!(anchor.settle(LONG));
        assert_eq!(anchor.trouble(), None);
        drop(anchor);
        let text = std::fs::read_to_string(dir.path().join("notes.jsonl")).unwrap();
        let lines: Vec<serde_json::Value> =
            text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        assert_eq!(
            lines,
            [json!({"size": 1, "note": "a\n\nb\n"}), json!({"size": 2, "note": "c\n"})]
        );
        let anchor = FileAnchor::new(dir.path().join("none/notes.jsonl")).unwrap();
        anchor.published(1, "a\n");
        assert!(anchor.settle(LONG));
        assert!(anchor.trouble().unwrap().contains("cannot write to the anchor"));
    }

    #[test]
    fn a_file_that_hangs_holds_nobody_up_and_is_told() {
        let (free, held) = channel::<()>();
        let held = Mutex::new(held);
        let append = move |_: &Path, _: &str| {
            let _ = held.lock().unwrap().recv();
            Ok(())
        };
        let anchor = FileAnchor::writing_with("hangs".into(), Box::new(append)).unwrap();
        for size in 0..2_000 {
            anchor.published(size, "a\n");
        }
        let told = anchor.trouble().unwrap();
        assert!(told.contains("checkpoints wait for the anchor hangs"), "{told}");
        assert!(anchor.queue.state().waiting.len() <= WAITING_MAX);
        assert!(!anchor.settle(Duration::from_millis(10)));
        drop(free);
        assert!(anchor.settle(LONG));
        assert_eq!(anchor.trouble(), None);
    }
}
