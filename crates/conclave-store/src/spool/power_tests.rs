//! Power that goes away at any moment, over disks that tear, reorder, forget, fail and fill up.
//!
//! The disk here keeps what was synced. Of what was written and not synced it keeps, sector by
//! sector, whatever it likes. A sync that fails may have kept anything, and files that were removed
//! may be there again. One seed is one history, and always the same one.

use super::*;
use crate::spool::scan::{Found, Scanner};
use crate::spool::{Kept, KeptLimits, recover};
use conclave_ledger::{Body, SealingKey};
use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::path::Path;
use std::sync::{Mutex, OnceLock, mpsc};

const SECTOR: usize = 512;
const SEGMENT_BYTES: u64 = 16 << 10;
const IDENTITY: Identity = Identity { replica: [3; 8], epoch: 1 };

struct Dice(u64);

impl Dice {
    fn below(&mut self, end: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (mixed ^ (mixed >> 31)) % end
    }

    fn one_in(&mut self, chances: u64) -> bool {
        self.below(chances) == 0
    }
}

#[derive(Clone, Default)]
struct SimFile {
    synced: Vec<u8>,
    unsynced: Vec<(usize, Vec<u8>)>,
}

impl SimFile {
    fn settle(&mut self, mut keep: impl FnMut() -> bool) {
        for (at, piece) in self.unsynced.drain(..) {
            if keep() {
                self.synced[at..at + piece.len()].copy_from_slice(&piece);
            }
        }
    }
}

/// Everything the disks hold, and how they behave.
struct Sim {
    files: BTreeMap<PathBuf, SimFile>,
    removed: BTreeMap<PathBuf, SimFile>,
    dice: Dice,
    /// One write or sync in so many fails; 0 for none.
    failing: u64,
    /// Whether a sync only says that it did something.
    lying: bool,
    /// After how many operations the power goes.
    left: u64,
    image: Option<BTreeMap<PathBuf, Vec<u8>>>,
}

impl Sim {
    fn operate(&mut self) {
        self.left = self.left.saturating_sub(1);
        if self.left == 0 && self.image.is_none() {
            let mut files = self.files.clone();
            for (path, file) in &self.removed {
                if self.dice.one_in(2) {
                    files.insert(path.clone(), file.clone());
                }
            }
            let kept = files.into_iter().map(|(path, mut file)| {
                file.settle(|| self.dice.one_in(2));
                (path, file.synced)
            });
            self.image = Some(kept.collect());
        }
    }

    fn fails(&mut self) -> bool {
        self.failing > 0 && self.dice.one_in(self.failing)
    }
}

#[derive(Clone)]
struct SimDisk(Arc<Mutex<Sim>>);

struct SimSink(Arc<Mutex<Sim>>, PathBuf);

fn eio() -> io::Error {
    io::Error::from_raw_os_error(5)
}

impl Disk for SimDisk {
    fn create(&self, path: &Path, bytes: u64) -> io::Result<Box<dyn SegmentSink>> {
        let mut sim = self.0.lock().unwrap();
        sim.operate();
        if sim.fails() {
            return Err(io::ErrorKind::StorageFull.into());
        }
        let synced = vec![0; usize::try_from(bytes).unwrap()];
        sim.files.insert(path.to_owned(), SimFile { synced, unsynced: Vec::new() });
        Ok(Box::new(SimSink(Arc::clone(&self.0), path.to_owned())))
    }

    fn remove(&self, path: &Path) -> io::Result<()> {
        let mut sim = self.0.lock().unwrap();
        sim.operate();
        if let Some(file) = sim.files.remove(path) {
            sim.removed.insert(path.to_owned(), file);
        }
        Ok(())
    }
}

impl SegmentSink for SimSink {
    fn write_at(&mut self, bytes: &[u8], offset: u64) -> io::Result<usize> {
        let mut sim = self.0.lock().unwrap();
        let sim = &mut *sim;
        let most =
            if sim.dice.one_in(3) { 1 + sim.dice.below(bytes.len() as u64) } else { u64::MAX };
        let length = bytes.len().min(usize::try_from(most).unwrap());
        let offset = usize::try_from(offset).unwrap();
        let file = sim.files.get_mut(&self.1).unwrap();
        let mut at = 0;
        while at < length {
            let end = length.min(at + SECTOR - (offset + at) % SECTOR);
            file.unsynced.push((offset + at, bytes[at..end].to_vec()));
            at = end;
        }
        sim.operate();
        if sim.fails() { Err(eio()) } else { Ok(length) }
    }

