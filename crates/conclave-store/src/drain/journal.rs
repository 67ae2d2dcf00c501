//! Where this replica's entries came to stand in the log, noted beside the spool.
//!
//! A database that was put back from a backup has lost entries that checkpoints may speak of already. They
//! can be handed over once more, and every old proof stays true only if each comes to stand where it stood.
//! Between replicas nobody else knows where that was.
//!
//! **Invariant:** a batch is noted before it is committed and confirmed afterwards. A note that was never
//! confirmed counts only if the database has the numbers it speaks of.
//!
//! **Invariant:** the file is bounded. What is left out is the oldest.

use crate::durable::{self, private};
use crate::replica::Identity;
use conclave_ledger::Hash;
use std::fs::File;
use std::io::{self, BufRead, BufReader, Write};
use std::path::{Path, PathBuf};

/// When the file is as long as this it is written anew, with half of it at most.
const BYTES_MAX: u64 = 64 << 20;
/// About the length of one note.
const NOTE_BYTES: u64 = 140;

/// Entries of this replica that stand next to each other in the log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Run {
    /// The position of the first.
    pub(crate) first: u64,
    /// The size of the log after the last.
    pub(crate) end: u64,
    /// The number of the first.
    pub(crate) n_first: u64,
    /// The number of the last.
    pub(crate) n_last: u64,
    /// The root of the log after the last.
    pub(crate) root: Hash,
}

impl Run {
    fn to_line(self, whose: &str) -> String {
        let Self { first, end, n_first, n_last, root } = self;
        format!("b {whose} {first} {end} {n_first} {n_last} {}\n", hex::encode(root))
    }

    /// What a line says; nothing of another replica or epoch counts here.
    fn parse(words: &[&str], whose: &str) -> Option<Self> {
        let [of, first, end, n_first, n_last, root] = words else { return None };
        if *of != whose {
            return None;
        }
        Some(Self {
            first: first.parse().ok()?,
            end: end.parse().ok()?,
            n_first: n_first.parse().ok()?,
            n_last: n_last.parse().ok()?,
            root: hex::decode(root).ok()?.try_into().ok()?,
        })
    }

    /// How long the log is after the entry with a number of this run; `None` where the numbers do not
    /// say, because some of them are missing or entries of before stand between them.
    pub(crate) const fn size_after(&self, n: u64) -> Option<u64> {
        if self.end - self.first == self.n_last + 1 - self.n_first {
            Some(self.first + (n + 1 - self.n_first))
        } else {
            None
        }
    }

    /// Whether the other goes on where this one ends, in the log and in numbers.
    const fn is_followed_by(&self, next: &Self) -> bool {
        self.end == next.first && self.n_last + 1 == next.n_first
    }
}

/// The notes of one data directory.
#[derive(Debug)]
pub(crate) struct Journal {
    path: PathBuf,
    file: File,
    bytes: u64,
    /// Whose numbers these are.
    whose: String,
    last: Option<Run>,
    pending: Option<Run>,
    /// Whether the last batch is in the log and the file does not say so yet.
    is_owed: bool,
    /// Whether half a line may stand at the end.
    is_torn: bool,
    /// Up to which acceptance of a restored database this replica has followed.
    accepted: u64,
    /// Whether what was kept has not been handed over again yet after the last acceptance.
    is_replaying: bool,
}

/// What a file says.
#[derive(Default)]
struct Told {
    runs: Vec<Run>,
    pending: Option<Run>,
    accepted: u64,
    is_replaying: bool,
    /// How many bytes of it are whole lines.
    bytes: u64,
}

impl Journal {
    /// Opens the notes of a directory, or begins them; a torn end is cut off.
    ///
    /// # Errors
    /// When the file cannot be read or written.
    pub(crate) fn open(path: &Path, identity: Identity) -> io::Result<Self> {
        let whose = format!("{}-{}", hex::encode(identity.replica), identity.epoch);
        let told = read(path, &whose, 0)?;
        let file = private().append(true).create(true).open(path)?;
        file.set_len(told.bytes)?;
        Ok(Self {
            path: path.to_owned(),
            file,
            bytes: told.bytes,
            whose,
            last: told.runs.last().copied(),
            pending: told.pending,
            is_owed: false,
            is_torn: false,
            accepted: told.accepted,
            is_replaying: told.is_replaying,
        })
    }

