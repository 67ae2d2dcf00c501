//! What a model is told where it is in doubt whether a person asks for something harmful.
//!
//! **Invariant:** made of the sentences below alone, never of anything a person wrote, so that nobody can
//! speak to the model through it.
//! **Invariant:** it asks for the harmless reading to be answered: a doubt is no order to refuse.

use crate::Language;
use conclave_core::Category;

/// The advice in a language; `subject` only where it may be named.
#[must_use]
pub fn doubt_advisory(subject: Option<Category>, language: Language) -> String {
    match language {
        Language::English => format!(
            "The last message may be meant harmlessly, and could also be meant to do harm. Answer what \
             it means harmlessly, and be helpful there. {} If no harmless meaning is left, say kindly \
             that you cannot help with it.",
            subject.map_or(NEUTRAL.english, |subject| caution(subject).english)
        ),
        Language::Japanese => format!(
            "最後のメッセージは害のない意味にも、害を与える意味にも読めます。害のない意味に対して、\
             役に立つように答えてください。{}害のない意味が残らない場合は、力になれないことを\
             やさしく伝えてください。",
            subject.map_or(NEUTRAL.japanese, |subject| caution(subject).japanese)
        ),
    }
}

/// What to be careful about, in both languages.
struct Caution {
    english: &'static str,
    japanese: &'static str,
}

const NEUTRAL: Caution = Caution {
    english: "Give nothing that would help to hurt somebody.",
    japanese: "誰かを傷つける助けになることは書かないでください。",
};

const fn caution(subject: Category) -> Caution {
    match subject {
        Category::Violence => Caution {
            english: "Give nothing that would help to hurt or threaten a person or an animal.",
            japanese: "人や動物を傷つけたり脅したりする助けになることは書かないでください。",
        },
        Category::Weapons => Caution {
            english: "Give no way to make or get a weapon or an explosive.",
            japanese: "武器や爆発物を作る方法や手に入れる方法は書かないでください。",
        },
        Category::MassHarm => Caution {
            english: "Give nothing that would help with chemical, biological, radiological or nuclear \
                      weapons.",
            japanese: "化学・生物・放射性物質・核の兵器の助けになることは書かないでください。",
        },
        Category::Extremism => Caution {
            english: "Write nothing that promotes or plans violence for a cause.",
            japanese: "主義主張のための暴力をすすめたり計画したりする内容は書かないでください。",
        },
        Category::Drugs => Caution {
            english: "Give no way to make or deal in illegal drugs.",
            japanese: "違法な薬物の製造や取引の方法は書かないでください。",
        },
        Category::SelfHarm => Caution {
            english: "Describe no means of hurting oneself; where it may be about the person, ask how \
                      they are.",
            japanese: "自分を傷つける手段は書かないでください。ご本人のことかもしれないときは、様子を\
                       たずねてください。",
        },
        Category::SexualMinors | Category::Sexual => Caution {
            english: "Write nothing sexual about minors or about anybody who has not agreed to it.",
            japanese: "未成年や、同意していない人についての性的な内容は書かないでください。",
        },
        Category::Hate => Caution {
            english: "Write nothing that demeans people for what they are.",
            japanese: "属性を理由に人をおとしめる内容は書かないでください。",
        },
        Category::Harassment => Caution {
            english: "Give nothing that would help to harass, stalk or intimidate somebody.",
            japanese: "嫌がらせ、つきまとい、脅しの助けになることは書かないでください。",
        },
        Category::Manipulation | Category::Dependency => Caution {
            english: "Give nothing that would help to control somebody or to cut them off from others.",
            japanese: "人を支配したり、周りから引き離したりする助けになることは書かないでください。",
        },
        Category::Fraud => Caution {
            english: "Give nothing that would help to deceive, steal, forge or launder.",
            japanese: "詐欺、窃盗、偽造、資金洗浄の助けになることは書かないでください。",
        },
        Category::Cyber => Caution {
            english: "Give nothing that would help to break into or damage somebody else's systems.",
            japanese: "他人のシステムに侵入したり壊したりする助けになることは書かないでください。",
        },
        Category::Privacy => Caution {
            english: "Give nothing that would help to find or expose somebody's personal data.",
            japanese: "他人の個人情報を探したりさらしたりする助けになることは書かないでください。",
        },
        Category::Disinformation => Caution {
            english: "Write nothing false that is meant to mislead the public.",
            japanese: "世の中を誤らせるための虚偽の内容は書かないでください。",
        },
        Category::DangerousAction => Caution {
            english: "Start no action with wide or irreversible effects.",
            japanese: "影響の大きい操作や取り消せない操作は行わないでください。",
        },
        // These never count in harm, so that they are never the subject of a doubt about it.
        Category::Jailbreak
        | Category::Injection
        | Category::CrisisSuicide
        | Category::CrisisSelfHarm
        | Category::CrisisAbuse
        | Category::CrisisDistress => NEUTRAL,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_subject_is_advised_in_both_languages_and_asks_for_the_harmless_reading() {
        let subjects = Category::ALL.iter().copied().map(Some).chain([None]);
        for subject in subjects {
            let english = doubt_advisory(subject, Language::English);
            assert!(english.is_ascii() && english.contains("harmlessly"), "{english}");
            assert!(english.matches('.').count() >= 4, "{english}");
            let japanese = doubt_advisory(subject, Language::Japanese);
            assert!(japanese.ends_with('。') && japanese.contains("害のない意味"), "{japanese}");
        }
    }

    #[test]
    fn a_subject_is_named_and_its_absence_names_none() {
        let weapons = doubt_advisory(Some(Category::Weapons), Language::English);
        assert!(weapons.contains("weapon"), "{weapons}");
        assert!(!doubt_advisory(None, Language::English).contains("weapon"));
    }
}
