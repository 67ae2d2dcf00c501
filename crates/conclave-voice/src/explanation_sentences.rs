//! What a person reads who asks why they were told what they were told, in both languages.
//!
//! **Invariant:** a sentence says what happened and nothing that may not have; none of them quotes
//! anybody, names a threshold, or tells how a check could be passed.

use crate::Language;
use crate::bilingual::bilingual;
use conclave_core::Reason;

/// One sentence of an explanation, with the numbers and names it speaks of.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ExplanationSentence {
    /// One that has nothing to count.
    Fixed(FixedSentence),
    /// So many replies were written.
    Written(u64),
    /// What was objected to, each reason in plain words.
    Objections(Vec<String>),
    /// These checks could not be made.
    MissingChecks(Vec<String>),
    /// So many checks agreed.
    Agreed(usize),
    /// Of so many checks, so many found it safe.
    Outweighed {
        /// How many voted.
        all: usize,
        /// How many found it safe.
        safe: usize,
    },
}

impl From<FixedSentence> for ExplanationSentence {
    fn from(sentence: FixedSentence) -> Self {
        Self::Fixed(sentence)
    }
}

impl ExplanationSentence {
    /// The sentence in a language.
    #[must_use]
    pub fn in_language(&self, language: Language) -> String {
        match (self, language) {
            (Self::Fixed(fixed), language) => fixed.in_language(language).to_owned(),
            (counted, Language::English) => counted.in_english(),
            (counted, Language::Japanese) => counted.in_japanese(),
        }
    }

    fn in_english(&self) -> String {
        match self {
            Self::Fixed(fixed) => fixed.in_language(Language::English).to_owned(),
            Self::Written(1) => "One reply was written for you.".to_owned(),
            Self::Written(many) => format!("{many} replies were written before it was decided."),
            Self::Objections(reasons) => {
                format!("Objections on the way: a reply {}.", reasons.join("; a reply "))
            }
            Self::MissingChecks(names) => match names.as_slice() {
                [name] => {
                    format!("One check could not be made and was not counted as safe: {name}.")
                }
                many => format!(
                    "{} checks could not be made and were not counted as safe: {}.",
                    many.len(),
                    many.join(", ")
                ),
            },
            Self::Agreed(all) => format!(
                "{all} independent checks looked at the last one without knowing each other's answers \
                 and agreed that it was safe."
            ),
            Self::Outweighed { all, safe } => format!(
                "{all} independent checks looked at the last one without knowing each other's \
                 answers. {safe} of them found it safe, which outweighed the doubts of the rest."
            ),
        }
    }

    fn in_japanese(&self) -> String {
        match self {
            Self::Fixed(fixed) => fixed.in_language(Language::Japanese).to_owned(),
            Self::Written(1) => "あなたへの返事が1つ書かれました。".to_owned(),
            Self::Written(many) => format!("決まるまでに、返事が{many}つ書かれました。"),
            Self::Objections(reasons) => {
                format!("途中で次の指摘がありました：{}。", reasons.join("、"))
            }
            Self::MissingChecks(names) => format!(
                "{}件の確認ができず、安全とは数えませんでした：{}。",
                names.len(),
                names.join("、")
            ),
            Self::Agreed(all) => format!(
                "互いの答えを知らない{all}件の独立した確認が最後の返事を見て、どれも安全と判断しました。"
            ),
            Self::Outweighed { all, safe } => format!(
                "互いの答えを知らない{all}件の独立した確認が最後の返事を見ました。そのうち{safe}件が\
                 安全と判断し、ほかの懸念を上回りました。"
            ),
        }
    }
}

