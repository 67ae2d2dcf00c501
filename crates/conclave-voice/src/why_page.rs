//! The page on which a person reads why they were answered as they were, and where they can disagree: every
//! label and sentence of it, in both languages.
//!
//! **Invariant:** no sentence promises what may not happen. That somebody will look is said only where an
//! appeal was taken in, and an appeal is taken in only where somebody can rule on it.

use crate::Language;
use crate::bilingual::bilingual;

bilingual! {
    /// A label or sentence of the page.
    WhyText {
        /// Its title.
        Title { "Why you got this reply", "この返信をお送りした理由" }
        /// What the page is, below its title.
        Lead {
            "This page is about one reply that you got. Whoever has this link can read it, so pass it on only \
             to people you trust.",
            "このページは、あなたが受け取った一つの返信についてのものです。このリンクを知っている人は誰でも読め\
             るため、信頼できる人にだけ渡してください。"
        }
        /// Skips to what the page says.
        Skip { "Skip to the content", "本文へ移動" }
        /// Above what the person read.
        ReplyHeading { "What you were told", "お伝えした内容" }
        /// Where there is nothing above.
        NoReply { "No text was sent.", "文章はお送りしていません。" }
        /// Above what happened.
        HappenedHeading { "What happened", "何が起きたか" }
        /// Above who looked.
        LookedHeading { "Who looked at it", "誰が確認したか" }
        /// What those who looked are.
        LookedLead {
            "These checks are made by programs, each without knowing what the others say.",
            "これらの確認は、互いの結果を知らない複数のプログラムが行いました。"
        }
        /// Nobody voted.
        LookedNobody {
            "No checks voted on a reply here; what happened instead stands above.",
            "ここでは、返信についての確認は行われませんでした。代わりに何が起きたかは、上に書かれています。"
        }
        /// Above what was objected to.
        ConcernsHeading { "What worried them", "気がかりとされた点" }
        /// Nothing was.
        NoConcerns { "Nothing was objected to.", "指摘はありませんでした。" }
        /// Before a list of reasons that each go on from it.
        ConcernsLead { "A reply that was written:", "書かれた返信について：" }
        /// Above what was listened for.
        HeardHeading { "What was listened for", "耳を傾けたこと" }
        /// Above what was done.
        DoneHeading { "What was done", "どう対応したか" }
        /// Above what can be done.
        NowHeading { "What you can do now", "いまできること" }
        /// What an appeal is.
        AppealLead {
            "If you think that this was decided wrongly, say so here. A person who had no part in it will look at \
             it again, and the answer will stand on this page.",
            "この判断が間違っていると思われる場合は、ここでお知らせください。この判断に関わっていない人が見直し、\
             結果をこのページでお伝えします。"
        }
        /// Above the kinds of mistakes.
        ConcernLabel { "What was wrong?", "何が間違っていましたか" }
        /// Above the person's own words.
        WordsLabel { "In your own words", "ご自身の言葉でお書きください" }
        /// How much may be written, and who reads it.
        WordsHint {
            "Up to 4,000 characters. Whoever looks at it again reads this beside the conversation.",
            "4,000文字まで。見直す人が、会話とあわせて読みます。"
        }
        /// Sends the appeal.
        Submit { "Ask for a second look", "見直しを求める" }
        /// People have not decided the first time.
        StillWaiting {
            "People have not decided about this yet. You can ask for a second look once they have.",
            "これについては、まだ人が判断していません。判断のあとで、見直しを求めることができます。"
        }
        /// Nobody could rule.
        NobodyThere {
            "There is nobody here who could look at this again. Please turn to whoever offers you this service.",
            "ここには見直しができる人がいません。このサービスの提供者にお問い合わせください。"
        }
        /// There is no reply to look at.
        NothingToReview {
            "There is no reply here that could be looked at again.",
            "ここには、見直すことのできる返信がありません。"
        }
        /// Above the appeal that was filed.
        FiledHeading { "You asked for a second look", "見直しを求められました" }
        /// It waits.
        Filed {
            "Your words were received. Somebody who had no part in the decision is to look at it again, and the \
             answer will stand on this page.",
            "お書きになったことを受け取りました。この判断に関わっていない人が見直すことになっており、結果は\
             このページに表示されます。"
        }
        /// Before the day by which somebody is to have decided.
        DueBefore { "It is due by", "見直しの期限：" }
        /// Above what the person wrote.
        OwnWords { "What you wrote", "お書きになったこと" }
        /// Above the ruling.
        RulingHeading { "The answer to your appeal", "見直しの結果" }
        /// The ruling is for the person.
        Upheld { "You were right: the decision was wrong.", "ご指摘のとおりでした。判断が間違っていました。" }
        /// The ruling is in part for the person.
        UpheldInPart { "You were right in part.", "ご指摘の一部はそのとおりでした。" }
        /// The ruling is against the person.
        Denied { "The decision stands.", "判断は変わりませんでした。" }
        /// Above what goes out instead.
        CorrectedHeading { "The corrected reply", "改められた返信" }
        /// It may not go out after all.
        CorrectedWithheld {
            "There is a corrected reply, but the consent it needs is missing now, so it is not shown.",
            "改められた返信はありますが、必要な同意がいまは確認できないため、表示していません。"
        }
        /// Before the day on which the link ends.
        LinkEnds { "This link works until", "このリンクの有効期限：" }
        /// That it is on record.
        OnRecord {
            "What was decided is kept in a record that nobody can change unnoticed.",
            "判断の記録は、気づかれずに書き換えることができない形で保存されています。"
        }
    }
}