    /// The last batch that is known to be in the log.
    pub(crate) const fn last(&self) -> Option<Run> {
        self.last
    }

    /// The largest number that may have been given.
    pub(crate) fn last_n(&self) -> u64 {
        [self.last, self.pending].into_iter().flatten().map(|run| run.n_last).max().unwrap_or(0)
    }

    /// Up to which acceptance of a restored database this replica has followed.
    pub(crate) const fn accepted(&self) -> u64 {
        self.accepted
    }

    /// Whether what was kept still has to be handed over again, wherever it comes to stand.
    pub(crate) const fn is_replaying(&self) -> bool {
        self.is_replaying
    }

    /// Notes a batch that is about to be committed.
    ///
    /// # Errors
    /// When it cannot be written.
    pub(crate) fn begin(&mut self, run: Run) -> io::Result<()> {
        self.write_owed()?;
        if self.bytes > BYTES_MAX {
            self.shorten()?;
        }
        self.write(&run.to_line(&self.whose))?;
        self.pending = Some(run);
        Ok(())
    }

    /// Notes that the batch is in the log.
    ///
    /// # Errors
    /// When it cannot be written.
    pub(crate) fn confirm(&mut self) -> io::Result<()> {
        let Some(run) = self.pending.take() else { return Ok(()) };
        self.last = Some(run);
        self.is_owed = true;
        self.write_owed()
    }

    fn write_owed(&mut self) -> io::Result<()> {
        if self.is_owed {
            self.write("c\n")?;
        }
        self.is_owed = false;
        Ok(())
    }

    /// Finds out what became of the batch that nobody confirmed: `taken` is the largest number the
    /// database has, `size` how many entries.
    ///
    /// # Errors
    /// When it cannot be written.
    pub(crate) fn settle(&mut self, taken: u64, size: u64) -> io::Result<()> {
        if self.pending.is_some_and(|run| run.n_last <= taken && run.end <= size) {
            return self.confirm();
        }
        self.pending = None;
        Ok(())
    }

    /// The batches with numbers above `n`, in order.
    ///
    /// # Errors
    /// When the file cannot be read.
    pub(crate) fn runs_after(&self, n: u64) -> io::Result<Vec<Run>> {
        Ok(read(&self.path, &self.whose, n)?.runs)
    }

    /// Makes what was noted durable.
    ///
    /// # Errors
    /// When the disk refuses.
    pub(crate) fn sync(&self) -> io::Result<()> {
        self.file.sync_data()
    }

    /// Forgets every position: an operator has accepted that the log is another one from there on. What
    /// was kept is to be handed over again, which [`Journal::note_replayed`] ends.
    ///
    /// # Errors
    /// When the file cannot be written.
    pub(crate) fn forget(&mut self, accepted: u64) -> io::Result<()> {
        self.replace(&opening(accepted, true))?;
        (self.last, self.pending, self.accepted) = (None, None, accepted);
        (self.is_owed, self.is_replaying) = (false, true);
        Ok(())
    }

    /// Notes that an acceptance does not concern this replica: the log is what it has seen.
    ///
    /// # Errors
    /// When it cannot be written.
    pub(crate) fn note_accepted(&mut self, accepted: u64) -> io::Result<()> {
        self.write_owed()?;
        self.write(&format!("a {accepted}\n"))?;
        self.accepted = accepted;
        Ok(())
    }

    /// Notes that everything that was kept has been handed over again.
    ///
    /// # Errors
    /// When it cannot be written.
    pub(crate) fn note_replayed(&mut self) -> io::Result<()> {
        if self.is_replaying {
            self.write_owed()?;
            self.write("d\n")?;
        }
        self.is_replaying = false;
        Ok(())
    }

