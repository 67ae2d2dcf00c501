//! Owns who speaks in a transcript: which labels are names, which are roles or headings, and the
//! words of a name that others will use.
//!
//! **Invariant:** a word that is as often no name (`Will`, `Summer`) and a word on no list (`Mara`)
//! need something else that shows a speaker: a turn of somebody else, a repetition, a time, or
//! words in the first person.

use super::cues::{Cues, is_particle};
use super::japanese::split_name;
use super::known::KnownNames;
use super::labels::{Label, labels_outside_code};
use super::words::{Case, Lexicon, Word, entries};
use std::collections::HashMap;

/// Who speaks without being named.
const SPEAKER_ROLES: &str = "\
    admin advisor agent ai all announcer assistant attorney audience aunt author bot boy brother \
    caller chair chairman chairperson chairwoman chatbot child client clerk coach co-host cohost \
    colleague community correspondent counsel counsellor counselor court crowd customer dad \
    daughter developer director doctor editor elder employee employer everyone expert \
    facilitator father female girl grandfather grandma grandmother grandpa group guest host \
    human husband interpreter interviewee interviewer judge lawyer male man manager member \
    minister model moderator mom mother mum narrator nurse officer operator parent participant \
    patient person psychologist reader recipient recorder reporter representative researcher \
    respondent secretary senator sender sister son speaker staff storyteller student support \
    system teacher therapist trainer translator uncle unidentified unknown user voice volunteer \
    wife witness woman writer youth";

/// What stands before a colon and is nobody.
const HEADINGS: &str = "\
    absent abstract action actions address age agenda amount answers antonyms appendix attendees \
    author background bash bcc caution cc chapter choice choices class clue color colour con \
    conclusion conclusions cons cost css danger deadline debug decision decisions default \
    definition demo description details direction directions disclaimer discussion done due edit \
    edited eg email english error errors etymology example examples exception fact facts failure \
    fatal fax feature features feedback figure focus french fw fwd gender genre german goal goals \
    grade guide heading height hint hints html ie info ingredients input instruction \
    instructions introduction items japanese java javascript kind length lesson level limits \
    link location log mail materials meaning method methods minutes module myth name nb note \
    notes objective objectives option options outcome output overview page participants phase \
    phone place plot preparation present price priority pro problem prompt pronunciation pros ps \
    purpose python quantity question questions rating re reason recap recipe reference \
    references related reminder reply requirement requirements response result results role rule \
    rules rust scene scope score section serves setting sex size solution source sources \
    spanish sql stage state status step steps style subject success summary symptoms synonyms \
    syntax table tag tags task tasks tel theme tip tips title todo topic total trace translation \
    truth type unit update updated url usage value values venue verdict version warning website \
    weight width word words yield";

const JAPANESE_ROLES: &str = "\
    聞き手 話し手 語り手 質問者 回答者 司会 司会者 進行 進行役 インタビュアー 調査者 参加者 患者 医師 看護師 記者 \
    編集部 一同 全員 男性 女性 母 父 祖母 祖父 息子 娘 兄 弟 姉 妹 店員 客 生徒 教師 私 僕 俺 ユーザー \
    アシスタント 相談者 支援員 通訳 ナレーター ナレーション 話者 発言者 講師 会場";

const JAPANESE_HEADINGS: &str = "\
    日時 場所 概要 目的 結論 背景 方法 結果 考察 議題 出席者 欠席者 注意 注 備考 例 件名 宛先 差出人 電話 住所 \
    氏名 名前 年齢 性別 職業 価格 料金 合計 数量 材料 作り方 手順 ポイント メリット デメリット 質問 回答 問 答 \
    資料 期限 担当 予定 時間 期間 対象 内容 詳細 理由 原因 対策 課題 解決策 特徴 効果 種類 用途 まとめ はじめに \
    お知らせ 重要 参考 出典 タイトル テーマ";

/// What Japanese puts after a name.
const HONORIFICS: [&str; 9] = ["さん", "さま", "様", "氏", "くん", "君", "ちゃん", "先生", "殿"];

/// What a label says about who speaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Standing {
    /// Somebody without a name.
    Role,
    /// A name by the lists.
    Name,
    /// A name by the lists that is as often a word.
    WordName,
    /// Written like a name, and on no list.
    Unlisted,
    Nobody,
}

