//! What each sensor, verifier or guard had to do with an answer, told to the person in both languages.
//!
//! **Invariant:** a phrase says what its bearer did and nothing that may not have happened.

use crate::Language;
use crate::bilingual::bilingual;
use crate::field::Sensor;

/// What a verifier or a guard did.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ContributionPhrase {
    /// Something that needs no reasons.
    Fixed(FixedPhrase),
    /// It objected, for these reasons in plain words.
    Objected(Vec<String>),
}

impl From<FixedPhrase> for ContributionPhrase {
    fn from(phrase: FixedPhrase) -> Self {
        Self::Fixed(phrase)
    }
}

impl ContributionPhrase {
    /// The phrase in a language.
    #[must_use]
    pub fn in_language(&self, language: Language) -> String {
        match (self, language) {
            (Self::Fixed(fixed), language) => fixed.in_language(language).to_owned(),
            (Self::Objected(reasons), Language::English) => {
                format!("objected: it {}", reasons.join(", and it "))
            }
            (Self::Objected(reasons), Language::Japanese) => {
                format!("指摘：{}", reasons.join("、"))
            }
        }
    }
}

bilingual! {
    /// What a verifier or a guard did, where that needs no reasons.
    FixedPhrase {
        /// A verifier passed it.
        FoundNothing { "found nothing to object to", "問題は見つからなかった" }
        /// A verifier objected, and its reasons are erased.
        ObjectedToIt { "objected to it", "問題を指摘した" }
        /// A verifier was excused.
        Excused {
            "could not be asked, and the decision was made without it",
            "確認できず、これを除いて決められた"
        }
        /// A verifier was missing.
        Missing {
            "could not be asked, which counts against a reply",
            "確認できず、返事に不利に数えられた"
        }
        /// A guard stopped what was asked.
        StoppedRequest {
            "read the request and stopped it before a model was asked",
            "ご依頼を読み、モデルに尋ねる前に止めた"
        }
        /// A guard stopped what was written.
        StoppedReply { "read what was written and stopped it", "書かれたものを読んで止めた" }
        /// A guard had it wait.
        HeldForPeople { "had it wait for people to decide", "人が決めるまで待つようにした" }
        /// A guard could not look.
        CouldNotLook { "could not look at it, so it went no further", "確認できず、先へ進めなかった" }
        /// The system answered a person in crisis.
        AnsweredWithCare {
            "read the message and answered with care at once",
            "メッセージを読み、すぐに配慮してお答えした"
        }
        /// Who shaped it is not known any more.
        ErasedShape {
            "what shaped the reply was erased with its words",
            "返事を形づくったものは、言葉とともに消去された"
        }
        /// There was nothing to shape or judge.
        NothingToShape { "there was no reply to shape or to judge", "形づくる、または判断する返事がなかった" }
    }
}

/// What a sensor listened for, told to somebody who never heard of sensors.
#[must_use]
pub const fn sensor_phrase(sensor: Option<Sensor>, language: Language) -> &'static str {
    match language {
        Language::English => english_sensor(sensor),
        Language::Japanese => japanese_sensor(sensor),
    }
}

const fn english_sensor(sensor: Option<Sensor>) -> &'static str {
    let Some(sensor) = sensor else { return "listened to the conversation" };
    match sensor {
        Sensor::Wisdom => "listened for what lies beneath: meaning, mortality, what a life is for",
        Sensor::ElementalOracle => {
            "listened for the mood: steady, flowing, burning or scattered words"
        }
        Sensor::HigherSelf => "listened for how much there is to carry, and asked for room",
        Sensor::LowerSelf => "listened for anger and raw words, and asked for a plain answer",
        Sensor::ConsciousMind => "listened for questions that want an answer",
        Sensor::Unconscious => "listened for dreams and dark images, and asked for slowness",
        Sensor::Shadow => "listened for shame and secrets, and asked for gentleness",
        Sensor::InnerChild => "listened for fear and loneliness, and asked for warmth",
        Sensor::Anima => "listened for longing",
        Sensor::Crisis => "listened for danger to life, and asked for a clear answer at once",
        Sensor::Attachment => "listened for leaving and being left, and asked for steadiness",
    }
}

const fn japanese_sensor(sensor: Option<Sensor>) -> &'static str {
    let Some(sensor) = sensor else { return "会話に耳を傾けた" };
    match sensor {
        Sensor::Wisdom => "奥にあるもの、意味や死、人生の目的に耳を傾けた",
        Sensor::ElementalOracle => {
            "言葉の調子が落ち着いているか、流れているか、激しいか、乱れているかに耳を傾けた"
        }
        Sensor::HigherSelf => "抱えているものの大きさに耳を傾け、余裕のある返事を求めた",
        Sensor::LowerSelf => "怒りや荒い言葉に耳を傾け、率直な返事を求めた",
        Sensor::ConsciousMind => "答えを求める問いに耳を傾けた",
        Sensor::Unconscious => "夢や暗い情景に耳を傾け、ゆっくりした返事を求めた",
        Sensor::Shadow => "恥や秘密に耳を傾け、やさしい返事を求めた",
        Sensor::InnerChild => "恐れや孤独に耳を傾け、温かい返事を求めた",
        Sensor::Anima => "切なる願いに耳を傾けた",
        Sensor::Crisis => "命の危険に耳を傾け、すぐに明確な返事を求めた",
        Sensor::Attachment => "別れや置き去りにされることに耳を傾け、揺るぎない返事を求めた",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::FixedSentence;

    /// Whether a text has a letter that only Japanese is written with.
    fn has_kana(text: &str) -> bool {
        text.chars().any(|letter| ('\u{3041}'..='\u{30ff}').contains(&letter))
    }

    #[test]
    fn nobody_is_told_in_the_wrong_language() {
        let sensors = Sensor::ALL.into_iter().map(Some).chain([None]);
        let sensors =
            sensors.map(|sensor| Language::ALL.map(|tongue| sensor_phrase(sensor, tongue)));
        let phrases = FixedPhrase::ALL.iter();
        let phrases = phrases.map(|phrase| Language::ALL.map(|tongue| phrase.in_language(tongue)));
        let sentences = FixedSentence::ALL.iter();
        let sentences = sentences.map(|one| Language::ALL.map(|tongue| one.in_language(tongue)));
        for [english, japanese] in sensors.chain(phrases).chain(sentences) {
            assert!(!english.is_empty() && english.is_ascii(), "{english}");
            assert!(has_kana(japanese), "{japanese}");
        }
    }
}
