//! Witnesses: others who sign that each checkpoint extends the one before, as C2SP tlog-witness says.
//!
//! **Invariant:** nobody waits for a witness. A checkpoint is published without it, and its line is put below
//! when it comes; what a witness does wrong is counted, told in `/health`, and changes nothing.
//!
//! **Invariant:** a witness is asked about the newest checkpoint only: that one vouches for all before.

use crate::config::WitnessPlace;
use anyhow::{Context, anyhow};
use conclave_engine::Proofs;
use conclave_ledger::{Cosignature, WitnessKey, witness_request};
use conclave_models::WebClient;
use conclave_store::Store;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::sync::watch;
use tokio::task::JoinSet;

/// How long a witness may take.
const PATIENCE: Duration = Duration::from_secs(1);
/// The longest answer that is read.
const ANSWER_BYTES_MAX: usize = 16 << 10;
/// How often one checkpoint is shown again because the witness knew another size than we thought.
const CONFLICTS_MAX: usize = 2;
/// The pauses after failures, the last one again and again; a new checkpoint ends a pause.
const PAUSES_S: [u64; 4] = [1, 5, 30, 300];
/// After so many failures in a row somebody should look.
const FAILURES_TOLD: usize = 3;

/// A checkpoint: how many entries it covers, and the note.
type Shown = (u64, String);

/// The witnesses of a log.
pub struct Witnesses {
    witnesses: Vec<Arc<Witness>>,
    newest: watch::Sender<Shown>,
}

/// One of them.
struct Witness {
    client: WebClient,
    key: WitnessKey,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    /// The size of the checkpoint it cosigned last, as far as is known here.
    seen: u64,
    trouble: Option<String>,
}

impl Witnesses {
    /// The witnesses of a configuration; `None` when there are none.
    ///
    /// # Errors
    /// When an address or a key cannot be used.
    pub fn new(places: &[WitnessPlace]) -> anyhow::Result<Option<Self>> {
        let witnesses = places.iter().map(|place| {
            let key = WitnessKey::parse(&place.vkey);
            let key =
                key.map_err(|error| anyhow!("ledger.witnesses: `{}`: {error}", place.vkey))?;
            let client = WebClient::new(&place.url, place.allow_private, PATIENCE)
                .context("ledger.witnesses")?;
            anyhow::Ok(Arc::new(Witness { client, key, state: Mutex::default() }))
        });
        let witnesses = witnesses.collect::<anyhow::Result<Vec<_>>>()?;
        let (newest, _) = watch::channel((0, String::new()));
        Ok((!witnesses.is_empty()).then_some(Self { witnesses, newest }))
    }

    /// Takes a note that was published; does not wait for anybody.
    pub fn published(&self, size: u64, note: &str) {
        self.newest.send_replace((size, note.to_owned()));
    }

    /// Shows the last checkpoint of an earlier run, unless there is a newer one: a witness that was
    /// away then may not have seen it.
    pub fn recall(&self, size: u64, note: &str) {
        self.newest.send_if_modified(|newest| {
            let is_newer = size > newest.0;
            if is_newer {
                *newest = (size, note.to_owned());
            }
            is_newer
        });
    }

    /// What a witness that fails again and again says.
    pub fn trouble(&self) -> Option<String> {
        self.witnesses.iter().find_map(|witness| witness.state().trouble.clone())
    }

    /// Asks every witness about every new checkpoint, for ever.
    pub async fn run(&self, store: Arc<Store>) {
        let mut asking = JoinSet::new();
        for witness in &self.witnesses {
            let newest = self.newest.subscribe();
            asking.spawn(Arc::clone(witness).follow(newest, Arc::clone(&store)));
        }
        while asking.join_next().await.is_some() {}
    }
}

impl Witness {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    async fn follow(self: Arc<Self>, mut newest: watch::Receiver<Shown>, store: Arc<Store>) {
        let (proofs, mut failures) = (store.proofs(), 0_usize);
        newest.mark_changed();
        loop {
            let pause = match failures.checked_sub(1) {
                Some(at) => PAUSES_S.get(at).or(PAUSES_S.last()).copied().unwrap_or(1),
                None => u64::MAX >> 20,
            };
            let (size, note) = tokio::select! {
                changed = newest.changed() => match changed {
                    Ok(()) => newest.borrow_and_update().clone(),
                    Err(_) => return,
                },
                () = tokio::time::sleep(Duration::from_secs(pause)) => newest.borrow().clone(),
            };
            if size == 0 {
                continue;
            }
            match self.ask(&*proofs, size, &note).await {
                Ok(cosignature) => {
                    if failures > 0 {
                        tracing::info!(witness = self.key.name(), "a witness cosigns again");
                    }
                    failures = 0;
                    self.state().trouble = None;
                    keep(&store, (size, note), cosignature).await;
                }
                Err(error) => {
                    failures += 1;
                    self.note_failure(failures, &error);
                    store.note_witness_failure();
                }
            }
        }
    }