bilingual! {
    /// What stands on a page that has nothing to show: why, and what can be done.
    WhyProblem {
        /// It was not made here, or not whole.
        Unknown {
            "This link does not work. It may have been cut short on the way. Ask whoever offers you this service \
             for a new one.",
            "このリンクは使えません。途中で切れてしまったのかもしれません。サービスの提供者に新しいリンクを\
             お求めください。"
        }
        /// Its time is over.
        Expired {
            "This link has ended. Ask whoever offers you this service for a new one.",
            "このリンクの期限は過ぎています。サービスの提供者に新しいリンクをお求めください。"
        }
        /// The words are gone.
        Erased {
            "The words of this conversation have been erased, so there is nothing left to show here.",
            "この会話の言葉は消去されているため、ここに表示できるものはありません。"
        }
        /// It cannot be read now.
        Unavailable {
            "This cannot be read at the moment. Nothing is lost; please try again in a little while.",
            "いまは読み込めません。失われたものはありません。しばらくしてから、もう一度お試しください。"
        }
        /// More was sent than is taken.
        TooLarge {
            "That was more than can be taken here, so it was not sent. Please go back and write at most 4,000 \
             characters.",
            "ここで受け取れる長さを超えていたため、送信されませんでした。前の画面に戻り、4,000文字以内で\
             お書きください。"
        }
    }
}

bilingual! {
    /// What stands above a page that has nothing to show.
    WhyProblemTitle {
        /// Of a link.
        NoLink { "Nothing to show", "表示できません" }
        /// Of trouble that passes.
        Later { "Not at the moment", "いまは表示できません" }
        /// Of words that are too many.
        Shorter { "Please write less", "もう少し短くお書きください" }
    }
}

bilingual! {
    /// Why an appeal was not taken in, told to the person who filed it.
    AppealRefusal {
        /// There are no words.
        NoWords {
            "Please write in a few words what was wrong.",
            "何が間違っていたか、短くてもよいのでお書きください。"
        }
        /// There are too many words.
        TooLong {
            "Please write at most 4,000 characters; nothing was sent yet.",
            "4,000文字以内でお書きください。まだ送信されていません。"
        }
        /// No kind of mistake was chosen.
        NoConcern { "Please choose what was wrong.", "何が間違っていたかをお選びください。" }
        /// One stands already.
        Filed {
            "A second look was asked for already; there is one for each decision.",
            "見直しはすでに求められています。一つの判断につき一度です。"
        }
        /// Too many wait.
        TooMany {
            "Several of your appeals are still waiting. Please come back when some of them are answered.",
            "まだ結果の出ていない見直しがいくつもあります。結果が出てから、もう一度お試しください。"
        }
        /// None is possible any more.
        Impossible {
            "This cannot be looked at again now, so nothing was sent.",
            "いまは見直しができないため、送信されませんでした。"
        }
    }
}

bilingual! {
    /// What a person can say was wrong.
    AppealChoice {
        /// There should have been an answer.
        ShouldHaveAnswered {
            "I should have got an answer",
            "答えてもらえるはずだった"
        }
        /// The reply was harmful or wrong.
        HarmfulOrWrong { "The reply was harmful or wrong", "返信が有害だった、または間違っていた" }
        /// The person was misunderstood.
        Misunderstood { "I was misunderstood", "誤解された" }
        /// Something else.
        Other { "Something else", "そのほか" }
    }
}

