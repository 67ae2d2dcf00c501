//! The files under `deploy/` and the Dockerfile say what this program says.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "tests say what they expect"
)]

mod house;

use conclave_gateway::ROUTES;
use conclave_testkit::{Behaviour, MockModel, Script};
use house::{House, binary, conclave, config_for};
use serde_json::Value;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::Command;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn read(path: &str) -> String {
    std::fs::read_to_string(root().join(path)).unwrap_or_else(|error| panic!("{path}: {error}"))
}

/// Names of metrics in a text, without what a histogram adds to them.
fn metrics_in(text: &str) -> BTreeSet<String> {
    let is_name = |c: char| c.is_ascii_alphanumeric() || c == '_';
    let words = text.split(|c: char| !is_name(c));
    let ours = words.filter(|word| word.starts_with("conclave_") || word.starts_with("process_"));
    let plain = |word: &str| {
        let ends = ["_bucket", "_count", "_sum"];
        ends.iter().find_map(|end| word.strip_suffix(end)).unwrap_or(word).to_owned()
    };
    ours.map(plain).collect()
}

#[tokio::test]
async fn dashboard_alerts_and_reference_name_the_metrics_there_are() {
    let reply = Behaviour::Reply("That sounds like a full day. What was best?".to_owned());
    let mock = MockModel::scripted(Script::always(reply)).await.unwrap();
    let dir = tempfile::tempdir().unwrap();
    let house = House::start(dir.path(), &config_for(&mock.base_url(), ""));
    assert_eq!(house.chat("My day was long").await.status, 200);
    let page = house.get("/metrics").await.body;
    let told: BTreeSet<_> = page
        .lines()
        .filter_map(|line| line.strip_prefix("# TYPE ")?.split(' ').next().map(str::to_owned))
        .collect();
    assert!(told.len() > 30, "{told:?}");
    assert!(page.contains("conclave_ballots_total{verifier=\"crisis\",cast=\"safe\"} 1"), "{page}");
    assert!(page.contains("conclave_model_duration_seconds_count{provider=\"mock\"} 1"), "{page}");

    for file in ["deploy/grafana/conclave.json", "deploy/prometheus/alerts.yaml"] {
        let named = metrics_in(&read(file));
        assert!(named.len() > 10, "{file}: {named:?}");
        let unknown: Vec<_> = named.difference(&told).collect();
        assert!(unknown.is_empty(), "{file} names {unknown:?}, which /metrics has not");
    }
    let shown = metrics_in(&read("deploy/grafana/conclave.json"));
    let not_shown: Vec<_> = told.difference(&shown).collect();
    assert!(not_shown.is_empty(), "no panel shows {not_shown:?}");
    let reference = read("docs/reference/telemetry.md");
    let table = reference.split("## Metrics").nth(1).unwrap().split("## Traces").next().unwrap();
    assert_eq!(metrics_in(table), told, "the reference and /metrics");
}

#[test]
fn the_dashboard_is_whole() {
    let dashboard: Value = serde_json::from_str(&read("deploy/grafana/conclave.json")).unwrap();
    let panels = dashboard["panels"].as_array().unwrap();
    let mut ids = BTreeSet::new();
    for panel in panels {
        assert!(ids.insert(panel["id"].as_u64().unwrap()), "{panel}");
        assert!(!panel["title"].as_str().unwrap().is_empty());
        if panel["type"] != "row" {
            assert!(!panel["description"].as_str().unwrap().is_empty(), "{panel}");
            assert!(!panel["targets"].as_array().unwrap().is_empty(), "{panel}");
        }
    }
    assert!(panels.len() > 20);
    let guide = read("docs/guide/operations.md");
    for line in read("deploy/prometheus/alerts.yaml").lines() {
        if let Some(name) = line.trim().strip_prefix("- alert: ") {
            assert!(guide.contains(&format!("`{name}`")), "the guide does not explain {name}");
        }
    }
}

/// Options of `conclave serve` that a file uses.
fn options_in(text: &str) -> BTreeSet<&str> {
    let words = text.split(|c: char| c.is_whitespace() || "[],\"".contains(c));
    words.filter(|word| word.starts_with("--") && word.len() > 2).collect()
}

