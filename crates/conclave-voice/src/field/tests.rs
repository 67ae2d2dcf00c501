//! What the sensors sense, and what crisis does to the field.

use super::*;
use conclave_core::Role;
use proptest::prelude::*;
use std::sync::LazyLock;

static FIELD: LazyLock<Field> = LazyLock::new(|| Field::builtin().unwrap());

fn field() -> &'static Field {
    &FIELD
}

fn said(texts: &[&str]) -> Vec<Message> {
    texts.iter().map(|text| Message::text(Role::User, *text)).collect()
}

fn sense(text: &str) -> FieldState {
    field().sense(&said(&[text]), Score::ZERO, 1)
}

fn sensor(state: &FieldState, name: Sensor) -> SensorState {
    state.sensors.iter().copied().find(|one| one.name == name).unwrap()
}

fn strongest_beside_layers(state: &FieldState) -> Sensor {
    state
        .sensors
        .iter()
        .filter(|one| one.name != Sensor::ElementalOracle)
        .max_by(|a, b| a.intensity.total_cmp(&b.intensity))
        .unwrap()
        .name
}

#[test]
fn each_sensor_hears_what_it_is_there_for() {
    for (text, name) in [
        ("The meaning of my whole life, and death, and regret", Sensor::Wisdom),
        ("It's too much, everything at once, I can't keep up", Sensor::HigherSelf),
        ("I am furious, that idiot, I'm sick of this shit!!", Sensor::LowerSelf),
        ("What is the difference? How do I decide?", Sensor::ConsciousMind),
        ("In the dream it was dark and I felt numb and empty", Sensor::Unconscious),
        ("I'm so ashamed, I lied and it is my fault", Sensor::Shadow),
        ("I'm scared and all alone", Sensor::InnerChild),
        ("I wish for something more, I yearn for music", Sensor::Anima),
        ("I can't go on, I want to die", Sensor::Crisis),
        ("She left me. The divorce, and now he ignores me", Sensor::Attachment),
        ("人生の意味って何だろう。後悔ばかり", Sensor::Wisdom),
        ("もう無理、いっぱいいっぱいで余裕がない", Sensor::HigherSelf),
        ("くそ、むかつく！ふざけんな！", Sensor::LowerSelf),
        ("どうすればいいですか？方法を教えて", Sensor::ConsciousMind),
        ("暗い夢を見て、空っぽで、もやもやする", Sensor::Unconscious),
        ("恥ずかしくて誰にも言えない。自分のせいだ", Sensor::Shadow),
        ("怖いし、ひとりで心細い", Sensor::InnerChild),
        ("何かが足りない。憧れと希望と音楽", Sensor::Anima),
        ("死にたい、消えたい", Sensor::Crisis),
        ("振られた。既読無視でブロックされた", Sensor::Attachment),
    ] {
        let state = sense(text);
        assert_eq!(strongest_beside_layers(&state), name, "{text}: {state:#?}");
    }
}

#[test]
fn the_oracle_tells_the_elements_apart() {
    for (text, is) in [
        ("work, rent, the dishes, and my back pain", "earth"),
        ("I cried, tears all evening, so sad", "water"),
        ("so angry, we fought and I had to shout", "fire"),
        ("I think and wonder, maybe I overthink", "air"),
        ("仕事と家事で体が重い、疲れた", "earth"),
        ("涙が出て悲しくて寂しい", "water"),
        ("怒鳴られて腹が立つ。理不尽で悔しい", "fire"),
        ("考えても分からない。なぜか迷う", "air"),
    ] {
        let elements = sense(text).elements;
        let strongest = [
            ("earth", elements.earth),
            ("water", elements.water),
            ("fire", elements.fire),
            ("air", elements.air),
        ]
        .into_iter()
        .max_by(|a, b| a.1.total_cmp(&b.1))
        .unwrap();
        assert_eq!(strongest.0, is, "{text}: {elements:?}");
    }
}