    /// Joins batches that stand next to each other and leaves out the oldest of what is still too much.
    fn shorten(&mut self) -> io::Result<()> {
        let told = read(&self.path, &self.whose, 0)?;
        let mut joined: Vec<Run> = Vec::new();
        for run in told.runs {
            match joined.last_mut() {
                Some(last) if last.is_followed_by(&run) => {
                    (last.end, last.n_last, last.root) = (run.end, run.n_last, run.root);
                }
                _ => joined.push(run),
            }
        }
        let most = usize::try_from(BYTES_MAX / 2 / NOTE_BYTES).unwrap_or(usize::MAX);
        let kept = &joined[joined.len().saturating_sub(most)..];
        let lines = kept.iter().map(|run| format!("{}c\n", run.to_line(&self.whose)));
        let text = opening(self.accepted, self.is_replaying) + &lines.collect::<String>();
        self.replace(&text)
    }

    fn replace(&mut self, text: &str) -> io::Result<()> {
        durable::replace(&self.path, text.as_bytes())?;
        self.file = private().append(true).open(&self.path)?;
        self.bytes = text.len() as u64;
        self.is_torn = false;
        Ok(())
    }

    fn write(&mut self, line: &str) -> io::Result<()> {
        // Half a line, from a disk without room, would hide everything that is noted after it.
        if self.is_torn {
            self.file.set_len(self.bytes)?;
        }
        self.is_torn = true;
        self.file.write_all(line.as_bytes())?;
        self.is_torn = false;
        self.bytes += line.len() as u64;
        Ok(())
    }
}

/// How a file begins.
fn opening(accepted: u64, is_replaying: bool) -> String {
    format!("a {accepted}\n{}", if is_replaying { "r\n" } else { "" })
}

