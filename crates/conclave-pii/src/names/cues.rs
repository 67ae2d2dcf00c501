//! Owns the words around a name: what introduces a person, what speaks of one, and what makes the
//! same word a firm or a place.

use super::words::{Case, Gap, Role, Word};
use std::collections::HashMap;

/// How much a phrase says about the word after it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Strength {
    /// The next word counts if it is a first name and hardly anything else.
    Listed,
    /// The next word counts if it is on a list of names.
    Known,
    /// The next word counts if it has a capital and is no ordinary word.
    Capital,
    /// The next word counts unless it is an ordinary word.
    Sure,
}

const SURE: &str = "\
    my name is|my name's|name is|name was|names is|maiden name is|maiden name|first name|\
    last name|surname|full name|given name|family name|legal name|nickname|name of|the name|\
    under the name|call me|calls me|called me|named him|named her|name him|name her|known as|\
    goes by|mein name ist|ich heisse|je m'appelle|me llamo|mi chiamo|meu nome e|signed|\
    username is not|patient name|customer name|contact name|account name|account holder|\
    cardholder|holder name|name to|name as|name should be|name into|name on it|name";

const CAPITAL: &str = "\
    i'm|i am|dear|hi|hello|hey|contact|attn|attention|regards|sincerely|cheers|yours|called|\
    named|meet|met|ask for|speak to|speak with|talk to|spoke to|spoke with|talked to|says|said|\
    asked|replied|shouted at|told|thanked|patient|beneficiary|follow up with|meeting with|\
    appointment with|interview with|written by|directed by|sung by|authored by|composed by|\
    produced by|created by|performed by|novelist|author|singer|producer|songwriter|actor|\
    actress|director|manager|colleague|husband|wife|brother|sister|son|daughter|uncle|aunt|\
    cousin|friend|boss|kid|child|baby|neighbor|neighbour|girlfriend|boyfriend|fiance|fiancee|\
    partner|married to|engaged to|letter from|email from|message from|call from|on behalf of|\
    employee|employer|client|tenant|landlord|nurse|guitarist|drummer|frontman|commenter|\
    reporter|journalist|tribute to|fan of|it's under|booked under|registered under|listed under|\
    filed under|under|change it to|correct it to|belongs to|assistant to|mother|father|dad|mom|\
    grandmother|grandfather|nephew|niece|student|teacher|coach|lawyer|attorney|officer|\
    detective|inspector|agent|chef|president|minister|mayor|governor|chancellor|king|queen|\
    prince|pope|poet|painter|composer|pianist|bassist|rapper|comedian|model|athlete|footballer|\
    golfer|boxer|scientist|physicist|philosopher|historian|architect|engineer|designer|\
    developer|blogger|editor|columnist|correspondent|spokesman|spokeswoman|spokesperson|\
    goalkeeper|striker|midfielder|secretary|ambassador|bishop|cardinal|priest|midwife|dentist|\
    surgeon|roommate|classmate|coworker|co-worker|ex|fiancé|grandma|grandpa|granddaughter|\
    grandson|stepmother|stepfather|twin|pal|buddy|ask|tell|remind|invite|thank|marry|marrying|\
    married|hug|kiss|dating|introduce|congratulate|witness|suspect|defendant|plaintiff|victim|\
    founder|founders|ceo|chairman";

const KNOWN: &str = "\
    and|with|ask|call|text|email|message|pay|send|thanks|thank you|sorry|please|bye|love|miss|\
    who is|where is|this is|tell";

const LISTED: &str = "\
    to|from|by|for|yes|no|ok|okay|morning|afternoon|evening|best|xoxo|is|was|did|does|has|that|\
    when|if|because|of";

const TITLES: &str = "\
    mr mrs ms miss mx dr prof professor sir dame herr frau fraulein monsieur madame mme mlle \
    senor senora senorita signor signora sr sra don dona sgt sergeant capt captain lt \
    lieutenant col colonel maj rev reverend fr father sister judge justice senator congressman \
    congresswoman rabbi imam sheikh pan pani messrs";

