//! What is known where connections come in: how many there are, and whether they are still welcome.

use crate::observation::metrics::House;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// The doors of one house, shared by whoever lets people in and whoever is asked about it.
#[derive(Clone, Default)]
pub struct Doors {
    house: Arc<House>,
    draining: Arc<AtomicBool>,
}

impl Doors {
    /// From now on `/readyz` says that it stops.
    pub fn drain(&self) {
        self.draining.store(true, Ordering::Release);
    }

    pub(crate) fn is_draining(&self) -> bool {
        self.draining.load(Ordering::Acquire)
    }

    /// What is counted.
    pub(crate) fn house(&self) -> &House {
        &self.house
    }
}
