//! A database that came back older than it was: noticed, and made whole again where that is certain.
//!
//! What this replica saw of the log is compared with the database whenever that is opened: the last batch it
//! handed over, and the last checkpoint it knows of, each a size and a root. A database with less was put
//! back from a backup, or is a standby that was behind.
//!
//! **Invariant:** nothing new is appended to such a database before it holds again what was seen. What is
//! handed over again comes to stand where it stood, or is not handed over: somebody may have a proof of it.
//!
//! **Invariant:** only an operator gives entries up, and the log says so.

use super::journal::{Journal, Run};
use super::reader::{BatchLimit, SpoolReader};
use super::{BATCH_BYTES, DrainError, Drainer, DrainerParts, LogDatabase, Supply, TakeEntry};
use crate::db::{Hole, LogState};
use crate::error::StoreError;
use crate::publish::{LAST_FILE, last_note};
use crate::replica::Identity;
use crate::snapshot::{Tiles, ask};
use crate::spool::{Frame, SegmentState};
use conclave_failpoint as failpoint;
use conclave_ledger::{Draft, Gap, Hash, Kind, Leaf, Value, empty_root, root_at};
use std::collections::VecDeque;
use std::io;

/// More holes than this are as bad as this many.
const HOLES_MAX: usize = 1_000;

/// What an operator accepted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AcceptedRestore {
    /// How many entries the log was known to have.
    pub old_size: u64,
    /// Its root then; only a replica that is lost may have known it.
    pub old_root: Option<[u8; 32]>,
    /// How many it had when it was accepted.
    pub new_size: u64,
    /// Its root then.
    pub new_root: [u8; 32],
}

/// What was seen of the log once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Claim {
    size: u64,
    root: Hash,
}

impl Claim {
    /// A log without entries.
    fn nothing() -> Self {
        Self { size: 0, root: empty_root() }
    }
}

/// The log as it is now, in the light of what was seen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Standing {
    Whole,
    /// It has fewer entries.
    Behind(Claim, Claim),
    /// It has as many, and others.
    Contradicted(Claim, Claim),
}

impl Standing {
    const fn claim(&self) -> Option<(Claim, Claim)> {
        match self {
            Self::Whole => None,
            Self::Behind(now, seen) | Self::Contradicted(now, seen) => Some((*now, *seen)),
        }
    }
}

const ADVICE: &str = "nothing is signed or appended: put the newer database back, or accept this one \
                      with `conclave ledger accept-restore`";

fn refused(what: &str) -> DrainError {
    DrainError::Restored(format!("restored_database: {what}; {ADVICE}"))
}

impl Drainer {
    /// Compares the database with what was seen of it, and makes it whole if it is not.
    ///
    /// # Errors
    /// When others have to go first, or an operator has to decide.
    pub(super) fn look_back(
        &mut self,
        log: &mut dyn LogDatabase,
        segments: &[SegmentState],
    ) -> Result<(), DrainError> {
        self.journal.settle(log.taken(self.parts.identity), log.size())?;
        let standing = self.compare()?;
        if let Some((now, seen)) = standing.claim() {
            let what = format!(
                "the database was put back: it has {} entries, {} were seen",
                now.size, seen.size
            );
            if self.parts.progress.set_restored(Some(what)) {
                tracing::error!(now = now.size, seen = seen.size, "the database was put back");
            }
            let made_good = self.make_good(log, standing, (now, seen), segments);
            if let Err(error) = &made_good {
                self.parts.progress.set_restored(Some(error.to_string()));
            }
            if !matches!(made_good, Err(DrainError::Waiting(_))) {
                self.replay = None;
            }
            made_good?;
            tracing::warn!(seen = seen.size, "the database holds again what it held");
        } else {
            self.look_at_others(log)?;
        }
        if self.journal.is_replaying() {
            self.finish_replay(log, segments)?;
        }
        log.ask_to_wait(0)?;
        self.parts.progress.set_restored(None);
        Ok(())
    }