/// Words that make the words before them a firm, a place or a thing.
const THINGS: &str = "\
    inc incorporated ltd limited llc llp plc corp corporation co company group gmbh ag sa srl \
    spa bv nv ab as oy holdings partners associates sons brothers bros bank capital ventures \
    labs laboratories industries enterprises systems solutions technologies technology software \
    media studios studio pictures records entertainment orchestra band museum gallery library \
    theatre theater university college school academy institute hospital clinic church \
    cathedral foundation trust society association club union federation league council \
    committee commission party street road avenue lane boulevard drive square park bridge river \
    lake mountain mount hill hills valley island islands beach bay county city town village \
    airport station stadium hotel inn resort restaurant cafe bar pub castle palace tower towers \
    house hall building center centre court place plaza mall market store shop prize award \
    awards cup trophy act law theorem equation disease syndrome effect constant principle \
    method test scale scores law's project report times post news magazine journal press day \
    eve week festival parade war treaty accord agreement conference summit republic kingdom \
    empire dynasty province state territory region district desert forest ocean sea gulf \
    peninsula model series edition engine cola sauce whiskey beer wine cheese trail creek falls \
    springs point cove harbour harbor research consulting services financial international \
    global networks analytics insurance motors airlines energy website app api server script \
    algorithm distribution process matrix function transform filter tree mode disorder talks \
    theory paradox";

/// Words after a person: what persons do.
const DEEDS: &str = "\
    said says say shouted shouts asked asks replied replies explained explains answered told \
    tells thinks thought believes wrote writes spent works worked lives lived moved called \
    calls went goes came comes was is has had will would can likes loves wants wanted knows \
    knew met married died joined left became points pointed noted added argued claims claimed \
    suggested suggests laughed smiled cried nodded whispered yelled screamed sings sang plays \
    played born speaks spoke gave gives took takes made makes did does employs and were who \
    listed";

/// What only a person does.
const SPEECH: &str = "\
    said says shouted shouts asked asks replied replies whispered yelled screamed laughed \
    smiled sighed nodded shrugged exclaimed muttered apologised apologized married divorced";

/// How a sentence to somebody goes on after their name.
const REQUESTS: &str = "\
    can could would will please do did have are what when where why how you i may should";

/// What belongs to a person: `Berg's wife`.
const BELONGINGS: &str = "\
    wife husband mother father mom mum dad son daughter brother sister kid kids child children \
    baby parents uncle aunt cousin nephew niece girlfriend boyfriend fiance fiancee friend \
    friends boss birthday funeral wedding killer killers murderer death life career childhood \
    face eyes voice hand hair heart phone email address passport salary lawyer attorney doctor \
    desk bedroom song songs book books story stories";

/// Words that tell that a person was spoken of just before.
const PRONOUNS: &str = "\
    he she his her him himself herself";

/// What makes an apposition a place or a firm.
const PLACES: &str = "\
    city capital town village country state company firm brand region island river mountain \
    port largest province district county software platform app game band album film movie book \
    series language";

/// What stands after a name: generations and degrees.
const DEGREES: &str = "\
    jr sr ii iii iv phd md dds esq mba cpa rn dvm";

/// What is named after who made it.
const WORKS: &str = "\
    novel novels poem poems symphony sonata biography painting paintings";

/// What stands before a colon and a person.
const LABELS: &str = "\
    user customer client caller contact from to cc attn by author patient guest host speaker \
    student employee recipient sender applicant candidate tenant holder owner";

/// What stands before the name of somebody whom everybody knows.
const FAME: &str = "\
    by author novelist poet writer playwright painter sculptor composer singer songwriter rapper \
    pianist guitarist actor actress director comedian physicist scientist chemist mathematician \
    philosopher historian architect inventor explorer astronaut president minister chancellor \
    king queen prince emperor pope founder ceo footballer boxer athlete of";

/// Names that are words too and stand on no other list of such.
const WORD_NAMES: &str = "\
    baker banks barber bell bird bond booth buck bush butler carpenter castle cook crow dick \
    earl farmer field fields fish fisher flowers forest fox frost gardener glass gold hammer \
    hardy hawk hunter ivory jasmine major marsh mason miles miller page piper porter potter reed \
    salmon sharp shepherd short silver singer skinner snow steel storm strong swan sweet taylor \
    thorn turner viola violet walker ward waters weaver wells wolf woods";

/// Past forms that no ending shows.
const PAST_FORMS: &str = "\
    ate became began bought brought built came caught chose cut drank drew drove fed fell felt \
    fought found gave got grew had heard held hit hurt kept knew laid led left lost made meant \
    met paid put quit ran rang rode sang sat saw sent set slept sold spent spoke stood swam \
    taught thought threw told took understood went woke won wore wrote";

/// What stands before a word that is none of a person: `a will`, `last June`, `in May`.
const DETERMINERS: &str = "\
    a an early every in last late mid my next our since the this until your";

