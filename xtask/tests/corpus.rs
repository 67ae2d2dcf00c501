//! The corpus is what its README says: well formed, in balance, cut by topic, written and not made
//! from templates, and free of real people's addresses and numbers.
//!
//! `CONCLAVE_CORPUS` names another folder of the same layout to be read instead.

mod corpus_lint;
mod files;

use corpus_lint::row::{Corpus, Row, groups};
use corpus_lint::{balance, contacts, duplicates, readings, schema, splits, templates};
use files::{Outcome, none_of, root};
use std::path::PathBuf;
use std::sync::LazyLock;

/// Read once for all tests of one process; a failure is kept as its sentence.
static CORPUS: LazyLock<Result<Corpus, String>> =
    LazyLock::new(|| read().map_err(|error| error.to_string()));

fn folder() -> Outcome<PathBuf> {
    let elsewhere = std::env::var_os("CONCLAVE_CORPUS").map(PathBuf::from);
    elsewhere.map_or_else(|| root().map(|root| root.join("corpus")), Ok)
}

/// What the second reader said, beside the rows.
fn second_readings() -> Outcome<Vec<readings::Reading>> {
    Ok(readings::parse(&std::fs::read_to_string(folder()?.join("second-reading.tsv"))?)?)
}

fn read() -> Outcome<Corpus> {
    let folder = folder()?;
    let place = folder.display();
    Corpus::read(&folder).map_err(|error| format!("{place}: {error}").into())
}

fn corpus() -> Outcome<&'static Corpus> {
    CORPUS.as_ref().map_err(|error| error.clone().into())
}

/// Fails with what a check finds in the rows that can be read.
fn nothing_found(check: impl Fn(&[Row]) -> Vec<String>) -> Outcome<()> {
    none_of(check(&corpus()?.rows))
}

#[test]
fn every_row_is_well_formed() -> Outcome<()> {
    none_of(corpus()?.faults.clone())
}

#[test]
fn no_two_rows_share_an_id() -> Outcome<()> {
    nothing_found(schema::shared_ids)
}

#[test]
fn harmful_and_safe_are_in_balance() -> Outcome<()> {
    nothing_found(balance::labels)
}

#[test]
fn no_theme_is_thin() -> Outcome<()> {
    for (group, rows) in groups(&corpus()?.rows) {
        println!("{group}: {} rows", rows.len());
    }
    nothing_found(balance::thin_groups)
}

#[test]
fn languages_have_their_share() -> Outcome<()> {
    nothing_found(balance::languages)
}

#[test]
fn the_corpus_is_large() -> Outcome<()> {
    nothing_found(balance::total)
}

#[test]
fn a_topic_lies_in_one_split() -> Outcome<()> {
    nothing_found(splits::torn_topics)
}

#[test]
fn twins_lie_in_one_split_and_differ() -> Outcome<()> {
    nothing_found(splits::bad_pairs)
}

#[test]
fn nothing_is_said_twice() -> Outcome<()> {
    nothing_found(duplicates::exact)
}

#[test]
fn hardly_anything_is_said_nearly_twice() -> Outcome<()> {
    nothing_found(duplicates::near)
}

#[test]
fn the_wording_varies() -> Outcome<()> {
    nothing_found(templates::poor_wording)
}

#[test]
fn no_phrase_is_worn() -> Outcome<()> {
    nothing_found(templates::worn_phrases)
}

#[test]
fn no_opening_is_worn() -> Outcome<()> {
    nothing_found(templates::worn_openings)
}

#[test]
fn mail_addresses_are_reserved() -> Outcome<()> {
    nothing_found(contacts::addresses)
}

#[test]
fn telephone_numbers_are_reserved() -> Outcome<()> {
    nothing_found(contacts::telephones)
}

#[test]
fn the_two_readers_agree_on_every_theme() -> Outcome<()> {
    let readings = second_readings()?;
    for (theme, rows, kappa) in readings::agreement(&readings) {
        println!("{theme}: {rows} rows read twice, kappa {kappa:.3}");
    }
    none_of(readings::themes_in_doubt(&readings))
}

#[test]
fn enough_is_read_twice() -> Outcome<()> {
    none_of(readings::unread(&corpus()?.rows, &second_readings()?))
}

#[test]
fn nothing_in_doubt_is_left() -> Outcome<()> {
    none_of(readings::unsettled(&corpus()?.rows, &second_readings()?))
}