    fn make_good(
        &mut self,
        log: &mut dyn LogDatabase,
        standing: Standing,
        (now, seen): (Claim, Claim),
        segments: &[SegmentState],
    ) -> Result<(), DrainError> {
        let accepted = log.accepted(self.journal.accepted())?;
        if let Some(accepted) = accepted.filter(|accepted| seen.size <= accepted.old_size) {
            return self.begin_anew(log, accepted.number, seen, segments);
        }
        let made_whole = if matches!(standing, Standing::Contradicted(..)) {
            Err(refused(&format!(
                "it has {} entries, and they are not those that were seen, {} of them",
                now.size, seen.size
            )))
        } else {
            self.make_whole(log, seen, segments)
        };
        match made_whole {
            Err(DrainError::Restored(_) | DrainError::Waiting(_)) if self.parts.accept_restore => {
                self.accept(log, seen, segments)
            }
            made_whole => made_whole,
        }
    }

    /// Here nothing is missing. What others accepted does not concern this replica; what others wait for
    /// is given up if an operator says so.
    fn look_at_others(&mut self, log: &mut dyn LogDatabase) -> Result<(), DrainError> {
        let awaited = log.awaited()?;
        if self.parts.accept_restore && awaited > log.size() {
            let (now, number) = self.write_acceptance(log, awaited, None)?;
            self.journal.note_accepted(number)?;
            self.tell_accepted(awaited, None, now);
        } else if let Some(accepted) = log.accepted(self.journal.accepted())? {
            self.journal.note_accepted(accepted.number)?;
        }
        Ok(())
    }

    /// Hands over again what is missing, each entry to its old place.
    fn make_whole(
        &mut self,
        log: &mut dyn LogDatabase,
        seen: Claim,
        segments: &[SegmentState],
    ) -> Result<(), DrainError> {
        log.ask_to_wait(seen.size)?;
        self.replay(log, segments, true)?;
        match self.compare()? {
            Standing::Whole => Ok(()),
            Standing::Behind(now, seen) if !log.is_alone()? => Err(DrainError::Waiting(format!(
                "restored_database: it has {} of {} entries; the rest has to come from other replicas",
                now.size, seen.size
            ))),
            Standing::Behind(now, seen) | Standing::Contradicted(now, seen) => {
                Err(refused(&format!(
                    "after everything that was kept it has {} entries, and {} were seen",
                    now.size, seen.size
                )))
            }
        }
    }

    /// What was seen: the last batch, and the last checkpoint.
    fn claims(&self) -> Vec<Claim> {
        let batch = self.journal.last().map(|run| Claim { size: run.end, root: run.root });
        // A note that cannot be read keeps the publisher from signing; here it says nothing.
        let note = last_note(&self.parts.dir).ok().flatten();
        let note = note.map(|note| Claim { size: note.size, root: note.root });
        batch.into_iter().chain(note).collect()
    }

    fn compare(&self) -> Result<Standing, DrainError> {
        let mut claims = self.claims();
        claims.sort_by_key(|claim| claim.size);
        let compared = ask(&*self.parts.snapshots, |log| {
            let now = log.head()?.map_or_else(Claim::nothing, |(size, root)| Claim { size, root });
            let size = now.size;
            // The largest says how much is missing, or what an operator would give up.
            let Some(most) = claims.last().copied() else { return Ok(Standing::Whole) };
            for seen in claims.iter().take_while(|seen| seen.size <= size) {
                let there = root_at(&mut Tiles(log), seen.size);
                if there.map_err(|error| StoreError::Key(error.to_string()))? != seen.root {
                    return Ok(Standing::Contradicted(now, most));
                }
            }
            if most.size > size {
                return Ok(Standing::Behind(now, most));
            }
            Ok(Standing::Whole)
        });
        Ok(compared?)
    }

