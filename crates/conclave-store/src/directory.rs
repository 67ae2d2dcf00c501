//! What tells a data directory from any other.

use std::path::Path;

/// Every data directory has one of these, whichever database is behind it: the first command that
/// works in it draws `pepper`, and a copy for checking has at least the log or the key that signs it.
const MARKS: [&str; 3] = ["pepper", "ledger.db", "ledger.key"];

/// Whether a gateway or a command has ever kept something in this directory.
#[must_use]
pub fn is_data_directory(dir: &Path) -> bool {
    MARKS.iter().any(|name| dir.join(name).is_file())
}
