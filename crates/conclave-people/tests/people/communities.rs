//! Who speaks for a community, and what it has laid down.

use crate::house::{caller, office, tenant};
use conclave_govern::{CulturalAsk, CulturalFinding, Protocol};
use conclave_people::PeopleError;
use conclave_ports::{Governance, KeyRole};
use serde_json::json;

#[tokio::test]
async fn only_elders_change_what_is_theirs_and_others_see_the_public_part() {
    let office = office().with_elders().await;
    let people = &office.people;
    let protocol: Protocol = serde_json::from_value(json!({"community": "River People",
        "terms": [{"spellings": ["churinga"], "sacred": true}]}))
    .unwrap();
    for role in KeyRole::ALL {
        let stranger = caller("stranger", role);
        let refused = people.lay_down(&stranger, protocol.clone(), None).await;
        assert!(matches!(refused, Err(PeopleError::Forbidden(_))), "{role:?}");
        let refused = people.name_elder(&stranger, "river people", "s", "S").await;
        assert!(matches!(refused, Err(PeopleError::Forbidden(_))), "{role:?}");
    }
    // The right key in the wrong role is the wrong key.
    let owner = caller("e1", KeyRole::Owner);
    assert!(people.lay_down(&owner, protocol.clone(), None).await.is_err());
    let elder = caller("e1", KeyRole::Elder);
    assert_eq!(people.lay_down(&elder, protocol.clone(), Some(0)).await, Ok(1));
    assert_eq!(people.lay_down(&elder, protocol, Some(0)).await, Err(PeopleError::Conflict));
    let own = people.protocol(&elder, "RIVER people").await.unwrap();
    assert_eq!(own.protocol.terms.len(), 1);
    let seen = people.protocol(&caller("a", KeyRole::Admin), "River People").await.unwrap();
    assert!(seen.protocol.terms.is_empty());
    let ask = |text: &str| CulturalAsk {
        texts: vec![text.into()],
        sensitivity: conclave_core::Sensitivity::Low,
        affiliations: vec![],
        labels: vec![],
        audience: None,
        now_ms: 0,
    };
    let found = people.look(&tenant("t"), ask("They carried the churinga.")).await.unwrap();
    assert!(matches!(found, CulturalFinding::Hold { sacred: true, .. }), "{found:?}");
    let found = people.look(&tenant("other"), ask("They carried the churinga.")).await.unwrap();
    assert_eq!(found, CulturalFinding::Clear, "each tenant has its own communities");
    let last = people.remove_elder(&elder, "River People", "e2").await.unwrap();
    assert_eq!(last.len(), 1);
    assert!(people.remove_elder(&elder, "River People", "e1").await.is_err(), "the last stays");
}