    /// Writes down that the log goes on from where it is, and tells other replicas.
    fn accept(
        &mut self,
        log: &mut dyn LogDatabase,
        seen: Claim,
        segments: &[SegmentState],
    ) -> Result<(), DrainError> {
        let (now, number) = self.write_acceptance(log, seen.size, Some(seen.root))?;
        self.begin_anew(log, number, seen, segments)?;
        self.tell_accepted(seen.size, Some(seen.root), now);
        Ok(())
    }

    /// The entry that says so, and the row that others follow; says how the log is and the row's number.
    fn write_acceptance(
        &self,
        log: &mut dyn LogDatabase,
        old_size: u64,
        old_root: Option<Hash>,
    ) -> Result<(Claim, u64), DrainError> {
        let head = ask(&*self.parts.snapshots, |log| log.head())?;
        let now = head.map_or_else(Claim::nothing, |(size, root)| Claim { size, root });
        let sizes = [("old_size", old_size.into()), ("new_size", now.size.into())];
        let root = Some(("new_root", Value::Bytes(now.root.to_vec())));
        let old_root = old_root.map(|root| ("old_root", Value::Bytes(root.to_vec())));
        let public = Value::map(sizes.into_iter().chain(root).chain(old_root));
        let draft = Draft { public, ..self.parts.stamps.draft(Kind::Restore) };
        self.parts.append_all(std::iter::once(draft))?;
        Ok((now, log.accept(old_size, self.journal.accepted())?))
    }

    fn tell_accepted(&self, old_size: u64, old_root: Option<Hash>, now: Claim) {
        let (new_size, new_root) = (now.size, now.root);
        let accepted = AcceptedRestore { old_size, old_root, new_size, new_root };
        self.parts.progress.set_accepted(accepted);
    }

    /// Forgets where entries stood. What is still here is handed over again, wherever it comes to stand.
    fn begin_anew(
        &mut self,
        log: &mut dyn LogDatabase,
        number: u64,
        seen: Claim,
        segments: &[SegmentState],
    ) -> Result<(), DrainError> {
        let note = self.parts.dir.join(LAST_FILE);
        let aside = self.parts.dir.join(format!("{LAST_FILE}-before-{}", seen.size));
        match std::fs::rename(&note, &aside) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error.into()),
            _ => {}
        }
        failpoint::reach("restore.put_aside");
        self.journal.forget(number)?;
        failpoint::reach("restore.accepted");
        self.finish_replay(log, segments)
    }

    /// Hands over again what is still here after an operator has accepted the log as it is; also if an
    /// earlier run was stopped before that was done.
    fn finish_replay(
        &mut self,
        log: &mut dyn LogDatabase,
        segments: &[SegmentState],
    ) -> Result<(), DrainError> {
        self.replay(log, segments, false)?;
        self.replay = None;
        Ok(self.journal.note_replayed()?)
    }

    /// Hands over again what the database has lost of this replica; in place, or wherever it comes to stand.
    fn replay(
        &mut self,
        log: &mut dyn LogDatabase,
        segments: &[SegmentState],
        in_place: bool,
    ) -> Result<(), DrainError> {
        let mut replay = match self.replay.take().filter(|replay| replay.in_place == in_place) {
            Some(replay) => replay,
            None => self.prepare(log, segments, in_place)?,
        };
        let outcome = replay.run(log, &self.parts, &mut self.journal);
        // Whoever waits for others goes on from there, instead of reading everything again.
        self.replay = Some(replay);
        outcome
    }

    /// Finds out what there is to hand over, and that it is all there.
    fn prepare(
        &self,
        log: &mut dyn LogDatabase,
        segments: &[SegmentState],
        in_place: bool,
    ) -> Result<Replay, DrainError> {
        let (parts, journal) = (&self.parts, &self.journal);
        let taken = log.taken(parts.identity);
        let mut sources = parts.kept.segments()?;
        let found = survey(&sources, segments, parts, taken.max(journal.last_n()), taken)?;
        sources.extend_from_slice(segments);
        let reader = SpoolReader::new(parts.quarantine.clone());
        let runs = VecDeque::new();
        let mut replay = Replay { reader, sources, runs, in_place, is_done: false };
        if !in_place {
            return Ok(replay);
        }
        if let Some((from, to)) = found.hole {
            let what = format!("entries {from} to {to} of this replica are not kept any more");
            return Err(refused(&what));
        }
        replay.runs = journal.runs_after(taken)?.into();
        replay.runs.retain(|run| run.n_last > taken);
        replay.is_done = replay.runs.is_empty() && !found.has_lost;
        if replay.runs.is_empty() && !replay.is_done && !log.is_alone()? {
            return Err(refused("it is not known where the entries of this replica stood"));
        }
        Ok(replay)
    }
}

