//! What is found in texts, and what it weighs.

use super::*;
use crate::season::{Season, SeasonKind};
use proptest::prelude::*;

fn term(spellings: &[&str], sacred: bool) -> Term {
    let spellings = spellings.iter().map(|one| (*one).to_owned()).collect();
    Term { spellings, sacred, mention: Mention::Flag, public: false }
}

fn protocol() -> Protocol {
    serde_json::from_value(serde_json::json!({"community": "River People"})).unwrap()
}

fn with_terms() -> Protocols {
    let terms = vec![
        term(&["Churinga", "tjurunga"], true),
        term(&["カムイノミ", "神様の火"], true),
        term(&["red stone"], false),
        term(&["พญานาค"], true),
    ];
    Protocols::new(vec![Protocol { terms, ..protocol() }]).unwrap()
}

fn ask(text: &str) -> CulturalAsk {
    CulturalAsk {
        texts: vec![text.to_owned()],
        sensitivity: Sensitivity::Low,
        affiliations: vec![],
        labels: vec![],
        audience: None,
        now_ms: 0,
    }
}

fn of_river(text: &str) -> CulturalAsk {
    CulturalAsk { affiliations: vec!["river people".into()], ..ask(text) }
}

/// `clear`, `flag`, `hold` or `sacred`.
fn weight(protocols: &Protocols, ask: &CulturalAsk) -> &'static str {
    match look(protocols, ask) {
        CulturalFinding::Clear => "clear",
        CulturalFinding::Flag { .. } => "flag",
        CulturalFinding::Hold { sacred: false, .. } => "hold",
        CulturalFinding::Hold { sacred: true, .. } => "sacred",
    }
}

#[test]
fn terms_are_found_in_any_script_and_spelling_and_not_inside_other_words() {
    let protocols = with_terms();
    for (text, expected) in [
        ("We went home.", "clear"),
        ("They carried the CHURINGA north.", "sacred"),
        ("They carried the chu\u{200B}ringas north.", "sacred"),
        ("They carried the chúringa's shadow.", "sacred"),
        ("Ｃｈｕｒｉｎｇａ", "sacred"),
        ("churingaloo is a town", "clear"),
        ("the red-stone path", "hold"),
        ("the red\nstone path", "hold"),
        ("a bored stone", "clear"),
        ("夜にかむいのみをした", "sacred"),
        ("夜に神様 の火をした", "sacred"),
        ("เห็นพญานาคในแม่น้ำ", "sacred"),
        ("In this school lesson we learn about the churinga.", "flag"),
        ("In this school lesson: churinga. And then they sang it.", "sacred"),
    ] {
        assert_eq!(weight(&protocols, &ask(text)), expected, "{text}");
    }
}

#[test]
fn a_community_may_guard_the_mention_too() {
    let mut terms = vec![term(&["churinga"], true)];
    terms[0].mention = Mention::Hold;
    let protocols = Protocols::new(vec![Protocol { terms, ..protocol() }]).unwrap();
    assert_eq!(weight(&protocols, &ask("In this lesson: what is a churinga?")), "sacred");
}

#[test]
fn what_the_caller_says_and_labels_count() {
    let none = Protocols::default();
    let sacred = CulturalAsk { sensitivity: Sensitivity::Sacred, ..ask("x") };
    assert_eq!(weight(&none, &sacred), "sacred");
    for (label, audience, expected) in [
        ("TK SS", None, "sacred"),
        ("tk_mr", Some("men"), "sacred"),
        ("tk_cs", None, "hold"),
        ("tk_co", None, "hold"),
        ("tk_co", Some("Community"), "clear"),
        ("tk_nc", None, "hold"),
        ("tk_nc", Some("school"), "clear"),
        ("tk_nc", Some("commercial"), "hold"),
        ("tk_a", None, "flag"),
        ("tk_v", None, "clear"),
        ("tk_s", None, "hold"),
        ("tk_whatever", None, "hold"),
        ("", None, "hold"),
    ] {
        let labels = vec![label.to_owned()];
        let ask = CulturalAsk { labels, audience: audience.map(str::to_owned), ..ask("x") };
        assert_eq!(weight(&none, &ask), expected, "{label} {audience:?}");
    }
}

