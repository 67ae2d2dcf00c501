//! What a program in Python, JavaScript or the like would do, by the calls it writes.

use super::facts::head;
use super::shell::{self, Weight};

/// So much of what stands behind a call is looked at.
const CALL_BYTES_MAX: usize = 1024;

/// Weighs the gravest call of a program; nothing when none is grave.
#[must_use]
pub fn weigh(text: &str) -> Weight {
    let removing = REMOVES.iter().flat_map(|call| arguments(text, call));
    let running = RUNS.iter().flat_map(|call| arguments(text, call));
    let removed = removing.map(|inside| {
        let path = literals(inside).into_iter().next().unwrap_or_default();
        shell::weigh(&format!("rm -r {path}"))
    });
    let ran = running.map(|inside| shell::weigh(&literals(inside).join(" ")));
    removed.chain(ran).max_by_key(|weight| weight.0).unwrap_or(shell::NOTHING)
}

/// Calls that remove a directory with everything in it.
const REMOVES: [&str; 7] =
    ["rmtree(", "rmSync(", "rimraf(", "rm_rf(", "remove_dir_all(", "removedirs(", "deltree("];

/// Calls that run a command.
const RUNS: [&str; 13] = [
    "os.system(",
    "subprocess.run(",
    "subprocess.call(",
    "subprocess.check_call(",
    "subprocess.check_output(",
    "Popen(",
    "popen(",
    "execSync(",
    "exec(",
    "spawn(",
    "spawnSync(",
    "shell_exec(",
    "system(",
];

/// What stands between the brackets of each such call.
fn arguments<'t>(text: &'t str, call: &'t str) -> impl Iterator<Item = &'t str> {
    text.match_indices(call).map(move |(at, call)| {
        let rest = &text[at + call.len()..];
        // A line without end is looked at once, not once for each call in it.
        let rest = head(rest, CALL_BYTES_MAX);
        &rest[..rest.find('\n').unwrap_or(rest.len())]
    })
}

/// The texts in quotes.
fn literals(text: &str) -> Vec<&str> {
    let mut found = Vec::new();
    let mut rest = text;
    while let Some(start) = rest.find(['"', '\'']) {
        let quote = rest.as_bytes()[start];
        let inside = &rest[start + 1..];
        let Some(end) = inside.find(char::from(quote)) else {
            break;
        };
        found.push(&inside[..end]);
        rest = &inside[end + 1..];
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn programs_weigh_what_their_calls_do() {
        for (program, low, high) in [
            ("import shutil; shutil.rmtree('/')", 90, 100),
            ("shutil.rmtree('build')", 0, 25),
            ("fs.rmSync('/home', { recursive: true })", 90, 100),
            ("import os\nos.system('rm -rf ~')", 90, 100),
            ("subprocess.run([\"rm\", \"-rf\", \"/etc\"])", 90, 100),
            ("subprocess.run(['ls', '-l'])", 0, 20),
            ("print('rm -rf /')", 0, 20),
            ("os.system(", 0, 20),
        ] {
            let harm = weigh(program).0;
            assert!((low..=high).contains(&harm), "{program}: {harm}");
        }
    }
}
