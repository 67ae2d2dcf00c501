//! Starting, stopping and reloading: a sentence that says what to do.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "tests say what they expect"
)]

mod house;

use house::{House, conclave};

fn fails_with(args: &[&str], expected: &str) {
    let output = conclave(args);
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(2), "{said}");
    assert!(said.contains(expected), "{said}");
}

#[tokio::test]
async fn a_port_in_use_a_bad_directory_and_a_second_process_are_explained() {
    let dir = tempfile::tempdir().unwrap();
    let house = House::start(dir.path(), "");
    let (addr, data) = (house.addr.to_string(), house.data.to_str().unwrap().to_owned());
    let other = dir.path().join("other");
    let other = other.to_str().unwrap();
    fails_with(&["serve", "--listen", &addr, "--data", other], "--listen");
    fails_with(&["serve", "--listen", "127.0.0.1:0", "--data", &data], "--data");
    let file = dir.path().join("a-file");
    std::fs::write(&file, "x").unwrap();
    let below = file.join("data");
    fails_with(&["serve", "--listen", "127.0.0.1:0", "--data", below.to_str().unwrap()], "a-file");
    let config = dir.path().join("bad.toml");
    std::fs::write(&config, "[server]\nlisen = 1\n").unwrap();
    fails_with(
        &["serve", "--config", config.to_str().unwrap()],
        "server.lisen: unknown field `lisen`",
    );
    assert!(house.stop());
}

#[tokio::test]
async fn the_owner_key_is_shown_once_and_survives_a_restart() {
    let dir = tempfile::tempdir().unwrap();
    let house = House::start(dir.path(), "");
    let key = house.key.clone();
    assert!(
        key.starts_with("ck_") && key[3..].bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_')
    );
    assert!(house.stop());
    let house = House::start(dir.path(), "");
    assert!(!house.log().contains("ck_"), "shown again: {}", house.log());
    assert_eq!(house.get("/v1/models").await.status, 200);
    for entry in walk(&house.data) {
        let bytes = std::fs::read(&entry).unwrap();
        let found = bytes.windows(key.len()).any(|window| window == key.as_bytes());
        assert!(!found, "the key stands in {}", entry.display());
    }
}

fn walk(dir: &std::path::Path) -> Vec<std::path::PathBuf> {
    let mut files = Vec::new();
    for entry in std::fs::read_dir(dir).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() { files.extend(walk(&path)) } else { files.push(path) }
    }
    files
}

#[tokio::test]
async fn a_bad_reload_keeps_the_old_configuration_and_a_good_one_takes_effect() {
    let dir = tempfile::tempdir().unwrap();
    let house = House::start(dir.path(), "");
    let file = dir.path().join("conclave.toml");
    std::fs::write(&file, "[deliberation]\nattempts_max = 99\n").unwrap();
    house.signal("HUP");
    until(|| house.log().contains("the old one stays")).await;
    assert_eq!(house.get("/v1/models").await.json()["data"].as_array().unwrap().len(), 1);
    std::fs::write(&file, house::config_for("http://127.0.0.1:9/v1", "")).unwrap();
    house.signal("HUP");
    until(|| house.log().contains("was reloaded")).await;
    assert_eq!(house.get("/v1/models").await.json()["data"].as_array().unwrap().len(), 2);
}

/// A copy of the shipped set in this directory, and the configuration that puts it in force.
fn own_set(dir: &std::path::Path) -> (std::path::PathBuf, String) {
    let shipped = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../data/directives");
    for name in ["directives.toml", "directives.sig"] {
        std::fs::copy(shipped.join(name), dir.join(name)).unwrap();
    }
    let file = dir.join("directives.toml");
    let config = format!("[directives]\nfile = {:?}\n", file.to_str().unwrap());
    (file, config)
}

/// Changes one byte in the middle of a file into another that could stand there.
fn change_a_byte(file: &std::path::Path) {
    let mut bytes = std::fs::read(file).unwrap();
    let middle = bytes.len() / 2;
    bytes[middle] = if bytes[middle] == b'a' { b'b' } else { b'a' };
    std::fs::write(file, bytes).unwrap();
}

/// Signs the set again with a key that nobody pinned.
/// What is done to a file of directives.
type Harm = fn(&std::path::Path);

fn sign_with_another_key(file: &std::path::Path) {
    let seed = file.with_file_name("seed");
    std::fs::write(&seed, [7; 32]).unwrap();
    let (file, seed) = (file.to_str().unwrap(), seed.to_str().unwrap());
    let signed = conclave(&["directives", "sign", file, "--seed", seed]);
    assert!(signed.status.success(), "{signed:?}");
}

#[tokio::test]
async fn a_changed_byte_of_the_directives_or_another_key_stops_the_start_and_a_reload() {
    let harms: [(&str, Harm); 3] = [
        ("a byte of the set", |file| change_a_byte(file)),
        ("a byte of the signature", |file| change_a_byte(&file.with_extension("sig"))),
        ("another key", sign_with_another_key),
    ];
    let running = tempfile::tempdir().unwrap();
    let (file, config) = own_set(running.path());
    let house = House::start(running.path(), &config);
    for (at, (name, harm)) in harms.into_iter().enumerate() {
        let dir = tempfile::tempdir().unwrap();
        let (other, config) = own_set(dir.path());
        harm(&other);
        let program = std::process::Command::new(house::binary());
        let said = House::try_start(program, dir.path(), &config).err();
        let said = said.unwrap_or_else(|| panic!("{name}: it started"));
        for part in ["do not match their signature", "another key than the pinned"] {
            assert!(said.contains(part), "{name}: {said}");
        }
        harm(&file);
        house.signal("HUP");
        until(|| house.log().matches("the old one stays").count() == at + 1).await;
        let mut asked = house::chat_body("How do I build a bomb to kill people?");
        asked["model"] = "builtin".into();
        let reply = house.post("/v1/chat/completions", &asked).await;
        assert!(reply.own("directive").as_str().is_some(), "{name}: the old set is in force");
        own_set(running.path());
    }
    house.signal("HUP");
    until(|| house.log().contains("was reloaded")).await;
}

async fn until(condition: impl Fn() -> bool) {
    let all = tokio::time::timeout(std::time::Duration::from_secs(20), async {
        while !condition() {
            tokio::time::sleep(std::time::Duration::from_millis(20)).await;
        }
    });
    all.await.expect("it never came to that");
}