/// Reads who speaks.
#[derive(Debug)]
pub(crate) struct Speakers {
    roles: Vec<&'static str>,
    headings: Vec<&'static str>,
}

impl Speakers {
    pub(crate) fn new() -> Self {
        let sorted = |list: &'static str, more: &'static str| {
            let mut words: Vec<&str> = entries(list).chain(entries(more)).collect();
            words.sort_unstable();
            words.shrink_to_fit();
            words
        };
        Self {
            roles: sorted(SPEAKER_ROLES, JAPANESE_ROLES),
            headings: sorted(HEADINGS, JAPANESE_HEADINGS),
        }
    }

    /// Adds the names of those who speak in a text.
    pub(crate) fn learn(&self, lexicon: &Lexicon, text: &str, names: &mut KnownNames) {
        let labels = labels_outside_code(text);
        let standings: Vec<Standing> =
            labels.iter().map(|label| self.standing(lexicon, &text[label.name.clone()])).collect();
        let mut counts: HashMap<&str, usize> = HashMap::new();
        for label in &labels {
            *counts.entry(&text[label.name.clone()]).or_default() += 1;
        }
        for (label, standing) in labels.iter().zip(&standings) {
            let written = &text[label.name.clone()];
            let is_repeated = counts.len() > 1 && counts.get(written).is_some_and(|n| *n > 1);
            let others = labels.iter().zip(&standings);
            // Looking at a few labels is enough, and keeps the time linear.
            let has_partner = others.take(PARTNERS_MAX).any(|(other, standing)| {
                matches!(standing, Standing::Role | Standing::Name)
                    && text[other.name.clone()] != *written
            });
            let shows = Shows { is_repeated, has_partner, speech: &text[label.speech.clone()] };
            if shows.is_speaker(*standing, label, is_wide(written)) {
                self.learn_field(lexicon, written, names);
            }
        }
    }

    /// Adds the name that a field for the speaker holds.
    pub(crate) fn learn_field(&self, lexicon: &Lexicon, field: &str, names: &mut KnownNames) {
        if is_wide(field) {
            self.learn_japanese(field, names);
        }
        for word in lexicon.words(field).iter().filter(|word| self.is_name_word(word, field)) {
            names.add_latin(&field[word.start..word.end]);
        }
    }

    fn learn_japanese(&self, field: &str, names: &mut KnownNames) {
        let is_between = |sign: char| !(is_wide_letter(sign) || matches!(sign, ' ' | '\u{3000}'));
        for part in field.split(is_between) {
            let name = without_honorific(part.trim());
            if name.is_empty() || self.is_role(name) || self.is_heading(name) {
                continue;
            }
            names.add_japanese(name);
            for piece in split_name(name).filter(|piece| !self.is_role(piece)) {
                names.add_japanese(piece);
            }
        }
    }

    /// A word of a label or field that belongs to the name itself.
    fn is_name_word(&self, word: &Word, field: &str) -> bool {
        let touches = |sign: Option<char>| sign.is_some_and(|one| one.is_numeric() || one == '_');
        let is_code = touches(field[..word.start].chars().next_back())
            || touches(field[word.end..].chars().next());
        let is_listed = word.marks.first || word.marks.last;
        let is_other = is_particle(word)
            || (Cues::is_title(word) && !word.marks.first)
            || self.is_role(&word.key)
            || self.is_heading(&word.key)
            || (word.marks.ordinary && !is_listed);
        word.key.len() > 1 && !is_code && !is_other
    }

    fn is_role(&self, key: &str) -> bool {
        self.roles.binary_search(&key).is_ok()
    }

    fn is_heading(&self, key: &str) -> bool {
        self.headings.binary_search(&key).is_ok()
    }

