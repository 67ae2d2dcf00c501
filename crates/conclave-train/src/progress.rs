//! Bars that show how far a step is.

use indicatif::{ProgressBar, ProgressStyle};

/// A bar for so many items of what is named.
///
/// # Errors
/// When the template is broken.
pub fn bar(what: &str, count: usize) -> anyhow::Result<ProgressBar> {
    let bar = ProgressBar::new(count as u64);
    bar.set_style(ProgressStyle::with_template("{msg} {wide_bar} {percent} %, {eta} left")?);
    bar.set_message(what.to_owned());
    Ok(bar)
}