#[test]
fn audiences_seasons_and_restrictions_hold_what_belongs_to_the_community_alone() {
    let closed: Season = serde_json::from_value(serde_json::json!(
        {"name": "mourning", "kind": "closed", "from": "12-01", "to": "02-01"}))
    .unwrap();
    assert_eq!(closed.kind, SeasonKind::Closed);
    let cases = [
        (Protocol { seasons: vec![closed], ..protocol() }, "hold"),
        (Protocol { audiences: vec!["elders".into()], ..protocol() }, "hold"),
        (Protocol { restrictions: vec![Restriction::ReviewAll], ..protocol() }, "hold"),
        (Protocol { restrictions: vec![Restriction::CommunityOnly], ..protocol() }, "hold"),
        (Protocol { restrictions: vec![Restriction::NonCommercial], ..protocol() }, "hold"),
        (Protocol { restrictions: vec![Restriction::Attribution], ..protocol() }, "flag"),
        (Protocol { labels: vec!["tk_ss".into()], ..protocol() }, "sacred"),
        (protocol(), "clear"),
    ];
    for (protocol, expected) in cases {
        let protocols = Protocols::new(vec![protocol.clone()]).unwrap();
        assert_eq!(weight(&protocols, &of_river("x")), expected, "{protocol:?}");
        assert_eq!(weight(&protocols, &ask("x")), "clear", "not theirs");
    }
    let found = look(&with_terms(), &ask("the red stone"));
    let CulturalFinding::Hold { community, issues, .. } = found else { panic!("{found:?}") };
    assert_eq!(community.as_deref(), Some("River People"));
    assert!(issues.iter().all(|issue| !issue.detail.contains("red")), "quotes nothing");
}

#[test]
fn a_community_nobody_knows_makes_unsure() {
    let none = Protocols::default();
    assert_eq!(weight(&none, &of_river("x")), "flag");
    let grave = CulturalAsk { sensitivity: Sensitivity::High, ..of_river("x") };
    assert_eq!(weight(&none, &grave), "hold");
}

#[test]
fn protocols_have_limits_and_others_see_the_public_part() {
    let mut own = Protocol { terms: vec![term(&["churinga"], true)], ..protocol() };
    assert_eq!(own.check(), Ok(()));
    assert!(own.public().terms.is_empty());
    own.terms[0].spellings = vec!["a".into()];
    assert!(own.check().unwrap_err().to_string().contains("2 letters or more"));
    let odd = Protocol { labels: vec!["nonsense".into()], ..protocol() };
    assert!(odd.check().is_err());
    let nameless = Protocol { community: "...".into(), ..protocol() };
    assert!(nameless.check().is_err());
}

proptest! {
    /// Whatever stands around a told sacred term, it is held.
    #[test]
    fn nothing_around_it_hides_a_told_term(before in "[a-z ]{0,30}", after in "[a-z ]{0,30}") {
        let text = format!("{before} and then the churinga {after}");
        prop_assert_eq!(weight(&with_terms(), &ask(&text)), "sacred");
    }

    #[test]
    fn no_text_makes_it_fail(text in "\\PC{0,80}", label in "\\PC{0,8}") {
        let ask = CulturalAsk { labels: vec![label], ..of_river(&text) };
        let _ = look(&with_terms(), &ask);
    }
}

#[test]
fn what_belongs_to_two_communities_names_both() {
    let sea = Protocol {
        community: "Sea People".into(),
        terms: vec![term(&["whale song"], true)],
        ..protocol()
    };
    let protocols = Protocols::new(vec![with_terms().all()[0].clone(), sea]).unwrap();
    let both = ask("And then they carried the churinga, and began the whale song.");
    let sacred = |affiliations: &[&str]| CulturalAsk {
        sensitivity: Sensitivity::Sacred,
        affiliations: affiliations.iter().map(|one| (*one).to_owned()).collect(),
        ..ask("x")
    };
    for (ask, first, rest) in [
        (both, "River People", vec!["Sea People"]),
        (sacred(&["sea people", "River People"]), "River People", vec!["Sea People"]),
        (sacred(&["Hill People", "River People"]), "River People", vec!["Hill People"]),
        (sacred(&["River People", "river  people"]), "River People", vec![]),
    ] {
        let found = look(&protocols, &ask);
        let CulturalFinding::Hold { community, others, .. } = found else { panic!("{found:?}") };
        assert_eq!(community.as_deref(), Some(first));
        assert_eq!(others, rest);
    }
}