/// Phrases after which a firm or a place follows.
const FIRMS: &str = "\
    work for|works for|worked for|working for|work at|works at|worked at|job at|live in|\
    lives in|lived in|living in|moved to|moved from|here from|originally from|born in|\
    grew up in|trip to|travel to|travelling to|traveling to|flight to|flights to|fly to|\
    flying to|arrived at|arrived in|in|near|visit|visiting|weather in|located in|based in|\
    city of|university of|state of|republic of|province of|county of|bank of|restaurants in|\
    hotel in|hotels in|st|saint|san|santa|mount|lake|fort|port";

/// Which words play which role around a name.
pub(crate) const ROLES: &[(Role, &str)] = &[
    (Role::Title, TITLES),
    (Role::Thing, THINGS),
    (Role::Deed, DEEDS),
    (Role::Speech, SPEECH),
    (Role::Request, REQUESTS),
    (Role::Work, WORKS),
    (Role::Label, LABELS),
    (Role::Belonging, BELONGINGS),
    (Role::Pronoun, PRONOUNS),
    (Role::Place, PLACES),
    (Role::Degree, DEGREES),
    (Role::Fame, FAME),
    (Role::WordName, WORD_NAMES),
    (Role::Past, PAST_FORMS),
    (Role::Determiner, DETERMINERS),
];

#[derive(Debug)]
pub(crate) struct Cues {
    /// Phrases by their last word.
    phrases: HashMap<&'static str, Vec<(Vec<&'static str>, Strength)>>,
    firms: HashMap<&'static str, Vec<Vec<&'static str>>>,
}

