//! From files to figures, with rows that are easy to tell apart.

use super::*;
use clap::Parser;
use flate2::Compression;
use flate2::write::GzEncoder;
use serde_json::{Value, json};
use tempfile::TempDir;

#[derive(Debug, Parser)]
struct FigureLine {
    #[command(flatten)]
    args: Ablate,
}

/// Words of one length without common endings: a model that knows neither finds them equal.
const BLEAK: [&str; 2] = ["bleak", "sunny"];
const WICKED: [&str; 2] = ["cruel", "timid"];

/// Rows of one source that differ in one word alone: the first where they are harmful.
fn rows(source: &str, task: &str, words: [&str; 2], count: usize) -> Vec<Value> {
    let row = |at: usize| {
        let (number, safe) = (at / 2, at % 2);
        let text = format!("number {number} is {}", words[safe]);
        json!({
            "id": format!("{source}-{at}"), "source": source, "task": task, "text": text,
            "label": (["harmful", "safe"][safe]),
            "categories": ["ordinary_chat"], "language": "en",
        })
    };
    (0..count).map(row).collect()
}

fn lines(rows: &[Value]) -> String {
    rows.iter().map(|row| format!("{row}\n")).collect()
}

/// Public rows know harm, the corpus knows crisis, and each is measured on both.
fn folders() -> TempDir {
    let place = tempfile::tempdir().unwrap();
    let zipped = |name: &str, rows: &[Value]| {
        let file = std::fs::File::create(place.path().join(name)).unwrap();
        let mut file = GzEncoder::new(file, Compression::fast());
        file.write_all(lines(rows).as_bytes()).unwrap();
        file.finish().unwrap();
    };
    zipped("train.jsonl.gz", &rows("public", "prompt", WICKED, 40));
    zipped(
        "dev.jsonl.gz",
        &[rows("xstest", "prompt", WICKED, 20), rows("posts", "crisis", BLEAK, 20)].concat(),
    );
    for split in ["train", "test"] {
        let folder = place.path().join(split);
        std::fs::create_dir(&folder).unwrap();
        let rows = rows("corpus_crisis_en", "crisis", BLEAK, 40);
        std::fs::write(folder.join("crisis.en.jsonl"), lines(&rows)).unwrap();
    }
    place
}

fn args(place: &TempDir, more: &[&str]) -> Ablate {
    let path = place.path().to_str().unwrap();
    let given = ["ablate", "--data", path, "--corpus", path];
    FigureLine::parse_from(given.iter().chain(more)).args
}

fn figure<'a>(report: &'a Report, set: &str, name: &str) -> &'a report::FigureLine {
    let mut lines = report.figures.iter();
    lines.find(|line| line.set == set && line.name.starts_with(name)).unwrap()
}

#[test]
fn the_corpus_buys_what_the_public_sets_lack() {
    let place = folders();
    let report = measure(&args(&place, &[])).unwrap();
    for (set, name) in [("dev", "crisis against its"), ("corpus/test", "crisis, English")] {
        let crisis = figure(&report, set, name).compared.unwrap();
        assert!(crisis.corpus.value > 0.99 && crisis.both.value > 0.99, "{crisis:?}");
        assert!(crisis.public.value < 0.8 && crisis.gain.low > 0.1, "{crisis:?}");
    }
    let harm = figure(&report, "dev", "XSTest: AUROC");
    assert_eq!((harm.measured, harm.against), (10, 10));
    let harm = harm.compared.unwrap();
    assert!(harm.public.value > 0.99 && harm.corpus.value < 0.8, "{harm:?}");
    assert_eq!(figure(&report, "corpus/test", "injection, Japanese").compared, None);
    let untaught = |at: usize| report.trainings[at].untaught.as_slice();
    assert_eq!(untaught(0), ["crisis", "injection", "reply"]);
    assert_eq!(untaught(1), ["request", "injection", "reply"]);
    assert_eq!(untaught(2), ["injection", "reply"]);
    assert_eq!(measure(&args(&place, &[])).unwrap(), report);
}

#[test]
fn a_transformer_is_added_where_it_is_given() {
    let place = folders();
    let weights = concat!(env!("CARGO_MANIFEST_DIR"), "/../../data/models/transformer.bin");
    let table = place.path().join("table.md");
    let given = format!("both={weights}");
    let with = args(&place, &["--transformer", &given, "--out", table.to_str().unwrap()]);
    ablate(&with).unwrap();
    let (with, without) = (measure(&with).unwrap(), measure(&args(&place, &[])).unwrap());
    assert_eq!(std::fs::read_to_string(table).unwrap(), with.markdown());
    assert_eq!(
        with.trainings.iter().map(|one| one.transformer).collect::<Vec<_>>(),
        [false, false, true]
    );
    let of = |report| figure(report, "corpus/test", "crisis, English").compared.unwrap();
    assert_eq!(of(&with).public, of(&without).public);
    assert!(of(&with).both.value > 0.9, "{:?}", of(&with));
    let twice = args(&place, &["--transformer", &given, "--transformer", &given]);
    assert!(measure(&twice).unwrap_err().to_string().contains("two transformers"));
}

#[test]
fn what_cannot_be_learned_from_is_refused() {
    let place = folders();
    std::fs::write(place.path().join("train/crisis.en.jsonl"), "").unwrap();
    let error = measure(&args(&place, &[])).unwrap_err();
    assert!(error.to_string().contains("the corpus training rows"), "{error}");
    for wrong in ["all=file", "both"] {
        assert!(wrong.parse::<Given>().is_err(), "{wrong}");
    }
}