/// Reads a file up to the first line that makes no sense; runs with numbers up to `after` are left
/// out, but for the last.
fn read(path: &Path, whose: &str, after: u64) -> io::Result<Told> {
    let mut told = Told::default();
    let mut lines = match File::open(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(told),
        file => BufReader::new(file?),
    };
    let mut line = String::new();
    loop {
        line.clear();
        // A line that is no text is a torn one.
        let read = lines.read_line(&mut line).unwrap_or(0);
        if read == 0 || !line.ends_with('\n') {
            return Ok(told);
        }
        let words: Vec<&str> = line.split_whitespace().collect();
        match words.as_slice() {
            ["c"] => {
                if let Some(run) = told.pending.take() {
                    // A batch that was handed over again stands where it came to stand then.
                    while told.runs.last().is_some_and(|last| last.n_last >= run.n_first) {
                        told.runs.pop();
                    }
                    if told.runs.len() == 1 && told.runs[0].n_last <= after {
                        told.runs.clear();
                    }
                    told.runs.push(run);
                }
            }
            ["a", number] => match number.parse() {
                Ok(number) => told.accepted = number,
                Err(_) => return Ok(told),
            },
            ["r"] => told.is_replaying = true,
            ["d"] => told.is_replaying = false,
            ["b", rest @ ..] if rest.len() == 6 => told.pending = Run::parse(rest, whose),
            _ => return Ok(told),
        }
        told.bytes += read as u64;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const OURS: Identity = Identity { replica: [1; 8], epoch: 2 };

    fn run(first: u64, end: u64, n_first: u64, n_last: u64) -> Run {
        Run { first, end, n_first, n_last, root: [u8::try_from(end % 251).unwrap(); 32] }
    }

    fn open(path: &Path) -> Journal {
        Journal::open(path, OURS).unwrap()
    }

    #[test]
    fn what_was_confirmed_is_remembered_and_what_was_not_is_asked_of_the_database() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("positions");
        let mut journal = open(&path);
        assert_eq!((journal.last(), journal.last_n()), (None, 0));
        journal.begin(run(0, 3, 1, 3)).unwrap();
        journal.confirm().unwrap();
        journal.begin(run(7, 9, 4, 5)).unwrap();
        let mut journal = open(&path);
        assert_eq!((journal.last(), journal.last_n()), (Some(run(0, 3, 1, 3)), 5));
        journal.settle(3, 7).unwrap();
        assert_eq!(journal.last(), Some(run(0, 3, 1, 3)), "the database does not have it");
        let mut journal = open(&path);
        journal.settle(5, 20).unwrap();
        assert_eq!(open(&path).last(), Some(run(7, 9, 4, 5)), "the database has it");
        for other in [Identity { epoch: 3, ..OURS }, Identity { replica: [2; 8], ..OURS }] {
            let journal = Journal::open(&path, other).unwrap();
            assert_eq!((journal.last(), journal.last_n()), (None, 0), "of somebody else");
        }
    }

    #[test]
    fn positions_are_found_by_number_and_the_latest_word_counts() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("positions");
        let mut journal = open(&path);
        let runs = [run(0, 3, 1, 3), run(5, 7, 4, 5), run(9, 11, 6, 7), run(20, 22, 6, 7)];
        for run in runs {
            journal.begin(run).unwrap();
            journal.confirm().unwrap();
        }
        assert_eq!(journal.runs_after(3).unwrap(), [runs[1], runs[3]]);
        assert_eq!(journal.runs_after(0).unwrap(), [runs[0], runs[1], runs[3]]);
        journal.forget(4).unwrap();
        assert_eq!(journal.runs_after(0).unwrap(), []);
        assert_eq!((open(&path).accepted(), open(&path).last()), (4, None));
    }

    #[test]
    fn a_torn_or_strange_end_is_cut_off() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("positions");
        let mut journal = open(&path);
        journal.begin(run(0, 3, 1, 3)).unwrap();
        journal.confirm().unwrap();
        let whole = std::fs::read(&path).unwrap();
        for tail in [&b"b 2 3 4"[..], b"nonsense\n", b"\xff\xfe\n", b"b 2 3 4 5 6\n"] {
            std::fs::write(&path, [&whole[..], tail].concat()).unwrap();
            assert_eq!(open(&path).last(), Some(run(0, 3, 1, 3)));
            assert_eq!(std::fs::read(&path).unwrap(), whole);
        }
    }

    #[test]
    fn half_a_line_from_a_full_disk_hides_nothing_that_is_noted_after_it() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("positions");
        let mut journal = open(&path);
        journal.begin(run(0, 3, 1, 3)).unwrap();
        journal.confirm().unwrap();
        // As `write` leaves it when the disk took only a part.
        journal.file.write_all(b"b 0101").unwrap();
        journal.is_torn = true;
        journal.begin(run(3, 5, 4, 5)).unwrap();
        journal.confirm().unwrap();
        assert_eq!(open(&path).last(), Some(run(3, 5, 4, 5)));

        // One that refuses everything: what could not be confirmed then is confirmed before the next.
        journal.begin(run(5, 6, 6, 6)).unwrap();
        let writable = std::mem::replace(&mut journal.file, File::open(&path).unwrap());
        assert!(journal.confirm().is_err());
        journal.file = writable;
        journal.begin(run(6, 7, 7, 7)).unwrap();
        journal.confirm().unwrap();
        let runs = [run(0, 3, 1, 3), run(3, 5, 4, 5), run(5, 6, 6, 6), run(6, 7, 7, 7)];
        assert_eq!(open(&path).runs_after(0).unwrap(), runs);
    }

    #[test]
    fn a_replay_that_was_begun_is_remembered_until_it_is_done() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("positions");
        let mut journal = open(&path);
        assert!(!journal.is_replaying());
        journal.forget(7).unwrap();
        journal.begin(run(0, 3, 1, 3)).unwrap();
        journal.confirm().unwrap();
        journal.shorten().unwrap();
        let mut journal = open(&path);
        assert!(journal.is_replaying() && journal.last() == Some(run(0, 3, 1, 3)));
        journal.note_replayed().unwrap();
        let journal = open(&path);
        assert!(!journal.is_replaying() && journal.accepted() == 7);
    }

    #[test]
    fn a_long_file_is_written_anew_and_neighbours_become_one() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("positions");
        let mut journal = open(&path);
        for n in 0..100 {
            journal.begin(run(n * 2, n * 2 + 2, n * 2 + 1, n * 2 + 2)).unwrap();
            journal.confirm().unwrap();
        }
        journal.begin(run(300, 301, 201, 201)).unwrap();
        journal.confirm().unwrap();
        journal.shorten().unwrap();
        let joined = [run(0, 200, 1, 200), run(300, 301, 201, 201)];
        assert_eq!(open(&path).runs_after(0).unwrap(), joined);
        assert_eq!(open(&path).last(), Some(joined[1]));
        assert_eq!([1, 2, 200].map(|n| joined[0].size_after(n)), [Some(1), Some(2), Some(200)]);
        assert_eq!(run(10, 20, 1, 3).size_after(1), None, "others stand between");
    }
}