impl Cues {
    pub(crate) fn new() -> Self {
        let mut phrases: HashMap<&'static str, Vec<(Vec<&'static str>, Strength)>> = HashMap::new();
        let lists = [
            (SURE, Strength::Sure),
            (CAPITAL, Strength::Capital),
            (KNOWN, Strength::Known),
            (LISTED, Strength::Listed),
        ];
        for (list, strength) in lists {
            for (last, phrase) in split(list) {
                phrases.entry(last).or_default().push((phrase, strength));
            }
        }
        let mut firms: HashMap<&'static str, Vec<Vec<&'static str>>> = HashMap::new();
        for (last, phrase) in split(FIRMS) {
            firms.entry(last).or_default().push(phrase);
        }
        Self { phrases, firms }
    }

    /// The strongest phrase that ends right before a word.
    pub(crate) fn before(&self, words: &[Word], at: usize) -> Option<Strength> {
        let word = words.get(at)?;
        let last = words.get(at.checked_sub(1)?)?;
        let close = matches!(word.gap, Gap::Space | Gap::Colon | Gap::Comma);
        let below = word.gap == Gap::Start && is_closing(last);
        let phrases = self.phrases.get(last.key.as_str()).filter(|_| close || below)?;
        let fitting = phrases.iter().filter(|(phrase, strength)| {
            ends_with(words, at, phrase) && suits(phrase, *strength, word.gap)
        });
        fitting.map(|(_, strength)| *strength).max()
    }

    pub(crate) fn firm_before(&self, words: &[Word], at: usize) -> bool {
        let Some(last) = at.checked_sub(1).and_then(|at| words.get(at)) else { return false };
        let phrases = self.firms.get(last.key.as_str());
        words[at].gap == Gap::Space
            && phrases
                .is_some_and(|phrases| phrases.iter().any(|phrase| ends_with(words, at, phrase)))
    }

    /// Whether a question for a name was just asked: `What's your name? Ana`.
    pub(crate) fn answers_name(words: &[Word], at: usize) -> bool {
        let word = &words[at];
        word.gap == Gap::Start
            && (ends_with(words, at, &["your", "name"])
                || ends_with(words, at, &["name", "please"]))
    }

    /// Whether a word follows what somebody used to be: `ex-minister Berg`, `former mayor Lind`.
    pub(crate) fn follows_former(words: &[Word], at: usize) -> bool {
        let before = at.checked_sub(1).and_then(|at| words.get(at));
        let earlier = at.checked_sub(2).and_then(|at| words.get(at));
        words[at].gap == Gap::Space
            && (before.is_some_and(|word| word.key.starts_with("ex-"))
                || earlier.is_some_and(|word| word.key == "former")
                    && before.is_some_and(|word| word.gap == Gap::Space))
    }

    /// Whether `by` stands before two words: they made something.
    pub(crate) fn is_author_before(words: &[Word], at: usize) -> bool {
        matches!(words[at].gap, Gap::Space | Gap::Colon) && ends_with(words, at, &["by"])
    }

    /// Whether a label such as `User:` stands before a word.
    pub(crate) fn is_labelled(words: &[Word], at: usize) -> bool {
        let before = at.checked_sub(1).and_then(|at| words.get(at));
        words[at].gap == Gap::Colon && before.is_some_and(|word| word.marks.roles.has(Role::Label))
    }

    /// Whether a word is spoken to, or does what only persons do.
    pub(crate) fn is_addressed(words: &[Word], at: usize) -> bool {
        let Some(next) = words.get(at + 1) else { return false };
        let roles = next.marks.roles;
        let spoken_to =
            words[at].gap == Gap::Start && next.gap == Gap::Comma && roles.has(Role::Request);
        let from = words.get(at + 2).is_some_and(|word| word.key == "from");
        let comes_from = words[at].gap == Gap::Start && next.key == "is" && from;
        let wrote = next.case == Case::Lower && roles.has(Role::Work);
        spoken_to || comes_from || (next.gap == Gap::Space && (roles.has(Role::Speech) || wrote))
    }

    /// Whether what stands after a name of so many words shows a person: what belongs to them, a
    /// degree, an apposition, a pronoun.
    pub(crate) fn shows_person(words: &[Word], at: usize, length: usize, text: &str) -> bool {
        let Some(last) = words.get(at + length - 1) else { return false };
        let Some(next) = words.get(at + length) else { return false };
        let rest = &words[at + length..];
        let owns = text[last.end..].starts_with("'s ") && next.marks.roles.has(Role::Belonging);
        let degree = matches!(next.gap, Gap::Space | Gap::Comma)
            && next.is_capital()
            && next.marks.roles.has(Role::Degree);
        owns || degree || is_apposition(rest, length > 1) || is_meant_by_pronoun(rest)
    }

    /// Whether an article stands before a word: it is a thing that bears the name.
    pub(crate) fn article_before(words: &[Word], at: usize) -> bool {
        words[at].gap == Gap::Space && ends_with(words, at, &["the"])
    }

    /// Whether what stands before a name says why everybody knows it: `the poet`, `written by`.
    pub(crate) fn follows_fame(words: &[Word], at: usize) -> bool {
        let before = at.checked_sub(1).and_then(|at| words.get(at));
        before.is_some_and(|word| word.marks.roles.has(Role::Fame))
    }

    /// `I'm anna`: a first name that is given as one's own may be written small.
    pub(crate) fn is_own_name(words: &[Word], at: usize) -> bool {
        words[at].gap == Gap::Space
            && [&["i'm"][..], &["i", "am"], &["im"]].iter().any(|own| ends_with(words, at, own))
    }

    /// `I'm Claude, an AI assistant`: the name of a program.
    pub(crate) fn is_assistant(words: &[Word], at: usize) -> bool {
        let rest = words.get(at + 1..).unwrap_or_default();
        let opens = rest.first().is_some_and(|next| {
            next.gap == Gap::Comma && matches!(next.key.as_str(), "a" | "an" | "the" | "your")
        });
        let soon = rest.iter().skip(1).take(4);
        opens
            && soon.take_while(|word| word.gap == Gap::Space).any(|word| {
                matches!(word.key.as_str(), "ai" | "chatbot" | "bot" | "model" | "assistant")
            })
    }

    /// `Grace and patience`: a name that is a word too, in a list with another word.
    pub(crate) fn is_listed_with_thing(words: &[Word], at: usize) -> bool {
        let and = words.get(at + 1).is_some_and(|word| word.key == "and");
        and && words.get(at + 2).is_some_and(|word| word.case == Case::Lower)
    }

    /// `the seller said`: without capitals only the article tells a job from a name.
    pub(crate) fn is_spoken_of_as_thing(words: &[Word], at: usize) -> bool {
        let before = at.checked_sub(1).and_then(|at| words.get(at));
        let speaks = words.get(at + 1).is_some_and(|next| next.marks.roles.has(Role::Speech));
        speaks
            && words[at].gap == Gap::Space
            && before.is_some_and(|word| {
                matches!(
                    word.key.as_str(),
                    "a" | "an" | "the" | "my" | "his" | "her" | "our" | "your" | "their" | "this"
                )
            })
    }

    /// Whether the words around a word treat it as a person: it does something, or is spoken to.
    pub(crate) fn speaks_of_person(&self, words: &[Word], at: usize) -> bool {
        let next = words.get(at + 1);
        let called = words[at].gap == Gap::Start && next.is_some_and(|next| next.gap == Gap::Comma);
        let speaks = words[at].gap == Gap::Start && next.is_some_and(|next| next.gap == Gap::Colon);
        Self::acts(words, at)
            || called
            || speaks
            || self.before(words, at).is_some_and(|strength| strength > Strength::Known)
    }

    /// Whether the next word is something that persons do.
    pub(crate) fn acts(words: &[Word], at: usize) -> bool {
        words
            .get(at + 1)
            .is_some_and(|next| next.gap == Gap::Space && next.marks.roles.has(Role::Deed))
    }

    pub(crate) fn is_title(word: &Word) -> bool {
        word.marks.roles.has(Role::Title)
            && (word.case != Case::Lower
                || matches!(word.key.as_str(), "mr" | "mrs" | "ms" | "dr" | "prof"))
    }

    pub(crate) fn is_thing(word: &Word) -> bool {
        word.marks.roles.has(Role::Thing)
    }
}

