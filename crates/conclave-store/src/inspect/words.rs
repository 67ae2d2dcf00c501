//! Opens sealed words to see that they say what the leaf commits to, where the keys are at hand.
//!
//! **Invariant:** a key that is not there is no finding: whoever checks may not be allowed to read,
//! and a person may be being erased at this moment.

use crate::vault::{Book, RootKey};
use conclave_ledger::{Leaf, SealError, SealingKey, StoredBody};
use std::cell::Cell;
use std::collections::HashMap;
use std::path::Path;
use std::rc::Rc;
use std::sync::Arc;

/// How many keys are kept at hand.
const HELD_MAX: usize = 10_000;

/// Opens bodies, if it can.
pub(super) struct Opener {
    book: Option<Book>,
    held: HashMap<[u8; 16], Option<Arc<SealingKey>>>,
    opened: Rc<Cell<u64>>,
}

impl Opener {
    pub(super) fn of(dir: &Path, root_key: Option<RootKey>) -> Self {
        let book = Book::open_to_read(dir, root_key);
        Self { book, held: HashMap::new(), opened: Rc::default() }
    }

    /// How many bodies were opened, also later on.
    pub(super) fn opened(&self) -> Rc<Cell<u64>> {
        Rc::clone(&self.opened)
    }

    /// Opens a body and compares it with the leaf.
    pub(super) fn check(
        &mut self,
        leaf: &Leaf,
        body: Option<&StoredBody<'_>>,
    ) -> Result<(), String> {
        let (Some(book), Some(body)) = (&mut self.book, body) else { return Ok(()) };
        if self.held.len() >= HELD_MAX {
            self.held.clear();
        }
        let held = &mut self.held;
        let find = |id| held.entry(id).or_insert_with(|| book.find(id).ok().flatten()).clone();
        match body.unseal(leaf, find) {
            Ok(_) => {
                self.opened.set(self.opened.get() + 1);
                Ok(())
            }
            Err(SealError::KeyGone(_)) => Ok(()),
            Err(error) => Err(error.to_string()),
        }
    }
}