    fn sync(&mut self) -> io::Result<()> {
        let mut sim = self.0.lock().unwrap();
        let sim = &mut *sim;
        sim.operate();
        let (failed, lying) = (sim.fails(), sim.lying);
        let (file, dice) = (sim.files.get_mut(&self.1).unwrap(), &mut sim.dice);
        if failed {
            // What it did not keep by now it never will, and the next sync would say that all is well.
            file.settle(|| dice.one_in(2));
            return Err(eio());
        }
        if !lying {
            file.settle(|| true);
        }
        sim.operate();
        Ok(())
    }
}

struct NobodyErased;

impl LivingKeys for NobodyErased {
    fn is_alive(&self, _id: KeyId) -> bool {
        true
    }
}

struct Still;

impl Clock for Still {
    fn now_ms(&self) -> u64 {
        1_800_000_000_000
    }
}

/// The disks are played; the lock is real, and nobody contests it.
struct Ground {
    lock: Arc<DirLock>,
    high_water: Arc<HighWater>,
    _dir: tempfile::TempDir,
}

fn ground() -> &'static Ground {
    static GROUND: OnceLock<Ground> = OnceLock::new();
    GROUND.get_or_init(|| {
        let dir = tempfile::tempdir().unwrap();
        let lock = Arc::new(DirLock::take(dir.path()).unwrap());
        let high_water = Arc::new(HighWater::open(dir.path(), IDENTITY).unwrap());
        Ground { lock, high_water, _dir: dir }
    })
}

fn writer(sim: &Arc<Mutex<Sim>>, dirs: &[PathBuf]) -> Option<Writer> {
    let seed = Seed(sim.lock().unwrap().dice.below(u64::MAX));
    let opened = Writer::open(WriterParts {
        high_water: Arc::clone(&ground().high_water),
        lock: Arc::clone(&ground().lock),
        dirs: dirs.to_vec(),
        disk: Arc::new(SimDisk(Arc::clone(sim))),
        clock: Arc::new(Still),
        intake: Arc::new(Intake::new(64 << 20)),
        progress: Arc::new(Progress::new(Vec::new(), u64::MAX)),
        kept: Arc::new(Kept::new(dirs, KeptLimits::default(), Arc::new(Still))),
        stamps: Arc::new(Stamps::default()),
        keys: Arc::new(NobodyErased),
        identity: IDENTITY,
        seed,
        segment_bytes: SEGMENT_BYTES,
        patience: Duration::ZERO,
        next_index: 1,
        next_n: 1,
        last_ts_ms: 0,
    });
    opened.ok()
}

/// One batch; returns what was acknowledged of it.
fn batch(writer: &mut Writer, entries: u64, dice: &mut Dice) -> Vec<Appended> {
    let (ack, answers) = mpsc::channel();
    let key = Arc::new(SealingKey::new([2; 16], &[5; 32]));
    for _ in 0..entries {
        let mut body = Body::empty();
        body.push("request", [1; 32], vec![b'x'; usize::try_from(dice.below(3_000)).unwrap()]);
        let words = body.lay_out(key.id(), &[4; 24]);
        let sealing = Sealing { words, key: Arc::clone(&key) };
        let mut job = Job::sealed(Draft::new(Kind::Decision, 7), &body, sealing).unwrap();
        job.ack = Some(Ack::Thread(ack.clone()));
        writer.add(job);
    }
    writer.commit();
    writer.look_ahead();
    drop(ack);
    answers.iter().filter_map(Result::ok).collect()
}

