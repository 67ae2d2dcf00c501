//! A role with the rights that the guide names, and no others, is enough for a gateway.

use crate::place::Place;
use crate::{forgetting, money, promises, records, restore};
use conclave_store::DatabaseUrl;

const GUIDE: &str = include_str!("../../../../docs/guide/postgresql.md");

/// The statements of the guide.
fn grants() -> String {
    let begin = GUIDE.find("GRANT SELECT").unwrap();
    let length = GUIDE[begin..].find("```").unwrap();
    GUIDE[begin..begin + length].to_owned()
}

/// A database whose tables belong to somebody else.
fn restricted() -> Place {
    let mut place = Place::postgres();
    drop(place.open());
    let cluster = place.cluster.as_ref().unwrap();
    cluster.sql("postgres", "CREATE ROLE conclave_app LOGIN").unwrap();
    cluster.sql("fresh0", &grants()).unwrap();
    let url = cluster.url("fresh0").replace("conclave@", "conclave_app@");
    place.url = Some(DatabaseUrl::parse(&url).unwrap());
    place
}

macro_rules! enough {
    ($($module:ident::$name:ident),* $(,)?) => {$(
        #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
        async fn $name() {
            $module::$name(&restricted()).await;
        }
    )*};
}

enough!(
    promises::what_is_appended_is_read_and_verified,
    promises::a_key_made_elsewhere_opens_and_is_entered_once,
    promises::the_first_key_and_the_first_person_are_made_once,
    promises::a_receipt_proves_its_decision,
    forgetting::an_erased_person_is_gone_and_the_log_explains_it,
    forgetting::what_is_due_is_purged_once,
    money::a_reservation_nobody_settles_is_charged_and_corrected_when_its_decision_is_found,
    records::changes_made_together_are_made_all_or_none,
    records::what_a_record_says_of_a_person_goes_with_their_key,
    restore::f04_a_database_from_a_backup_gets_back_everything_in_its_place,
);

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_role_with_these_rights_cannot_change_the_log() {
    let place = restricted();
    let store = place.open();
    crate::support::turn(&store, 1).await;
    drop(store);
    let cluster = place.cluster.as_ref().unwrap();
    for statement in [
        "UPDATE log_bundle SET n = 1",
        "DELETE FROM log_bundle",
        "TRUNCATE log_bundle",
        "DELETE FROM log_head",
        "DELETE FROM log_tile",
        "DELETE FROM log_checkpoint",
        "ALTER TABLE log_bundle DISABLE TRIGGER ALL",
        "DELETE FROM restore_accepted",
    ] {
        let as_app = format!("SET ROLE conclave_app; {statement}");
        let said = cluster.sql("fresh0", &as_app).unwrap_err().to_string();
        let refused = said.contains("permission denied") || said.contains("must be owner");
        assert!(refused, "{statement}: {said}");
    }
    place.sound();
}
