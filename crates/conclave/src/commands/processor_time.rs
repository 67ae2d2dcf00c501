//! How long this program had a core: others on the machine do not make that longer.

use std::time::Duration;

/// What Linux counts the time of a process in, on every machine this is built for.
const TICKS_A_SECOND: f64 = 100.0;

/// The time of this thread so far; Linux only.
pub fn of_thread() -> Option<Duration> {
    let spent = std::fs::read_to_string("/proc/thread-self/schedstat").ok()?;
    spent.split(' ').next()?.parse().ok().map(Duration::from_nanos)
}

/// The seconds of all threads so far, those that have ended too; Linux only.
pub fn seconds_of_process() -> Option<f64> {
    read_stat(&std::fs::read_to_string("/proc/self/stat").ok()?)
}

/// Reads the fields `utime` and `stime`. The name of the program stands before them in parentheses and may
/// hold blanks and parentheses itself.
fn read_stat(stat: &str) -> Option<f64> {
    let fields = stat.rsplit_once(')')?.1;
    let mut times = fields.split_whitespace().skip(11);
    let user: f64 = times.next()?.parse().ok()?;
    let system: f64 = times.next()?.parse().ok()?;
    Some((user + system) / TICKS_A_SECOND)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_with_parentheses_does_not_shift_the_fields() {
        let stat = "7 (a) b)) S 1 7 7 0 -1 4194304 90 0 0 0 250 50 0 0 20 0 3 0 100";
        assert_eq!(read_stat(stat), Some(3.0));
        assert_eq!(read_stat("7 (a) S 1"), None);
    }
}
