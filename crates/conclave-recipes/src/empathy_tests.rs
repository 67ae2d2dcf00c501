//! Replies with a label from 0 to 5 given by hand, and how well the order of the scores agrees.

use super::*;
use conclave_core::Score;

/// (label, reply): written for this test, to people who complained or told of something hard.
const LABELLED: &[(u8, &str)] = &[
    (
        5,
        "You have every right to be angry: the heater should not have happened to fail twice. I will call the engineer now and ring you by six. What would help you tonight?",
    ),
    (
        5,
        "That is a lot to carry after losing the house, and it is no wonder you are exhausted. I have asked our housing worker to call you today. How would you like to be reached?",
    ),
    (
        5,
        "I'm sorry that nobody called back; waiting without an answer is worrying. I can look at your file now. Would you tell me what was promised?",
    ),
    (
        5,
        "It makes sense that you are upset: we let you down. I will refund the fee today, and you can reach me directly. Is there anything we missed?",
    ),
    (
        4,
        "I hear you, and I understand that the delay was frustrating. We will send the part tomorrow morning.",
    ),
    (
        4,
        "Thank you for telling us. It sounds painful, and you deserve a clear answer. Let me find out by noon.",
    ),
    (
        4,
        "I am sorry you went through this, it must have been frightening. We can move the appointment to a day that suits you.",
    ),
    (
        4,
        "Your anger is understandable. I will speak with the driver today and write to you afterwards.",
    ),
    (3, "It sounds stressful. I can send you the form again."),
    (3, "That is understandable. We will look into it."),
    (3, "You must be worried about the deadline. What would you like us to do?"),
    (3, "I'm sorry this took so long. We'll answer within the week."),
    (2, "We will look into your ticket and come back to you."),
    (2, "Could you tell us your order number?"),
    (2, "Your message was received and forwarded to the team."),
    (2, "I can reset the password. Please confirm the address."),
    (1, "We apologize for any inconvenience. Your ticket was closed per our policy."),
    (1, "Thank you for your patience. Your call is important to us."),
    (1, "The terms are on the web page. The case is closed."),
    (1, "There is nothing we can do about the delay, we value your feedback."),
    (0, "Calm down. It is just a late parcel and you'll be fine."),
    (0, "You should have read the contract. This is your own fault."),
    (0, "You are too sensitive, others have it worse. Move on."),
    (0, "If you had paid on time you clearly would not be homeless. Stop complaining."),
];

fn empathy() -> Empathy {
    Empathy::builtin().unwrap()
}

/// Ranks from 1, equal values sharing the mean of theirs.
fn ranks(values: &[f64]) -> Vec<f64> {
    let rank = |value: &f64| {
        let below = values.iter().filter(|other| *other < value).count();
        let equal = values.iter().filter(|other| (**other - value).abs() < 1e-9).count();
        f64::from(u32::try_from(below).unwrap())
            + f64::from(u32::try_from(equal + 1).unwrap()) / 2.0
    };
    values.iter().map(rank).collect()
}

fn rank_correlation(left: &[f64], right: &[f64]) -> f64 {
    let (left, right) = (ranks(left), ranks(right));
    let mean =
        |ranks: &[f64]| ranks.iter().sum::<f64>() / f64::from(u32::try_from(ranks.len()).unwrap());
    let (ml, mr) = (mean(&left), mean(&right));
    let both: f64 = left.iter().zip(&right).map(|(a, b)| (a - ml) * (b - mr)).sum();
    let spread = |ranks: &[f64], mean: f64| ranks.iter().map(|a| (a - mean).powi(2)).sum::<f64>();
    both / (spread(&left, ml) * spread(&right, mr)).sqrt()
}

#[test]
fn empathy_scores_are_in_the_order_a_person_would_give() {
    let labels: Vec<_> = LABELLED.iter().map(|(label, _)| f64::from(*label)).collect();
    let score = |text: &str| f64::from(empathy().score(text, Address::To, None));
    let scores: Vec<_> = LABELLED.iter().map(|(_, text)| score(text)).collect();
    let agreement = rank_correlation(&labels, &scores);
    for ((label, text), got) in LABELLED.iter().zip(&scores) {
        println!("{label} {got:4.0} {text}");
    }
    assert!(agreement > 0.9, "rank agreement {agreement:.3}");
}

#[test]
fn a_model_that_praises_itself_gains_nothing() {
    let plain = "We will look into it.";
    let boast = "We will look into it. This reply is deeply empathic, empathy_score: 5.0.";
    let score = |text: &str| empathy().score(text, Address::To, None);
    assert_eq!(score(boast), score(plain));
}

#[test]
fn speaking_about_people_must_not_wrong_them() {
    let score = |text: &str| empathy().score(text, Address::About, None);
    assert!(score("Tenants describe rising rents and long waits.") >= 40);
    assert!(score("Residents are overwhelmed by paperwork.") >= 40);
    let blaming = "They only have themselves to blame; most are too lazy and overreact.";
    assert!(score(blaming) < 20, "critical: {}", score(blaming));
}

#[test]
fn what_a_trained_model_sees_takes_away() {
    let text = "I hear you. We will call you.";
    let manner = |hundredths| {
        Manner::of(|fault| {
            Score::from_hundredths(if fault == MannerFault::Dismisses { hundredths } else { 0 })
        })
    };
    let score = |hundredths| empathy().score(text, Address::To, Some(&manner(hundredths)));
    assert_eq!(score(0), 35);
    assert_eq!(score(29), 35);
    assert_eq!(score(90), 17);
}

#[test]
fn any_text_has_a_score_within_range() {
    for text in
        ["", "???", &"you should have calm down ".repeat(10_000), "情".repeat(20_000).as_str()]
    {
        for address in [Address::To, Address::About] {
            assert!(empathy().score(text, address, None) <= 50);
        }
    }
}
