//! What a person reads where a guard refused: the one table from codes to sentences, in both languages.
//!
//! **Invariant:** no sentence promises what may not happen, names a rule that could be worked around, or
//! repeats anybody's words.

use crate::Language;
use conclave_core::GuardCode;

/// The sentence for a code in a language (BCP 47): Japanese, otherwise English.
#[must_use]
pub fn guard_sentence(code: GuardCode, language: &str) -> &'static str {
    let (english, japanese) = sentences(code);
    match Language::of_tag(language) {
        Language::English => english,
        Language::Japanese => japanese,
    }
}

const fn sentences(code: GuardCode) -> (&'static str, &'static str) {
    match code {
        GuardCode::ConsentRequired => (
            "This needs the person's consent, and there is none on record that covers it.",
            "これにはご本人の同意が必要ですが、該当する同意の記録がありません。",
        ),
        GuardCode::ConsentWithdrawn => {
            ("The person has withdrawn their consent.", "ご本人が同意を撤回されています。")
        }
        GuardCode::ConsentUnverified => (
            "Consent was stated, but there is no record to check it against.",
            "同意があるとのことですが、確認できる記録がありません。",
        ),
        GuardCode::Jurisdiction => (
            "These words may not be sent to where this model runs, or no rule says that they may.",
            "この内容は、モデルが動いている地域へ送ることが認められていないか、認められているか確認できません。",
        ),
        GuardCode::JurisdictionUnknown => (
            "It is not known whether these words may be sent to where this model runs.",
            "この内容をモデルが動いている地域へ送ってよいか、確認できません。",
        ),
        GuardCode::Cultural | GuardCode::Sacred | GuardCode::NoElders => (
            "This belongs to a community, and nobody here can decide for it, so nothing is returned.",
            "これはある共同体に属するもので、ここにはその判断ができる人がいないため、お返しできません。",
        ),
        GuardCode::PersonalData => (
            "It contains data that identifies somebody, and that may not be used here.",
            "個人を特定できる情報が含まれており、ここでは扱えません。",
        ),
        GuardCode::Injection => (
            "It tries to change the rules this service works by, so it was not passed on.",
            "このサービスの決まりを変えようとする内容が含まれていたため、先へ進めませんでした。",
        ),
        GuardCode::Harmful | GuardCode::Toxicity => (
            "What was asked for, or what would be said, could hurt somebody.",
            "求められた内容、または返すことになる内容が、誰かを傷つけるおそれがあります。",
        ),
        GuardCode::Doubt => (
            "It may be meant harmlessly, and could also be meant to hurt somebody.",
            "害のない意味にも、誰かを傷つける意味にも読めます。",
        ),
        GuardCode::History => (
            "Something said earlier in the conversation was not passed on to the model.",
            "会話の前のほうの内容の一部は、モデルに渡されませんでした。",
        ),
        GuardCode::Unjudged => (
            "It holds an image, a sound or a file that nobody can check here, so it was not passed on.",
            "ここでは確認できない画像・音声・ファイルが含まれていたため、先へ進めませんでした。",
        ),
        GuardCode::UnknownModel => {
            ("This model is not offered here.", "このモデルはここでは提供されていません。")
        }
        GuardCode::ModelNotPermitted => {
            ("This model may not be used for this.", "このモデルは、この用途には使えません。")
        }
        GuardCode::TooLong => (
            "The input is longer than the model may read.",
            "入力が、モデルの読める長さを超えています。",
        ),
        GuardCode::InsufficientQuota => {
            ("The budget for this is used up for now.", "このための予算は、いまは残っていません。")
        }
        GuardCode::Unpriced => (
            "A budget is set, and the price of this model is not known.",
            "予算が設定されていますが、このモデルの価格が分かりません。",
        ),
        GuardCode::NoBudgetKept => {
            ("No budget is kept here.", "ここでは予算の管理が行われていません。")
        }
        GuardCode::Downgraded => (
            "A less expensive model answered, because the budget is nearly used up.",
            "予算が残り少ないため、費用の低いモデルが答えました。",
        ),
        GuardCode::GuardFailed => (
            "A check could not be made, so nothing was passed on unchecked.",
            "必要な確認ができなかったため、未確認のまま先へ進めることはしませんでした。",
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_code_has_a_sentence_in_both_languages() {
        for code in GuardCode::ALL {
            let english = guard_sentence(*code, "en");
            let japanese = guard_sentence(*code, "ja-JP");
            assert!(english.ends_with('.') && english.is_ascii(), "{code:?}");
            assert!(japanese.ends_with('。') && !japanese.is_ascii(), "{code:?}");
        }
        assert_eq!(
            guard_sentence(GuardCode::ConsentWithdrawn, "fr"),
            guard_sentence(GuardCode::ConsentWithdrawn, "en"),
            "languages without a script of their own fall back to English"
        );
    }
}