/// What is handed over again, and how far that has come.
pub(super) struct Replay {
    reader: SpoolReader,
    sources: Vec<SegmentState>,
    /// Where the entries stood; without any, their numbers say the order.
    runs: VecDeque<Run>,
    in_place: bool,
    is_done: bool,
}

impl Replay {
    fn run(
        &mut self,
        log: &mut dyn LogDatabase,
        parts: &DrainerParts,
        journal: &mut Journal,
    ) -> Result<(), DrainError> {
        let limit = BatchLimit { entries: parts.entries_max, bytes: BATCH_BYTES };
        while !self.is_done {
            let run = self.runs.front().copied();
            let mut feed = Again {
                parts,
                journal,
                reader: &mut self.reader,
                sources: &self.sources,
                limit,
                run,
                taken: 0,
                in_place: self.in_place,
            };
            let outcome = log.append(&mut feed)?;
            let taken = feed.taken;
            failpoint::reach("restore.handed_over");
            journal.confirm()?;
            match run {
                Some(run) if taken >= run.n_last => {
                    self.runs.pop_front();
                    self.is_done = self.runs.is_empty();
                }
                Some(_) if outcome.read == 0 => {
                    return Err(refused("what is kept does not lead to what was seen"));
                }
                Some(_) => {}
                None => self.is_done = outcome.read == 0,
            }
        }
        Ok(())
    }
}

/// What the segments hold of what the database has lost.
struct Found {
    /// Numbers that are neither there nor stated as missing.
    hole: Option<(u64, u64)>,
    /// Whether a kept segment, whose entries the database had, holds something it lacks.
    has_lost: bool,
}

/// Looks through everything that is left for numbers above `taken`, up to `known`.
fn survey(
    kept: &[SegmentState],
    live: &[SegmentState],
    parts: &DrainerParts,
    known: u64,
    taken: u64,
) -> Result<Found, DrainError> {
    let Identity { replica, epoch } = parts.identity;
    let (mut next, mut holes, mut gaps) = (taken + 1, Vec::new(), Vec::new());
    let mut look = |sources: &[SegmentState]| -> Result<u64, DrainError> {
        let everything = BatchLimit { entries: usize::MAX, bytes: usize::MAX };
        let mut reader = SpoolReader::new(parts.quarantine.clone());
        reader.read(sources, everything, |frame| {
            if (frame.id.replica, frame.id.epoch) != (replica, epoch) {
                return Ok::<(), DrainError>(());
            }
            if frame.id.n > next && holes.len() < HOLES_MAX {
                holes.push((next, frame.id.n - 1));
            }
            next = next.max(frame.id.n + 1);
            gaps.extend(stated_gap(frame).filter(|_| gaps.len() < HOLES_MAX));
            Ok(())
        })?;
        Ok(next)
    };
    let has_lost = look(kept)? > taken + 1;
    look(live)?;
    if next <= known {
        holes.push((next, known));
    }
    holes.retain(|(from, to)| !gaps.iter().any(|gap: &Gap| gap.covers(replica, epoch, *from, *to)));
    Ok(Found { hole: holes.first().copied(), has_lost })
}

fn stated_gap(frame: &Frame<'_>) -> Option<Gap> {
    let kind = Kind::CoverageGap.as_str().as_bytes();
    // Decoding every leaf would take as long as checking the log.
    frame.leaf.windows(kind.len()).any(|part| part == kind).then_some(())?;
    Gap::from_public(&Leaf::decode(frame.leaf).ok()?.draft.public)
}