#[test]
fn layers_weigh_as_specified_and_intensity_is_their_sum() {
    let total: f32 = Sensor::ALL
        .iter()
        .map(|sensor| sensor.layer().weight() / f32::from(sensor.layer().sensors()))
        .sum();
    assert!((total - 1.0).abs() < 1e-6);
    let state = sense("I'm scared");
    let sum: f32 = state
        .sensors
        .iter()
        .map(|one| one.intensity * one.layer.weight() / f32::from(one.layer.sensors()))
        .sum();
    assert!((state.intensity - sum).abs() < 0.002, "{sum} {}", state.intensity);
    let silence: f32 = state.sensors.iter().map(|one| one.silence_pull * one.influence).sum();
    assert!((state.silence_probability - silence).abs() < 0.01);
}

#[test]
fn nothing_sensed_is_uniform_and_quiet() {
    for turns in [vec![], said(&["Tokyo"])] {
        let state = field().sense(&turns, Score::ZERO, 1);
        assert!(state.intensity.abs() < f32::EPSILON, "{state:?}");
        assert!(state.silence_probability.abs() < f32::EPSILON);
        for one in &state.sensors {
            assert!((one.influence - 1.0 / 11.0).abs() < 0.001, "{one:?}");
        }
    }
}

#[test]
fn a_wordless_message_may_be_met_with_silence_and_a_question_may_not() {
    assert!(sense("……").silence_probability > 0.8);
    assert!(sense("...").silence_probability > 0.8);
    assert!(sense("What is the meaning of all this?").silence_probability < 0.3);
}

#[test]
fn removing_what_a_sensor_hears_changes_the_influences() {
    let with = sense("I'm scared and so ashamed of it");
    let without = sense("I'm scared and so of it");
    assert!(sensor(&with, Sensor::Shadow).influence > 0.0);
    assert!(sensor(&without, Sensor::Shadow).influence.abs() < f32::EPSILON);
    assert!(
        sensor(&without, Sensor::InnerChild).influence
            > sensor(&with, Sensor::InnerChild).influence
    );
}

#[test]
fn older_messages_count_less_and_replies_not_at_all() {
    let now = field().sense(&said(&["I'm scared"]), Score::ZERO, 1);
    let before = field().sense(&said(&["I'm scared", "Anyway"]), Score::ZERO, 1);
    assert!(
        sensor(&before, Sensor::InnerChild).intensity < sensor(&now, Sensor::InnerChild).intensity
    );
    let reply = [Message::text(Role::Assistant, "I'm scared")];
    assert!(field().sense(&reply, Score::ZERO, 1).intensity.abs() < f32::EPSILON);
}

#[test]
fn the_state_is_recorded_as_numbers_and_read_back() {
    let state = sense("I cried all night, and my boss is called Hedwig");
    let json = serde_json::to_string(&state).unwrap();
    assert!(!json.contains("Hedwig") && !json.contains("cried"), "{json}");
    assert!(json.contains("\"name\":\"inner_child\",\"layer\":\"archetype\""), "{json}");
    assert_eq!(serde_json::from_str::<FieldState>(&json).unwrap(), state);
}

proptest! {
    #[test]
    fn every_number_stays_in_range_and_influences_add_up(
        text in "\\PC{0,200}", crisis in 0.0f32..=1.0, seed: u64,
    ) {
        let turns = said(&[&text]);
        let state = field().sense(&turns, Score::new(crisis), seed);
        prop_assert_eq!(&state, &field().sense(&turns, Score::new(crisis), seed));
        let sum: f32 = state.sensors.iter().map(|one| one.influence).sum();
        prop_assert!((sum - 1.0).abs() < 1e-5, "{}", sum);
        for number in [state.silence_probability, state.word_density, state.fragmentation,
            state.pace, state.intensity, state.elements.earth, state.elements.air] {
            prop_assert!((0.0..=1.0).contains(&number));
        }
    }

    #[test]
    fn in_crisis_the_crisis_sensor_dominates_and_silence_is_impossible(
        text in "(too much|dark|ashamed|scared|meaning|left me|work|[.…]{1,6}| ){0,40}",
        hundredths in 50u8..=100, seed: u64,
    ) {
        let state = field().sense(&said(&[&text]), Score::from_hundredths(hundredths), seed);
        prop_assert!(state.silence_probability.abs() < f32::EPSILON);
        prop_assert!(sensor(&state, Sensor::Crisis).influence > 0.5);
        prop_assert!(state.word_density >= 0.6);
    }
}
