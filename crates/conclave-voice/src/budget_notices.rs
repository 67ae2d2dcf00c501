//! What somebody reads whose request a budget refuses, in both languages. Money is told in dollars.

use crate::Language;
use conclave_core::MicroUsd;

/// A limit of somebody for a day or a month.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NamedLimit<'a> {
    /// Whose, as the stable name of a scope.
    pub scope: &'a str,
    /// For how long, as the stable name of a period.
    pub period: &'a str,
    /// How much.
    pub limit: MicroUsd,
}

impl NamedLimit<'_> {
    fn owner(&self, language: Language) -> &str {
        match (language, self.scope) {
            (Language::English, _) => self.scope,
            (Language::Japanese, "key") => "このAPIキー",
            (Language::Japanese, "user") => "この利用者",
            (Language::Japanese, "session") => "この会話",
            (Language::Japanese, "recipe") => "このレシピ",
            (Language::Japanese, _) => "この組織",
        }
    }

    fn time(&self, language: Language) -> &str {
        match (language, self.period) {
            (Language::English, _) => self.period,
            (Language::Japanese, "month") => "1か月",
            (Language::Japanese, _) => "1日",
        }
    }
}

/// Why a request is not paid for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BudgetNotice<'a> {
    /// It is likely to cost more than one request may.
    RequestLimit {
        /// What it is likely to cost.
        likely: MicroUsd,
        /// What one may cost.
        limit: MicroUsd,
    },
    /// What is left is reserved for others for a moment.
    Soon {
        /// Of which limit.
        limit: NamedLimit<'a>,
        /// What is left.
        left: MicroUsd,
        /// What it is likely to cost.
        likely: MicroUsd,
    },
    /// It does not fit until the limit begins anew.
    NextPeriod {
        /// In which limit.
        limit: NamedLimit<'a>,
        /// What is left.
        left: MicroUsd,
        /// What it is likely to cost.
        likely: MicroUsd,
    },
    /// It is likely to cost more than the whole limit.
    Never {
        /// Which limit.
        limit: NamedLimit<'a>,
        /// What it is likely to cost.
        likely: MicroUsd,
    },
    /// Too much was refused or spent within a minute.
    RunningAway,
    /// Nobody knows what a model costs.
    Unpriced {
        /// Which model.
        model: &'a str,
    },
    /// Budgets cannot be checked.
    Unavailable,
}

/// The sentences for a notice.
#[must_use]
pub fn budget_notice(notice: &BudgetNotice<'_>, language: Language) -> String {
    match language {
        Language::English => in_english(notice),
        Language::Japanese => in_japanese(notice),
    }
}

fn in_english(notice: &BudgetNotice<'_>) -> String {
    let named = |limit: &NamedLimit<'_>| {
        let (owner, time) = (limit.owner(Language::English), limit.time(Language::English));
        format!("the {owner} limit of {} a {time}", limit.limit)
    };
    match notice {
        BudgetNotice::RequestLimit { likely, limit } => {
            format!("This request is likely to cost {likely}, and the request limit is {limit}.")
        }
        BudgetNotice::Soon { limit, left, likely } => format!(
            "Of {} {left} are left while other requests run, and this one is likely to cost {likely}; try again \
             shortly.",
            named(limit)
        ),
        BudgetNotice::NextPeriod { limit, left, likely } => format!(
            "This would exceed {}: {left} are left, and the request is likely to cost {likely}.",
            named(limit)
        ),
        BudgetNotice::Never { limit, likely } => format!(
            "This request is likely to cost {likely}, which is more than the whole of {}.",
            named(limit)
        ),
        BudgetNotice::RunningAway => {
            "This session was refused or spent too much within a minute; it may go on later."
                .to_owned()
        }
        BudgetNotice::Unpriced { model } => {
            format!("The price of the model `{model}` is not known, and a budget is in force.")
        }
        BudgetNotice::Unavailable => "Budgets cannot be checked right now.".to_owned(),
    }
}

fn in_japanese(notice: &BudgetNotice<'_>) -> String {
    let named = |limit: &NamedLimit<'_>| {
        let (owner, time) = (limit.owner(Language::Japanese), limit.time(Language::Japanese));
        format!("{owner}の{time}の上限 {}", limit.limit)
    };
    match notice {
        BudgetNotice::RequestLimit { likely, limit } => format!(
            "このリクエストにはおよそ {likely} かかる見込みで、1回のリクエストの上限 {limit} を超えています。"
        ),
        BudgetNotice::Soon { limit, left, likely } => format!(
            "{}のうち、ほかのリクエストの処理中に使えるのは {left} です。このリクエストにはおよそ {likely} \
             かかる見込みです。少し待ってから、もう一度お試しください。",
            named(limit)
        ),
        BudgetNotice::NextPeriod { limit, left, likely } => format!(
            "{}を超えてしまいます。残りは {left} で、このリクエストにはおよそ {likely} かかる見込みです。",
            named(limit)
        ),
        BudgetNotice::Never { limit, likely } => format!(
            "このリクエストにはおよそ {likely} かかる見込みで、{}の全額を超えています。",
            named(limit)
        ),
        BudgetNotice::RunningAway => {
            "この会話は、1分間に何度も断られたか、費用がかかりすぎたため、\
            一時的に止まっています。少し待ってから続けてください。"
                .to_owned()
        }
        BudgetNotice::Unpriced { model } => {
            format!("予算が設定されていますが、モデル `{model}` の価格が分かりません。")
        }
        BudgetNotice::Unavailable => "いまは予算を確認できません。".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_notice_tells_its_money_in_dollars_in_both_languages() {
        let limit = NamedLimit { scope: "tenant", period: "day", limit: MicroUsd(50_000) };
        let (left, likely) = (MicroUsd(25_800), MicroUsd(140));
        for (notice, amounts) in [
            (BudgetNotice::RequestLimit { likely, limit: limit.limit }, vec!["$0.00014", "$0.05"]),
            (BudgetNotice::Soon { limit, left, likely }, vec!["$0.0258", "$0.00014", "$0.05"]),
            (BudgetNotice::NextPeriod { limit, left, likely }, vec!["$0.0258", "$0.05"]),
            (BudgetNotice::Never { limit, likely }, vec!["$0.00014", "$0.05"]),
            (BudgetNotice::RunningAway, vec![]),
            (BudgetNotice::Unpriced { model: "m" }, vec![]),
            (BudgetNotice::Unavailable, vec![]),
        ] {
            let english = budget_notice(&notice, Language::English);
            let japanese = budget_notice(&notice, Language::Japanese);
            assert!(english.ends_with('.') && english.is_ascii(), "{english}");
            assert!(japanese.ends_with('。') && !japanese.contains("limit"), "{japanese}");
            for amount in amounts {
                assert!(
                    english.contains(amount) && japanese.contains(amount),
                    "{amount}: {english}"
                );
            }
        }
    }

    #[test]
    fn every_scope_and_period_has_its_japanese_name() {
        let told = |scope, period| {
            let limit = NamedLimit { scope, period, limit: MicroUsd(1) };
            budget_notice(&BudgetNotice::Never { limit, likely: MicroUsd(2) }, Language::Japanese)
        };
        for (scope, name) in [
            ("tenant", "組織"),
            ("key", "キー"),
            ("user", "利用者"),
            ("session", "会話"),
            ("recipe", "レシピ"),
        ] {
            assert!(told(scope, "day").contains(name) && told(scope, "day").contains("1日"));
            assert!(told(scope, "month").contains("1か月"), "{scope}");
        }
    }
}