    fn note_failure(&self, failures: usize, error: &str) {
        let name = self.key.name();
        // There is a checkpoint every second, and one that is away for a day is told in `/health`.
        if failures <= FAILURES_TOLD || failures.is_power_of_two() {
            tracing::warn!(witness = name, error, failures, "a witness did not cosign");
        }
        if failures >= FAILURES_TOLD {
            let sentence = format!("the witness {name} failed {failures} times in a row: {error}");
            self.state().trouble = Some(sentence);
        }
    }

    /// Shows it a checkpoint; returns its word, which was checked.
    async fn ask(&self, proofs: &dyn Proofs, size: u64, note: &str) -> Result<Cosignature, String> {
        for _ in 0..=CONFLICTS_MAX {
            let old = self.state().seen;
            let request = request(proofs, old, size, note).await?;
            let answer = self.client.post_text("add-checkpoint", request, ANSWER_BYTES_MAX).await;
            let (status, body) = answer.map_err(|error| error.to_string())?;
            let body = String::from_utf8_lossy(&body);
            match status {
                200 => {
                    let found = self.key.find(&body, note).map_err(|error| error.to_string())?;
                    self.state().seen = size;
                    return Ok(found);
                }
                409 => {
                    let seen = conflict(&body, old, size)?;
                    self.state().seen = seen;
                }
                status => return Err(refusal(status)),
            }
        }
        Err("it names another size each time".to_owned())
    }
}

/// The question about a checkpoint, with the proof that it extends what the witness saw.
async fn request(proofs: &dyn Proofs, old: u64, size: u64, note: &str) -> Result<String, String> {
    let proof = if old == 0 || old >= size {
        Vec::new()
    } else {
        let proof = proofs.consistency(old, size).await.map_err(|error| error.to_string())?;
        proof.ok_or("there is no proof from what it has seen")?.proof
    };
    Ok(witness_request(old.min(size), &proof, note))
}

/// The size a witness says it has seen, if that can be true.
fn conflict(body: &str, old: u64, size: u64) -> Result<u64, String> {
    let Ok(seen) = body.trim_end_matches('\n').parse::<u64>() else {
        return Err("it answered 409 and no size".to_owned());
    };
    if seen > size {
        return Err(format!("it says it has seen {seen} entries; this checkpoint has {size}"));
    }
    if seen == old {
        return Err(format!(
            "it has seen another checkpoint over {seen} entries than we showed it"
        ));
    }
    Ok(seen)
}

fn refusal(status: u16) -> String {
    match status {
        403 => "it does not know the key of this log (403)".to_owned(),
        404 => "it does not know this log (404)".to_owned(),
        422 => "it says that the checkpoint does not extend what it has seen (422)".to_owned(),
        status => format!("it answered {status}"),
    }
}

async fn keep(store: &Arc<Store>, (size, note): Shown, cosignature: Cosignature) {
    let store = Arc::clone(store);
    let keep = move || store.cosign(size, &note, &cosignature.line);
    let kept = tokio::task::spawn_blocking(keep).await;
    if let Ok(Err(error)) = kept {
        tracing::warn!(%error, "a cosignature could not be kept");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_size_that_cannot_be_is_not_believed() {
        assert_eq!(conflict("7\n", 0, 9), Ok(7));
        assert_eq!(conflict("9\n", 0, 9), Ok(9));
        for (body, old) in [("10\n", 0), ("7\n", 7), ("", 0), ("-1\n", 0), ("x", 0)] {
            assert!(conflict(body, old, 9).is_err(), "{body:?}");
        }
        assert!(refusal(422).contains("does not extend") && refusal(500).contains("500"));
    }

    #[test]
    fn a_key_and_an_address_are_checked_at_the_start() {
        let place = |url: &str, vkey: &str| WitnessPlace {
            url: url.into(),
            vkey: vkey.into(),
            allow_private: false,
        };
        let key = conclave_ledger::WitnessSigner::new("w", &[1; 32]).unwrap().key().to_string();
        assert!(Witnesses::new(&[]).unwrap().is_none());
        assert!(Witnesses::new(&[place("http://127.0.0.1:1/w", &key)]).unwrap().is_some());
        assert!(Witnesses::new(&[place("http://127.0.0.1:1/w", "w+1+AA")]).is_err());
        assert!(Witnesses::new(&[place("http://169.254.169.254/", &key)]).is_err());
    }
}