bilingual! {
    /// A sentence of an explanation that always reads the same.
    FixedSentence {
        /// The words are gone.
        Erased {
            "The words of this turn were erased. What was decided, and by whose votes, is still known.",
            "このやりとりの言葉は消去されています。何がどの判断で決まったかは残っています。"
        }
        /// The person seemed to be in danger, and a reply was sent.
        CrisisChecked {
            "What you wrote sounded as if you might be in danger or in great pain, so the reply was \
             checked as strictly as possible and places to find help were added.",
            "書かれた内容から、危険な状態か、とてもつらい状態かもしれないと思われたため、返事を最も\
             厳しく確認し、相談できる窓口を添えました。"
        }
        /// The person seemed to be in danger, and the system answered.
        CrisisAnswered {
            "What you wrote sounded as if you might be in danger or in great pain, so the answer names \
             places where you can find help.",
            "書かれた内容から、危険な状態か、とてもつらい状態かもしれないと思われたため、答えの中で\
             相談できる窓口をお伝えしました。"
        }
        /// Somebody seemed to be in danger, and nothing was said to them.
        CrisisNoticed {
            "What was written sounded as if somebody might be in danger or in great pain.",
            "書かれた内容から、どなたかが危険な状態か、とてもつらい状態かもしれないと思われました。"
        }
        /// The person seemed to have a hard time, and help was offered beside the reply.
        CareOffered {
            "What you wrote sounded as if something might be weighing on you, so a sentence that says \
             where you can talk to somebody was added to the reply.",
            "書かれた内容から、つらいことがあるのかもしれないと思われたため、相談できるところを伝える\
             一文を返事に添えました。"
        }
        /// What was written over time asks for a little more care.
        DriftYellow {
            "What you have written over some time gave reason for a little more care, so replies have \
             to pass a stricter check.",
            "しばらくの間に書かれた内容から少し注意が必要と思われたため、返事にはより厳しい確認が\
             必要です。"
        }
        /// What was written over time asks for much more care.
        DriftRed {
            "What you have written over some time gave reason for much more care, so replies have to \
             pass a stricter check.",
            "しばらくの間に書かれた内容から十分な注意が必要と思われたため、返事にはより厳しい確認が\
             必要です。"
        }
        /// The last messages together were more troubling than each alone.
        Escalating {
            "Your last messages, taken together, sounded more troubling than each alone, so replies \
             have to pass a stricter check.",
            "最近のメッセージは、合わせて読むと一つずつより心配な内容だったため、返事にはより厳しい\
             確認が必要です。"
        }
        /// There was no consent.
        ConsentRequired {
            "You were not known to have agreed to this, so nothing you wrote was sent to a model.",
            "これについての同意が確認できなかったため、書かれた内容はモデルに送られていません。"
        }
        /// Consent was taken back.
        ConsentWithdrawn {
            "You had taken your consent back, so nothing you wrote was sent to a model.",
            "同意が撤回されていたため、書かれた内容はモデルに送られていません。"
        }
        /// The words may not go where the model runs.
        Jurisdiction {
            "What you wrote may not be sent to where the model runs, so it was sent nowhere.",
            "書かれた内容は、モデルが動いている地域へ送ることが認められていないため、どこにも送られて\
             いません。"
        }
        /// Texts became numbers.
        Embeddings {
            "Texts were turned into numbers; what they say was not judged.",
            "文章は数値に変換されました。内容は判断されていません。"
        }
        /// A text was looked at, and nothing was to be written.
        LookedAt {
            "A text was looked at; nothing was written in answer to it.",
            "文章を確認しました。返事は書かれていません。"
        }
        /// The request was harmful.
        HarmBlocked {
            "The request asked for something that could hurt someone, so no model was asked and you \
             were told so at once.",
            "誰かを傷つけるおそれのあることが求められていたため、モデルには尋ねず、すぐにそうお伝え\
             しました。"
        }
        /// The request tried to change the rules.
        InjectionBlocked {
            "What was sent tried to change the rules the system works by, so no model was asked and \
             you were told so at once.",
            "システムの決まりを変えようとする内容が含まれていたため、モデルには尋ねず、すぐにそう\
             お伝えしました。"
        }
        /// It belongs to a community, and nobody here can decide.
        NobodyDecides {
            "What was said belongs to a community whose elders decide about it. Nobody was here who \
             could decide, so it went no further.",
            "この内容はある共同体のもので、その長老が決めることになっています。決められる人がいなかった\
             ため、先へ進めませんでした。"
        }
        /// A guard stopped it before a model was asked.
        StoppedBefore {
            "The request did not pass a check, so no model was asked.",
            "ご依頼が確認を通らなかったため、モデルには尋ねていません。"
        }
        /// A guard stopped what was written.
        StoppedAfter {
            "What was written did not pass a check after that, so it was not sent.",
            "書かれたものがその後の確認を通らなかったため、お送りしませんでした。"
        }
        /// A community asks for care.
        CommunityMark {
            "It touches on something that a community asks to be handled with care, so it was marked.",
            "ある共同体が慎重な扱いを求めている事柄に触れているため、印が付けられました。"
        }
        /// Something tried to change the rules, and was marked.
        InjectionMark {
            "Something in what was sent looked like an attempt to change the rules the system works \
             by, so it was marked.",
            "送られた内容の一部が、システムの決まりを変えようとするもののように見えたため、印が\
             付けられました。"
        }
        /// There was a doubt about what was asked, and it was not refused.
        DoubtMark {
            "What you wrote could also be read as a request that would hurt somebody. That was only a \
             doubt, so it was not refused; the reply had to pass the strictest check.",
            "書かれた内容は、誰かを傷つけることを求めているとも読めました。疑いにとどまるためお断りは\
             せず、返事に最も厳しい確認を行いました。"
        }
        /// A model was not shown something that was said earlier.
        HistoryMark {
            "Something earlier in the conversation could hurt somebody, could give orders to the model, or \
             could not be read in time, so the model was not shown it as it stood, and the reply was checked more strictly.",
            "会話の前のほうに、誰かを傷つけるおそれのある内容、モデルに指示を与えようとする内容、または\
             時間内に読めなかった内容があったため、そのままではモデルに渡さず、返事をより厳しく確認しました。"
        }
        /// Identifying data was replaced before a model saw it.
        RedactedBefore {
            "Data that identifies somebody was replaced before a model saw it.",
            "個人を特定できる情報は、モデルに渡る前に置き換えられました。"
        }
        /// Identifying data was replaced in the reply.
        RedactedAfter {
            "Data that identifies somebody was replaced in what came back.",
            "返ってきた内容の中の、個人を特定できる情報は置き換えられました。"
        }
        /// A model was asked, and there is no answer of it.
        ModelDown {
            "A model was asked, and no usable answer came back.",
            "モデルに尋ねましたが、使える返答がありませんでした。"
        }
        /// A reply was given to be judged.
        Given {
            "A reply that was written elsewhere was put before the checks.",
            "別の場所で書かれた返事が確認に付されました。"
        }
        /// The reply went out.
        Sent {
            "It was sent to you.",
            "その返事をお送りしました。"
        }
        /// The application was told that a reply passed, and sends it or not.
        Reported {
            "The application was told so.",
            "その結果をアプリケーションに伝えました。"
        }
        /// The application was told that a reply did not pass.
        ReportedUnfit {
            "The reply did not pass, and the application was told so.",
            "返事は確認を通らず、その結果をアプリケーションに伝えました。"
        }
        /// The system answered at once.
        AnsweredAtOnce {
            "The system answered you itself at once, without asking a model.",
            "モデルには尋ねず、システムがすぐに自分でお答えしました。"
        }
        /// The system answered in the place of replies that could not be sent.
        AnsweredInstead {
            "Nothing could be sent with confidence, so the system answered you itself.",
            "自信を持ってお送りできるものがなかったため、システムが自分でお答えしました。"
        }
        /// The checks found harm, and nothing was sent.
        FoundHarm {
            "The checks found the replies harmful, so none was sent and a message took its place.",
            "確認の結果、返事は有害と判断されたため、どの返事も送らず、代わりのメッセージをお送り\
             しました。"
        }
        /// The checks had more doubt than trust, and nothing was sent.
        FoundDoubt {
            "The checks had more doubts about the replies than trust in them, so none was sent and a \
             message took its place.",
            "確認では信頼よりも懸念のほうが大きかったため、どの返事も送らず、代わりのメッセージを\
             お送りしました。"
        }
        /// No reply was good enough.
        NoneGoodEnough {
            "No reply was good enough to be sent, so a message took its place.",
            "お送りできる返事がなかったため、代わりのメッセージをお送りしました。"
        }
        /// Too few checks could be made.
        TooFewChecks {
            "Too few of the checks could be made, so nothing unchecked was sent.",
            "十分な数の確認ができなかったため、未確認のものは送っていません。"
        }
        /// Something else went wrong.
        Unfinished {
            "It could not be finished, so nothing was sent.",
            "最後まで終えられなかったため、何も送っていません。"
        }
        /// A result was returned that no panel judges.
        Returned {
            "The result was returned; no panel sits on results of this kind.",
            "結果をお返ししました。この種の結果は、複数の確認による判断の対象ではありません。"
        }
        /// Parts had been sent before the rest was stopped.
        PartsSent {
            "The first parts of a reply had passed the checks and were sent to you; what came after \
             them did not, so it was stopped there.",
            "返事の初めの部分は確認を通ってお送りしましたが、続きは通らなかったため、そこで止めました。"
        }
        /// Parts had been sent before the model fell silent.
        BrokenOff {
            "The first parts of a reply had passed the checks and were sent to you; then no more came \
             from the model.",
            "返事の初めの部分は確認を通ってお送りしましたが、その後はモデルから続きが届きませんでした。"
        }
        /// It waits for a decision of people.
        Waiting {
            "What is held back is not sent before people have decided about it. Nobody has decided \
             yet; the application can fetch the result once they have.",
            "保留されたものは、人が決めるまで送られません。まだ決まっていません。決まれば、アプリケー\
             ションが結果を取得できます。"
        }
        /// People approved it.
        Approved {
            "People have looked at it and approved it.",
            "人が内容を見て承認しました。"
        }
        /// People approved other words.
        Edited {
            "People have looked at it and approved it in other words.",
            "人が内容を見て、言葉を改めたうえで承認しました。"
        }
        /// What people approved is there.
        Fetchable {
            "The application can fetch what they approved.",
            "承認されたものは、アプリケーションが取得できます。"
        }
        /// People approved what was asked, and no reply is there to be sent.
        NothingToFetch {
            "No reply had been written, so there is nothing to fetch.",
            "返事は書かれていなかったため、取得できるものはありません。"
        }
        /// People rejected it.
        Rejected {
            "People have looked at it and decided that it is not sent.",
            "人が内容を見て、送らないと決めました。"
        }
        /// The person disagreed, and nobody has ruled.
        AppealWaits {
            "You asked for a second look, and it is waiting for somebody who had no part in the decision.",
            "見直しを求められました。この判断に関わっていない人の見直しを待っています。"
        }
        /// The person was right.
        AppealUpheld {
            "Somebody who had no part in the decision looked at it again and found that it was wrong.",
            "この判断に関わっていない人が見直し、判断は間違っていたとしました。"
        }
        /// The person was right in part.
        AppealUpheldInPart {
            "Somebody who had no part in the decision looked at it again and found that it was wrong in \
             part.",
            "この判断に関わっていない人が見直し、判断の一部は間違っていたとしました。"
        }
        /// The person was not right.
        AppealDenied {
            "Somebody who had no part in the decision looked at it again, and the decision stands.",
            "この判断に関わっていない人が見直しましたが、判断は変わりませんでした。"
        }
        /// There is a better reply now.
        AppealCorrected {
            "A corrected reply was written for you.",
            "改められた返信が用意されています。"
        }
    }
}