/// Runs one history up to the loss of power; returns what was acknowledged before, and the disks.
fn run(seed: u64, lying: bool, dirs: &[PathBuf]) -> (Vec<Appended>, BTreeMap<PathBuf, Vec<u8>>) {
    let mut dice = Dice(seed);
    let sim = Arc::new(Mutex::new(Sim {
        files: BTreeMap::new(),
        removed: BTreeMap::new(),
        dice: Dice(seed ^ 0xdead_beef),
        failing: [0, 0, 4, 12][usize::try_from(dice.below(4)).unwrap()],
        lying,
        left: 2 + dice.below(120),
        image: None,
    }));
    let mut acknowledged = Vec::new();
    let Some(mut writer) = writer(&sim, dirs) else { return (acknowledged, BTreeMap::new()) };
    loop {
        let entries = 1 + dice.below(6);
        let durable = batch(&mut writer, entries, &mut dice);
        if let Some(image) = sim.lock().unwrap().image.take() {
            return (acknowledged, image);
        }
        acknowledged.extend(durable);
    }
}

/// What recovery finds: numbers with the hash of their leaves, each once, and what is stated missing.
fn found(dirs: &[PathBuf], quarantine: &Path) -> (BTreeMap<u64, [u8; 32]>, Vec<Gap>) {
    let recovered = recover(dirs, quarantine, IDENTITY).unwrap();
    let (mut numbers, mut gaps, mut last) = (BTreeMap::new(), Vec::new(), 0);
    for segment in recovered.segments {
        let file = File::open(&segment.name.path).unwrap();
        let mut scanner = Scanner::new(file, segment.name.seed, 0, segment.durable_end);
        loop {
            match scanner.next().unwrap() {
                Found::Frame(frame, _) if frame.id.n > last => {
                    last = frame.id.n;
                    numbers.insert(last, leaf_hash(frame.leaf));
                    let leaf = Leaf::decode(frame.leaf).unwrap();
                    gaps.extend(Gap::from_public(&leaf.draft.public));
                }
                Found::Frame(..) | Found::Damage(_) => {}
                Found::End { .. } => break,
            }
        }
    }
    (numbers, gaps)
}

/// Everything acknowledged is there as it was acknowledged; what is missing was never acknowledged,
/// and what is stated to be missing is missing.
fn survives(seed: u64, lying: bool) -> Result<usize, String> {
    let home = tempfile::tempdir().unwrap();
    let count = if seed.is_multiple_of(2) { 1 } else { 2 };
    let dirs: Vec<_> = (0..count).map(|n| home.path().join(format!("disk{n}"))).collect();
    let (acknowledged, image) = run(seed, lying, &dirs);
    dirs.iter().for_each(|dir| std::fs::create_dir(dir).unwrap());
    for (path, bytes) in image {
        std::fs::write(path, bytes).unwrap();
    }
    let (numbers, gaps) = found(&dirs, &home.path().join("quarantine"));
    for appended in &acknowledged {
        if numbers.get(&appended.id.n) != Some(&appended.leaf_hash) {
            return Err(format!("seed {seed}: {} was acknowledged", appended.id.n));
        }
    }
    let stated: BTreeSet<u64> = gaps.iter().flat_map(|gap| gap.from..=gap.to).collect();
    if let Some(both) = stated.iter().find(|n| numbers.contains_key(n)) {
        return Err(format!("seed {seed}: {both} is there and stated to be missing"));
    }
    let last = acknowledged.last().map_or(0, |appended| appended.id.n);
    match (1..=last).find(|n| !numbers.contains_key(n) && !stated.contains(n)) {
        Some(hole) => Err(format!("seed {seed}: nobody says that {hole} is missing")),
        None => Ok(acknowledged.len()),
    }
}

fn seeds() -> u64 {
    let set = std::env::var("CONCLAVE_FAULT_SEEDS").ok().and_then(|text| text.parse().ok());
    set.unwrap_or(1_000)
}

#[test]
fn a_loss_of_power_at_any_moment_takes_nothing_that_was_acknowledged() {
    let mut acknowledged = 0;
    for seed in 0..seeds() {
        acknowledged += survives(seed, false).unwrap();
    }
    assert!(acknowledged as u64 > seeds(), "too little to mean anything");
}

#[test]
fn the_model_finds_a_disk_that_lies() {
    let caught = (0..50).filter(|seed| survives(*seed, true).is_err()).count();
    assert!(caught > 25, "{caught} of 50 histories");
}