#[test]
fn every_option_path_and_port_exists() {
    let help = String::from_utf8(conclave(&["serve", "--help"]).stdout).unwrap();
    let unit = read("deploy/systemd/conclave.service");
    let start = unit.lines().find(|line| line.starts_with("ExecStart=")).unwrap();
    let dockerfile = read("Dockerfile");
    let run = dockerfile.lines().find(|line| line.starts_with("CMD ")).unwrap();
    let set = read("deploy/kubernetes/statefulset.yaml");
    let args = set.lines().find(|line| line.trim().starts_with("args:")).unwrap();
    for line in [start, run, args] {
        assert!(line.contains("serve") && !options_in(line).is_empty(), "{line}");
        for option in options_in(line) {
            assert!(help.contains(option), "{line}: there is no {option}");
        }
    }
    let port = "8420";
    assert!(help.contains(port) || read("docs/reference/configuration.md").contains(port));
    assert!(dockerfile.contains("EXPOSE 8420") && set.contains("containerPort: 8420"));
    let paths: BTreeSet<_> =
        set.lines().filter_map(|line| line.trim().strip_prefix("path: /")).collect();
    assert_eq!(paths, BTreeSet::from(["livez", "readyz"]));
    for path in paths.iter().chain(&["metrics"]) {
        let is_served = ROUTES
            .iter()
            .any(|route| route.method == "get" && route.path.strip_prefix('/') == Some(*path));
        assert!(is_served, "there is no /{path}");
    }
    let user = dockerfile.lines().find_map(|line| line.strip_prefix("USER ")).unwrap();
    assert!(user.starts_with("10001") && set.contains("runAsUser: 10001"), "not root: {user}");
}

/// The configuration in the example for Kubernetes can be used.
#[test]
fn the_configuration_of_the_cluster_passes_its_check() {
    let text = read("deploy/kubernetes/config.yaml");
    let (_, inner) = text.split_once("conclave.toml: |\n").unwrap();
    let toml: String = inner
        .lines()
        .map(|line| format!("{}\n", line.strip_prefix("    ").unwrap_or(line)))
        .collect();
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("conclave.toml");
    std::fs::write(&file, &toml).unwrap();
    let check = Command::new(binary())
        .args(["config", "check"])
        .arg(&file)
        .env("OPENAI_API_KEY", "sk-test")
        .env("DATABASE_URL", "postgres://conclave@db.example:5432/conclave")
        .output()
        .unwrap();
    assert!(check.status.success(), "{}", String::from_utf8_lossy(&check.stdout));
    let set = read("deploy/kubernetes/statefulset.yaml");
    for rest in toml.split("env:").skip(1) {
        let name = rest.split('"').next().unwrap();
        assert!(set.contains(&format!("- name: {name}\n")), "the pods have no {name}");
    }
    let number = |text: &str, key: &str| -> u64 {
        let line = text.lines().find_map(|line| line.trim().strip_prefix(key)).unwrap();
        line.trim_start_matches([' ', '=', ':']).parse().unwrap()
    };
    let stop_ms = number(&toml, "drain_grace_ms") + number(&toml, "drain_timeout_ms");
    let patience_s = number(&set, "terminationGracePeriodSeconds");
    assert!(stop_ms / 1_000 < patience_s, "it is killed before it has finished");
}

/// Tools that check such files, where they are installed.
#[test]
fn systemd_and_kustomize_understand_their_files() {
    let dir = tempfile::tempdir().unwrap();
    let unit = read("deploy/systemd/conclave.service");
    let unit = unit.replace("/usr/local/bin/conclave", binary().to_str().unwrap());
    // The user is made when it is installed.
    let unit = unit.replace("User=conclave\nGroup=conclave", "User=root\nGroup=root");
    let file = dir.path().join("conclave.service");
    std::fs::write(&file, unit).unwrap();
    if let Ok(verified) = Command::new("systemd-analyze").arg("verify").arg(&file).output() {
        let said = String::from_utf8_lossy(&verified.stderr).into_owned();
        let about: Vec<_> = said.lines().filter(|line| line.contains("conclave.service")).collect();
        assert!(about.is_empty(), "{about:?}");
    }
    let folder = root().join("deploy/kubernetes");
    if let Ok(built) = Command::new("kubectl").arg("kustomize").arg(&folder).output() {
        let said = String::from_utf8_lossy(&built.stderr).into_owned();
        assert!(built.status.success(), "{said}");
        let whole = String::from_utf8_lossy(&built.stdout).into_owned();
        for kind in ["Namespace", "ConfigMap", "StatefulSet", "Service", "PodDisruptionBudget"] {
            assert!(whole.contains(&format!("kind: {kind}\n")), "{kind}");
        }
    }
}
