//! Finding the files that are held to the house rules.

#![allow(dead_code, reason = "each test of the house takes what it needs")]

use std::error::Error;
use std::fmt;
use std::fs;
use std::path::{Path, PathBuf};

/// What every check may fail with.
pub type Outcome<T> = Result<T, Box<dyn Error>>;

/// The root of the workspace.
pub fn root() -> Outcome<PathBuf> {
    let xtask = Path::new(env!("CARGO_MANIFEST_DIR"));
    let parent = xtask.parent().ok_or("xtask stands in no workspace")?;
    Ok(parent.to_owned())
}

/// Every file with this extension below a folder, sorted; build output, hidden and installed folders
/// are left out.
pub fn with_extension(folder: &Path, extension: &str) -> Outcome<Vec<PathBuf>> {
    let mut found = Vec::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder)? {
            let path = entry?.path();
            if path.is_dir() && is_ours(&path) {
                folders.push(path);
            } else if path.is_file() && path.extension().is_some_and(|ext| ext == extension) {
                found.push(path);
            }
        }
    }
    found.sort();
    Ok(found)
}

fn is_ours(folder: &Path) -> bool {
    let name = folder.file_name().unwrap_or_default().to_string_lossy();
    !name.starts_with('.') && !name.starts_with("target") && name != "node_modules"
}

/// The path as people write it: from the root, with slashes.
pub fn shown(root: &Path, path: &Path) -> String {
    let inner = path.strip_prefix(root).unwrap_or(path);
    inner.to_string_lossy().replace('\\', "/")
}

/// Everything that was found, a line each; shown as written when a test fails with it.
struct Problems(Vec<String>);

impl fmt::Display for Problems {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} found:\n{}", self.0.len(), self.0.join("\n"))
    }
}

impl fmt::Debug for Problems {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl Error for Problems {}

/// Fails with all problems at once, so that one run is enough to see them.
pub fn none_of(problems: Vec<String>) -> Outcome<()> {
    if problems.is_empty() {
        return Ok(());
    }
    Err(Problems(problems).into())
}
