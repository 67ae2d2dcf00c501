//! The stores that are tested, by what they have in common.

use crate::support::*;
use conclave_ledger::{Leaf, Report};
use conclave_store::{
    DatabaseUrl, Inspection, KeyBook, Pepper, Store, StoreOptions, inspect, inspect_database,
};
use conclave_testkit::Cluster;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use tempfile::TempDir;

/// A place where stores can be opened, again and again.
pub struct Place {
    pub root: TempDir,
    pub cluster: Option<Cluster>,
    pub url: Option<DatabaseUrl>,
}

impl Place {
    pub fn sqlite() -> Self {
        Self { root: TempDir::new().unwrap(), cluster: None, url: None }
    }

    pub fn postgres() -> Self {
        let cluster = Cluster::start().unwrap_or_else(|why| panic!("{why}"));
        let url = DatabaseUrl::parse(&cluster.fresh().unwrap()).unwrap();
        Self { root: TempDir::new().unwrap(), cluster: Some(cluster), url: Some(url) }
    }

    /// The data directory of a replica; all have the first one's secrets.
    pub fn dir(&self, replica: usize) -> PathBuf {
        let dir = self.root.path().join(format!("replica{replica}"));
        std::fs::create_dir_all(&dir).unwrap();
        for secret in ["pepper", "ledger.key", "root.key"] {
            let first = self.root.path().join("replica0").join(secret);
            if first.exists() && !dir.join(secret).exists() {
                std::fs::copy(first, dir.join(secret)).unwrap();
            }
        }
        dir
    }

    pub fn options(&self, replica: usize) -> StoreOptions {
        let seed = 1_000_000 * (replica as u64 + 1);
        StoreOptions {
            database: self.url.clone(),
            entropy: Arc::new(CountingEntropy::from(seed)),
            ..options(&self.dir(replica))
        }
    }

    pub fn open(&self) -> Store {
        Store::open(self.options(0)).unwrap()
    }

    /// The key book as another process opens it.
    pub fn book(&self) -> (KeyBook, CountingEntropy) {
        let entropy = CountingEntropy::from(777_000);
        let pepper = Pepper::load(&self.dir(0), &entropy).unwrap();
        (KeyBook::open(&self.dir(0), self.url.as_ref(), pepper).unwrap(), entropy)
    }

    pub fn inspect_with(&self, dir: Option<&Path>, inspection: Inspection<'_>) -> Report {
        match &self.url {
            Some(url) => inspect_database(url, dir, inspection).unwrap(),
            None => inspect(&self.dir(0), inspection).unwrap(),
        }
    }

    pub fn check(&self) -> Report {
        self.inspect_with(Some(&self.dir(0)), Inspection::default())
    }

    pub fn sound(&self) -> Report {
        let report = self.check();
        assert!(report.ok, "{:?}", report.first_bad);
        report
    }

    /// Every leaf of the log, in order; the log must be sound.
    pub fn log(&self) -> Vec<Leaf> {
        let leaves = Arc::new(Mutex::new(Vec::new()));
        let seen = Arc::clone(&leaves);
        let check =
            Box::new(move |_: u64, leaf: &Leaf, _: Option<&conclave_ledger::StoredBody<'_>>| {
                seen.lock().unwrap().push(leaf.clone());
                Ok(())
            });
        let report =
            self.inspect_with(None, Inspection { check: Some(check), ..Inspection::default() });
        assert!(report.ok, "{:?}", report.first_bad);
        std::mem::take(&mut leaves.lock().unwrap())
    }
}