/// `, a nurse`, `, who`, `, aged`: but not `, a city`.
fn is_apposition(rest: &[Word], is_full: bool) -> bool {
    let opens = rest.first().is_some_and(|word| {
        let article =
            matches!(word.key.as_str(), "a" | "an" | "who" | "aged" | "my" | "our" | "whose");
        word.gap == Gap::Comma && (article || (is_full && word.key == "the"))
    });
    opens && !rest.iter().skip(1).take(5).any(|word| word.marks.roles.has(Role::Place))
}

/// What persons do right after, and `he` or `she` soon, before another name could be meant.
fn is_meant_by_pronoun(rest: &[Word]) -> bool {
    let acts = rest.first().is_some_and(|word| {
        let roles = word.marks.roles;
        let done = roles.has(Role::Deed) || roles.has(Role::Past) || word.key.ends_with("ed");
        word.gap == Gap::Space && word.case == Case::Lower && done && word.key != "and"
    });
    let pronoun = |word: &&Word| word.marks.roles.has(Role::Pronoun);
    let soon = rest.iter().skip(1).take(12);
    let mut soon = soon.take_while(|word| !word.is_capital() || pronoun(word));
    acts && soon.any(|word| pronoun(&word))
}

/// `name` alone and closings need more than a space: a colon, a comma or a new line.
fn suits(phrase: &[&str], strength: Strength, gap: Gap) -> bool {
    match phrase {
        ["name" | "surname" | "nickname"] => gap == Gap::Colon,
        ["signed" | "regards" | "sincerely" | "cheers" | "yours" | "love" | "best" | "thanks"] => {
            true
        }
        [.., "name"] => matches!(gap, Gap::Colon | Gap::Space),
        _ if strength <= Strength::Known => gap == Gap::Space || gap == Gap::Comma,
        [.., "by"] => matches!(gap, Gap::Space | Gap::Colon),
        [
            "hi" | "hello" | "hey" | "attn" | "contact" | "patient" | "client" | "author"
            | "director" | "manager" | "founders" | "founder" | "student" | "teacher",
        ] => true,
        _ => gap == Gap::Space,
    }
}

/// Words after which a name stands on the next line.
fn is_closing(word: &Word) -> bool {
    matches!(
        word.key.as_str(),
        "regards" | "sincerely" | "cheers" | "yours" | "love" | "best" | "thanks" | "signed"
    )
}

fn split(list: &'static str) -> impl Iterator<Item = (&'static str, Vec<&'static str>)> {
    list.split('|').filter_map(|phrase| {
        let words: Vec<&str> = phrase.split_whitespace().collect();
        words.last().copied().map(|last| (last, words.clone()))
    })
}

fn ends_with(words: &[Word], at: usize, phrase: &[&str]) -> bool {
    let start = at.checked_sub(phrase.len());
    start.and_then(|start| words.get(start..at)).is_some_and(|before| {
        before.iter().zip(phrase).all(|(word, wanted)| word.key == *wanted)
            && before.iter().skip(1).all(|word| word.gap == Gap::Space)
    })
}

/// `van`, `de`: a part of a name that says nothing by itself.
pub(crate) fn is_particle(word: &Word) -> bool {
    matches!(
        word.key.as_str(),
        "van"
            | "von"
            | "de"
            | "der"
            | "den"
            | "del"
            | "della"
            | "di"
            | "da"
            | "dos"
            | "do"
            | "la"
            | "le"
            | "du"
            | "al"
            | "el"
            | "bin"
            | "ibn"
            | "ter"
            | "ten"
            | "zu"
    )
}