/// Entries that are handed over once more.
struct Again<'a> {
    parts: &'a DrainerParts,
    journal: &'a mut Journal,
    reader: &'a mut SpoolReader,
    sources: &'a [SegmentState],
    limit: BatchLimit,
    /// Where these entries stood, if that matters.
    run: Option<Run>,
    /// The largest number the database has.
    taken: u64,
    in_place: bool,
}

/// Why reading ends.
enum Stop {
    End,
    Failed(DrainError),
}

impl From<io::Error> for Stop {
    fn from(error: io::Error) -> Self {
        Self::Failed(error.into())
    }
}

impl Again<'_> {
    fn own(&self, log: &LogState) -> u64 {
        log.taken.get(&self.parts.identity).copied().unwrap_or(0)
    }
}

impl Supply for Again<'_> {
    fn meet(&mut self, log: &LogState, _awaited: u64) -> Result<(), DrainError> {
        self.taken = self.own(log);
        let Some(run) = self.run else { return Ok(()) };
        let there = log.range.size();
        let wanted = if self.taken < run.n_first {
            run.first
        } else {
            // Part of it is there. Where the numbers do not say how long the log is with it, the root
            // behind the run does.
            run.size_after(self.taken).unwrap_or(there.clamp(run.first, run.end))
        };
        match there.cmp(&wanted) {
            std::cmp::Ordering::Equal => Ok(()),
            std::cmp::Ordering::Less => Err(DrainError::Waiting(format!(
                "restored_database: it has {there} entries; those up to {wanted} have to come from \
                 other replicas"
            ))),
            std::cmp::Ordering::Greater => {
                Err(refused(&format!("others stand where entries {wanted} and on stood")))
            }
        }
    }

    fn hand_over(&mut self, take: &mut TakeEntry<'_>) -> Result<usize, DrainError> {
        let (identity, taken) = (self.parts.identity, self.taken);
        let until = self.run.map_or(u64::MAX, |run| run.n_last);
        let mut frames = 0;
        loop {
            let before = frames;
            let mut is_new = false;
            let read = self.reader.read(self.sources, self.limit, |frame| {
                let own =
                    (Identity { replica: frame.id.replica, epoch: frame.id.epoch }) == identity;
                if own && frame.id.n > until {
                    return Err(Stop::End);
                }
                frames += 1;
                if own && frame.id.n <= taken {
                    return Ok(());
                }
                is_new = true;
                take(frame.id, frame.leaf, frame.body).map_err(Stop::Failed)
            });
            match read {
                // What the database has already fills no batch.
                Ok(_) if !is_new && frames > before => {}
                Ok(_) => return Ok(frames),
                Err(Stop::End) => {
                    let here = self.reader.position();
                    self.reader.rewind(here);
                    return Ok(frames);
                }
                Err(Stop::Failed(error)) => return Err(error),
            }
        }
    }

    fn review(&mut self, first: u64, log: &LogState) -> Result<(), DrainError> {
        let (n_first, n_last) = (self.taken + 1, self.own(log));
        let (end, root) = (log.range.size(), log.range.root());
        self.taken = n_last;
        if let Some(run) = self.run.filter(|run| n_last == run.n_last) {
            let same = (end, root) == (run.end, run.root);
            return if same {
                Ok(())
            } else {
                Err(refused("what is kept does not lead to what was seen"))
            };
        }
        if self.run.is_none() && n_last >= n_first {
            self.journal.begin(Run { first, end, n_first, n_last, root })?;
        }
        Ok(())
    }

    fn state_gap(&mut self, (identity, from, to): Hole) -> Result<(), DrainError> {
        // What was missing before was stated then, and that statement is handed over again as well.
        if self.in_place {
            return Ok(());
        }
        Ok(self.parts.state_gap(identity, from, to)?)
    }
}