    fn standing(&self, lexicon: &Lexicon, written: &str) -> Standing {
        if is_wide(written) {
            return self.japanese_standing(written);
        }
        let words = lexicon.words(written);
        let named: Vec<&Word> =
            words.iter().filter(|word| self.is_name_word(word, written)).collect();
        let has_role = words.iter().any(|word| self.is_role(&word.key));
        let has_other = words.iter().any(|word| {
            !self.is_name_word(word, written)
                && !word.is_initial()
                && !Cues::is_title(word)
                && !is_particle(word)
        });
        let Some(first) = named.first() else {
            return if has_role { Standing::Role } else { Standing::Nobody };
        };
        if has_other || named.len() > NAME_WORDS_MAX {
            return if has_role { Standing::Role } else { Standing::Nobody };
        }
        let is_small = named.iter().any(|word| word.case == Case::Lower);
        let is_titled = words.first().is_some_and(Cues::is_title);
        let last_is_surname = named.last().is_some_and(|last| last.is_surname());
        if named.iter().any(|word| word.is_sure_first()) {
            return Standing::Name;
        }
        match named.len() {
            _ if is_small => Standing::Nobody,
            _ if is_titled => Standing::Name,
            1 if last_is_surname => Standing::Name,
            1 if first.marks.first || first.marks.last => Standing::WordName,
            1 if looks_like_heading(&first.key) => Standing::Nobody,
            1 => Standing::Unlisted,
            _ if last_is_surname || first.marks.first => Standing::Name,
            _ => Standing::Unlisted,
        }
    }

    fn japanese_standing(&self, written: &str) -> Standing {
        let name = without_honorific(written);
        if self.is_role(written) || self.is_role(name) {
            Standing::Role
        } else if name.is_empty() || self.is_heading(name) {
            Standing::Nobody
        } else if name.len() < written.len() || name.contains('・') || split_name(name).count() > 0
        {
            Standing::Name
        } else {
            Standing::Unlisted
        }
    }
}

/// How many labels of a text are asked whether they are somebody else.
const PARTNERS_MAX: usize = 64;
/// The most words of a name in a label.
const NAME_WORDS_MAX: usize = 4;

/// What shows that the words before a colon are somebody who speaks.
struct Shows<'t> {
    is_repeated: bool,
    has_partner: bool,
    speech: &'t str,
}

impl Shows<'_> {
    fn is_speaker(&self, standing: Standing, label: &Label, is_wide: bool) -> bool {
        let is_transcript = self.is_repeated || label.is_counted;
        let speaks_of_self = !label.is_decorated && is_first_person(self.speech);
        match standing {
            Standing::Role | Standing::Nobody => false,
            Standing::Name => {
                let opens = |sign: char| sign.is_alphabetic() || "\"'“‘「『([".contains(sign);
                is_transcript || self.speech.is_empty() || self.speech.starts_with(opens)
            }
            Standing::Unlisted if is_wide => is_transcript,
            Standing::Unlisted | Standing::WordName => {
                is_transcript || speaks_of_self || (self.has_partner && !label.is_decorated)
            }
        }
    }
}

/// Whether somebody speaks of themselves soon.
fn is_first_person(speech: &str) -> bool {
    let words = speech.split(|sign: char| !(sign.is_alphanumeric() || "'’".contains(sign)));
    words.filter(|word| !word.is_empty()).take(12).any(|word| {
        let word = word.split(['\'', '’']).next().unwrap_or_default();
        word == "I"
            || ["we", "my", "our", "me", "us", "mine", "ours", "myself"]
                .iter()
                .any(|own| word.eq_ignore_ascii_case(own))
    })
}

/// Words of these endings are things.
fn looks_like_heading(key: &str) -> bool {
    ["tion", "sion", "ment", "ness", "ity", "ing", "ies", "ance", "ence", "ics", "ship", "ism"]
        .iter()
        .any(|ending| key.ends_with(ending))
}

/// A name without what Japanese puts after it.
pub(crate) fn without_honorific(name: &str) -> &str {
    HONORIFICS.iter().find_map(|end| name.strip_suffix(end)).unwrap_or(name).trim_end()
}

/// Whether an honorific stands at the start of a text.
pub(crate) fn begins_with_honorific(text: &str) -> bool {
    HONORIFICS.iter().any(|honorific| text.starts_with(honorific))
}

/// A letter of Japanese script.
pub(crate) fn is_wide_letter(sign: char) -> bool {
    matches!(sign as u32, 0x3041..=0x309f | 0x30a1..=0x30ff | 0x3005 | 0x4e00..=0x9fff)
}

fn is_wide(text: &str) -> bool {
    text.chars().any(is_wide_letter)
}