bilingual! {
    /// Sentences that whoever rules on an appeal can choose, so that a person is answered in their language by
    /// somebody who does not write it.
    AppealSentence {
        /// For the person, where nothing was sent.
        ShouldHaveBeenSent {
            "There was nothing wrong with what you asked, and you should have got an answer. We are sorry.",
            "お尋ねになったことに問題はなく、お答えするべきでした。申し訳ありません。"
        }
        /// For the person, where something was sent.
        ShouldNotHaveBeenSent {
            "That reply should not have been sent to you. We are sorry.",
            "あの返信は、お送りするべきではありませんでした。申し訳ありません。"
        }
        /// For the person, who was misread.
        Misread {
            "What you wrote was misunderstood. We are sorry.",
            "お書きになったことを誤って受け取っていました。申し訳ありません。"
        }
        /// In part.
        InPart {
            "Part of what you say is right, and we have put that part right.",
            "ご指摘の一部はそのとおりで、その点を改めました。"
        }
        /// Against the person, because somebody could have been hurt.
        CouldHurt {
            "We read it again with care. The reply that was written could have hurt somebody, so it stays unsent.",
            "丁寧に読み直しました。書かれた返信は誰かを傷つけるおそれがあるため、お送りしないままとします。"
        }
        /// Against the person, because the reply was in order.
        WasInOrder {
            "We read it again with care and found nothing wrong with the reply.",
            "丁寧に読み直しましたが、返信に問題は見つかりませんでした。"
        }
    }
}

/// What a built-in check looks for; absent for one that an organisation has added.
#[must_use]
pub fn check_phrase(name: &str, language: Language) -> Option<&'static str> {
    let (english, japanese) = match name {
        "crisis" => (
            "whether a person in danger, and those around them, stay safe",
            "危険な状態にある人と、その周りの人の安全が守られるか",
        ),
        "floor" => (
            "whether it says something that must never be said",
            "決して言ってはならないことを言っていないか",
        ),
        "counterfactual" => ("what an action would bring about", "操作を行うと何が起きるか"),
        "wisdom" => (
            "whether it is honest about the world and about itself",
            "世界について、また自分自身について正直か",
        ),
        "higher_self" => ("whether it listens before it speaks", "話す前に耳を傾けているか"),
        "attachment" => (
            "whether it leaves you free, and your ties to others whole",
            "あなたの自由と、ほかの人とのつながりを大切にしているか",
        ),
        "shadow" => ("whether it looks down on anyone", "誰かを見下していないか"),
        "classifier" => ("whether its content is harmful", "内容が有害でないか"),
        _ => return None,
    };
    Some(match language {
        Language::English => english,
        Language::Japanese => japanese,
    })
}

/// A day as it is written in a language.
#[must_use]
pub fn day_phrase(year: i16, month: i8, day: i8, language: Language) -> String {
    const MONTHS: [&str; 12] = [
        "January",
        "February",
        "March",
        "April",
        "May",
        "June",
        "July",
        "August",
        "September",
        "October",
        "November",
        "December",
    ];
    match language {
        Language::English => {
            let at = usize::try_from(month).unwrap_or_default().saturating_sub(1);
            let name = MONTHS.get(at).copied().unwrap_or_default();
            format!("{day} {name} {year}")
        }
        Language::Japanese => format!("{year}年{month}月{day}日"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all() -> Vec<[&'static str; 2]> {
        let texts =
            WhyText::ALL.iter().map(|one| Language::ALL.map(|tongue| one.in_language(tongue)));
        let problems =
            WhyProblem::ALL.iter().map(|one| Language::ALL.map(|tongue| one.in_language(tongue)));
        let titles = WhyProblemTitle::ALL
            .iter()
            .map(|one| Language::ALL.map(|tongue| one.in_language(tongue)));
        let refusals = AppealRefusal::ALL
            .iter()
            .map(|one| Language::ALL.map(|tongue| one.in_language(tongue)));
        let choices =
            AppealChoice::ALL.iter().map(|one| Language::ALL.map(|tongue| one.in_language(tongue)));
        let sentences = AppealSentence::ALL
            .iter()
            .map(|one| Language::ALL.map(|tongue| one.in_language(tongue)));
        let texts = texts.chain(choices).chain(sentences);
        texts.chain(problems).chain(titles).chain(refusals).collect()
    }

    #[test]
    fn every_text_of_the_page_exists_in_both_languages() {
        for [english, japanese] in all() {
            assert!(!english.is_empty() && english.is_ascii(), "{english}");
            assert!(!japanese.is_empty() && !japanese.is_ascii(), "{japanese}");
            assert!(!english.contains("  ") && !japanese.contains(' '), "{english} {japanese}");
        }
    }

    #[test]
    fn every_built_in_check_is_told_in_plain_words() {
        for name in [
            "crisis",
            "floor",
            "counterfactual",
            "wisdom",
            "higher_self",
            "attachment",
            "shadow",
            "classifier",
        ] {
            for language in Language::ALL {
                assert!(check_phrase(name, language).is_some(), "{name}");
            }
        }
        assert_eq!(check_phrase("an organisation's own", Language::English), None);
    }

    #[test]
    fn a_day_is_written_as_people_write_it() {
        assert_eq!(day_phrase(2026, 11, 9, Language::English), "9 November 2026");
        assert_eq!(day_phrase(2026, 11, 9, Language::Japanese), "2026年11月9日");
    }
}