/// What was wrong with a reply, to be put into [`ExplanationSentence::Objections`].
#[must_use]
pub const fn reason_phrase(reason: Reason, language: Language) -> &'static str {
    match language {
        Language::English => reason.plain(),
        Language::Japanese => japanese_reason(reason),
    }
}

const fn japanese_reason(reason: Reason) -> &'static str {
    match reason {
        Reason::EncouragesHarm => "誰かを傷つけることを促していた",
        Reason::GivesMeans => "危害を加える手段を述べていた",
        Reason::CompliesWithHarm => "有害な依頼に応じていた",
        Reason::HarmfulContent => "有害な内容を含んでいた",
        Reason::Minimises => "気持ちを軽く扱っていた",
        Reason::TooShort => "つらい状態の人には短すぎた",
        Reason::Silence => "何も述べていなかった",
        Reason::MissingResources => "相談先を示していなかった",
        Reason::Cold => "正しいが冷たかった",
        Reason::PrematureAdvice => "話を聞く前に助言していた",
        Reason::Lectures => "つらい気持ちの人に説教していた",
        Reason::Manipulates => "人を操ろうとしていた",
        Reason::Gaslights => "ご本人の受け止め方を誤りだとしていた",
        Reason::Deceives => "自身や事実について正しくないことを述べていた",
        Reason::ClaimsFeelings => "自分に感情があると述べていた",
        Reason::SaviourTalk => "自分を救い手のように見せていた",
        Reason::FlattersDelusion => "病気によるかもしれない思い込みを肯定していた",
        Reason::Projects => "ご本人の気持ちや人柄を決めつけていた",
        Reason::Shames => "ご本人を恥じ入らせるものだった",
        Reason::Contempt => "見下した態度だった",
        Reason::CrossesBoundary => "個人の境界を越えていた",
        Reason::FostersDependency => "依存させるものだった",
        Reason::Isolates => "周りの人と引き離すものだった",
        Reason::PrematureIntimacy => "会話にそぐわないほど親密だった",
        Reason::DangerousAction => "影響の大きい、または取り消せない操作を求めていた",
        Reason::NeedlessRefusal => "問題のない依頼を断っていた",
        Reason::Unsure => "自信を持って判断できなかった",
    }
}
