//! What the allocator is told: what is freed goes back to the system at once.
//!
//! Left alone, it keeps most of what was needed for a moment while rules and models were read, about as much
//! as a gateway needs for the rest of its life. It reads its options from the environment before `main`, and
//! there is no safe call that sets one later; so the program starts itself once more, as the same process.

/// How many milliseconds freed memory is kept, as the allocator calls it.
const OPTION: &str = "MIMALLOC_PURGE_DELAY";

/// Returns when the option is set; where starting once more does not work, the program goes on as it is.
#[cfg(unix)]
pub fn give_back_at_once() {
    use std::os::unix::process::CommandExt;
    if std::env::var_os(OPTION).is_some() {
        return;
    }
    let (Ok(program), mut said) = (std::env::current_exe(), std::env::args_os()) else {
        return;
    };
    let mut again = std::process::Command::new(program);
    if let Some(name) = said.next() {
        again.arg0(name);
    }
    // Only an error comes back, and it costs memory alone.
    let _ = again.args(said).env(OPTION, "0").exec();
}

/// Elsewhere a program cannot become another one.
#[cfg(not(unix))]
pub fn give_back_at_once() {}
