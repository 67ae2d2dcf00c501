//! Places where a build made for it dies on purpose, so that a test can see what is left.
//!
//! **Invariant:** without the feature `armed` every call here is empty: the shipped program holds no
//! name of a place and reads no variable. A test looks for them in its bytes.
//!
//! In an armed build the variable `CONCLAVE_DIE_AT` says where and when, as `PLACE:COUNT`: the
//! process kills itself, as `kill -9` would, when it comes to that place for the COUNT-th time.

#[cfg(feature = "armed")]
mod armed {
    use rustix::process::{Signal, getpid, kill_process};
    use std::sync::OnceLock;
    use std::sync::atomic::{AtomicU64, Ordering};

    /// The variable that says where to die.
    pub const VARIABLE: &str = "CONCLAVE_DIE_AT";

    /// Every place there is.
    pub const PLACES: [&str; 34] = [
        "turn.accepted",
        "turn.answered",
        "turn.decided",
        "turn.recorded",
        "run.recorded",
        "reply.begun",
        "reply.half_sent",
        "spool.before_create",
        "spool.created",
        "spool.before_write",
        "spool.inside_write",
        "spool.before_sync",
        "spool.synced",
        "drain.before_begin",
        "drain.locked",
        "drain.inserted",
        "drain.before_commit",
        "drain.committed",
        "drain.before_remove",
        "restore.put_aside",
        "restore.accepted",
        "restore.handed_over",
        "checkpoint.signed",
        "checkpoint.kept",
        "erase.forgotten",
        "erase.entered",
        "purge.chosen",
        "purge.entered",
        "keys.prepared",
        "keys.replaced",
        "rebuild.derived",
        "move.copied",
        "move.committed",
        "schema.step",
    ];

    struct Order {
        place: String,
        left: AtomicU64,
    }

    fn order() -> Option<&'static Order> {
        static ORDER: OnceLock<Option<Order>> = OnceLock::new();
        let read = || {
            let text = std::env::var(VARIABLE).ok()?;
            let (place, count) = text.split_once(':')?;
            Some(Order { place: place.to_owned(), left: AtomicU64::new(count.parse().ok()?) })
        };
        ORDER.get_or_init(read).as_ref()
    }

    /// Whether the process shall die at this place now.
    #[must_use]
    pub fn is_due(place: &str) -> bool {
        debug_assert!(PLACES.contains(&place), "{place} is not in the list");
        order().is_some_and(|order| {
            order.place == place && order.left.fetch_sub(1, Ordering::SeqCst) == 1
        })
    }

    /// Dies at once; nothing is flushed, nothing is said.
    pub fn die() {
        let _ = kill_process(getpid(), Signal::KILL);
        loop {
            std::thread::park();
        }
    }

    /// Dies here, if it was told so.
    pub fn reach(place: &str) {
        if is_due(place) {
            die();
        }
    }
}

#[cfg(not(feature = "armed"))]
mod armed {
    /// Never.
    #[inline(always)]
    #[must_use]
    pub const fn is_due(_place: &str) -> bool {
        false
    }

    /// Does nothing.
    #[inline(always)]
    pub const fn die() {}

    /// Does nothing.
    #[inline(always)]
    pub const fn reach(_place: &str) {}
}

pub use armed::*;
