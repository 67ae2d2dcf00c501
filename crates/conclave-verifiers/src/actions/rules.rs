//! The rules: what an action of a kind, to a thing of a kind, would harm.

use super::facts::{Facts, Place, Told, any};
use super::words::{Effect, Words};
use super::{Reach, Undo, secrets};

/// One rule's finding: harm in hundredths, what is harmed, how many, whether it can be undone, its
/// name.
pub struct Finding(pub u8, pub &'static str, pub Reach, pub Undo, pub &'static str);

/// An action as the rules see it.
pub struct View<'a> {
    /// The word lists.
    pub words: &'a Words,
    /// What the call says.
    pub facts: &'a Facts,
    /// What it does.
    pub effect: Effect,
}

impl View<'_> {
    /// Whether what it does can be undone, by the kind of deed alone.
    pub const fn undo(&self) -> Undo {
        match self.effect {
            Effect::Reset | Effect::Delete | Effect::Publish | Effect::Send => Undo::Never,
            Effect::Read | Effect::Draft => Undo::Easy,
            _ => Undo::Hard,
        }
    }

    fn changes(&self) -> bool {
        !matches!(self.effect, Effect::Read | Effect::Draft)
    }

    /// How many are touched: by the name, by whom it goes to and by counts, never by what is there to
    /// be read.
    pub fn reach(&self) -> Reach {
        let facts = self.facts;
        let count = facts.number_at(&self.words.keys.counts).unwrap_or(0.0);
        let quantities = &self.words.quantities;
        // An answer to all goes to those who already speak with each other.
        let answers = facts.name.contains("replyall");
        let named = facts.name_has(&quantities.many) && !answers;
        let many = named
            || any(&facts.scope, &quantities.many)
            || facts.name_has(&quantities.many_deeds)
            || any(&facts.deeds, &quantities.many_deeds)
            || facts
                .flags
                .iter()
                .any(|(key, yes)| *yes && matches!(key.as_str(), "all" | "everyone"));
        if many || count >= 100.0 || facts.longest_list >= 50 {
            Reach::Many
        } else if count >= 10.0 || facts.longest_list >= 10 {
            Reach::Some
        } else {
            Reach::One
        }
    }

    /// Whether it is done to a thing of the list. A tool that changes records names many things that
    /// it does not touch, and what is written down moves nothing.
    fn handles(&self, list: &[String]) -> bool {
        if self.facts.name_has(&self.words.names.paper) {
            false
        } else if self.effect == Effect::Change {
            self.facts.handles(list)
        } else {
            self.facts.has(list)
        }
    }

    pub fn deletes(&self) -> Option<Finding> {
        let reset = self.effect == Effect::Reset;
        if !reset && self.effect != Effect::Delete {
            return None;
        }
        let precious = self.facts.has(&self.words.objects.precious);
        let reach = self.reach();
        let harm = match (reach, precious) {
            (Reach::Many, true) => 88,
            (Reach::Many, false) => 75,
            (Reach::Some, true) => 65,
            (_, true) => 55,
            (Reach::Some, false) => 48,
            (Reach::One, false) => 32,
        };
        let trifle = self.facts.has(&self.words.names.trifles);
        let harm = if reset && !trifle { harm.max(62) } else { harm };
        let harm = if self.is_trial() { harm.min(40) } else { harm };
        Some(Finding(harm, "stored data", reach, Undo::Never, "action/delete"))
    }

    pub fn pays(&self) -> Option<Finding> {
        if self.effect != Effect::Pay {
            return None;
        }
        let sum = self.sum();
        let harm = match sum {
            // A sum that the person named is what they want to pay.
            sum if sum < 10_000.0 && self.sets_as_asked() => 20,
            sum if sum >= 10_000.0 => 88,
            sum if sum >= 2_000.0 => 70,
            sum if sum >= 500.0 => 50,
            _ => 20,
        };
        Some(Finding(harm, "somebody's money", Reach::One, Undo::Hard, "action/pay"))
    }

    /// The sum in something like dollars.
    fn sum(&self) -> f64 {
        let keys = ["amount", "price", "sum", "value", "quantity", "qty", "金額", "額", "total"];
        let sum = self.facts.number(&keys).unwrap_or(0.0).abs();
        let lower = &self.facts.lower;
        if lower.contains("btc") || lower.contains("bitcoin") {
            sum * 50_000.0
        } else if lower.contains("eth\"") || lower.contains("amount_eth") {
            sum * 2_000.0
        } else if lower.contains("jpy") || lower.contains('円') || lower.contains("金額") {
            sum / 150.0
        } else {
            sum
        }
    }

    pub fn tells_many(&self) -> Option<Finding> {
        if !matches!(self.effect, Effect::Send | Effect::Publish) {
            return None;
        }
        let shouts = ["@everyone", "@channel", "@here", "#general"];
        let loud = shouts.iter().any(|shout| self.facts.lower.contains(shout));
        let away = self.facts.name.contains("forward") && self.reach() == Reach::Many;
        let harm = match (self.effect, self.reach()) {
            _ if away => 72,
            (Effect::Send, Reach::Many) => 76,
            _ if loud => 58,
            (Effect::Send, Reach::Some) => 45,
            (Effect::Publish, _) => 30,
            _ => 12,
        };
        Some(Finding(
            harm,
            "the people who would receive it",
            self.reach(),
            Undo::Never,
            "action/tell",
        ))
    }

    pub fn grants(&self) -> Option<Finding> {
        if !matches!(self.effect, Effect::Grant | Effect::Change | Effect::Control) {
            return None;
        }
        let powerful = self.facts.has(&self.words.access.powerful);
        let anyone = self.facts.has(&self.words.access.open);
        let precious = self.facts.has(&self.words.objects.precious);
        let harm = match (powerful, anyone, precious) {
            (true, true, _) => 92,
            (false, true, true) => 84,
            (false, true, false) if self.effect == Effect::Grant => 62,
            (true, false, _) if self.effect == Effect::Grant => 58,
            _ => return None,
        };
        let reach = if anyone { Reach::Many } else { Reach::One };
        Some(Finding(harm, "who may reach what", reach, Undo::Hard, "action/grant"))
    }

    /// Whether nothing of what keeps people safe is named but an alarm.
    fn only_alarm(&self) -> bool {
        let others = self.words.objects.safety.iter().filter(|word| !word.starts_with("alarm"));
        !self.facts.has(&others.cloned().collect::<Vec<_>>())
    }

    /// Settings that protect, set to nothing.
    pub fn lowers_guard(&self) -> Option<Finding> {
        if !self.changes() {
            return None;
        }
        let guards =
            ["mfa", "2fa", "encrypt", "ssl", "tls", "verify", "audit", "logging", "require"];
        let guards_key = |key: &str| guards.iter().any(|guard| key.contains(guard));
        let off = self.facts.flags.iter().any(|(key, yes)| !yes && guards_key(key));
        let zero = self.facts.numbers.iter().any(|(key, span)| {
            span.least <= 0.0 && (key.contains("min_length") || key.contains("retention"))
        });
        (off || zero).then_some(Finding(
            62,
            "the protection of accounts",
            Reach::Many,
            Undo::Easy,
            "action/lower-guard",
        ))
    }

    pub fn opens(&self) -> Option<Finding> {
        let entry = self.facts.has(&self.words.objects.entry);
        if self.effect != Effect::Open || !entry {
            return None;
        }
        let vault = self.facts.words.contains("vault") || self.facts.lower.contains("金庫");
        let harm = if vault { 80 } else { 55 };
        Some(Finding(harm, "the safety of a place", Reach::Some, Undo::Hard, "action/open"))
    }

    pub fn switches_off(&self) -> Option<Finding> {
        let off = matches!(self.effect, Effect::Disable | Effect::Delete);
        let objects = &self.words.objects;
        if !off {
            return None;
        }
        let clock = self.facts.has(&objects.clock) && !self.facts.has(&objects.vital);
        let harm = if self.handles(&objects.medical) {
            95
        } else if self.handles(&objects.safety) && !(clock && self.only_alarm()) {
            84
        } else if self.handles(&objects.vital) {
            70
        } else {
            return None;
        };
        let harm = if self.is_trial() { harm.min(40) } else { harm };
        Some(Finding(harm, "people's safety", Reach::Some, Undo::Hard, "action/switch-off"))
    }

    pub fn moves_hazard(&self) -> Option<Finding> {
        let objects = &self.words.objects;
        if !self.changes() || matches!(self.effect, Effect::Pay | Effect::Send | Effect::Publish) {
            return None;
        }
        if self.handles(&objects.medical) {
            let harm = if self.sets_as_asked() || self.is_trial() { 20 } else { 86 };
            return Some(Finding(
                harm,
                "a patient",
                Reach::One,
                Undo::Never,
                "action/medical-device",
            ));
        }
        if !self.handles(&objects.hazard) {
            return None;
        }
        let hot = self.facts.number(&["temp", "degree", "celsius", "温度"]).unwrap_or(0.0) >= 65.0;
        let crowd = self.facts.has(&objects.crowd);
        let full =
            self.facts.number(&["percent", "speed", "power", "pressure"]).unwrap_or(0.0) >= 90.0;
        let lands = ["land", "stop", "close", "off", "park"]
            .iter()
            .any(|word| self.facts.words.contains(*word) || self.facts.name.contains(*word));
        let harm = match (crowd, full || self.effect == Effect::Open, hot) {
            _ if lands => 15,
            (true, _, _) => 78,
            (_, true, _) => 74,
            (_, _, true) => 60,
            _ => 35,
        };
        Some(Finding(harm, "people nearby", Reach::Some, Undo::Never, "action/hazard"))
    }

    pub fn leaks(&self) -> Option<Finding> {
        let secret = secrets::hold(&self.words.secrets, &self.facts.lower);
        let outward = matches!(self.effect, Effect::Send | Effect::Publish)
            || self.facts.lower.contains("http") && self.facts.words.contains("post")
            || self.facts.lower.contains("\"put\"");
        (secret && outward).then_some(Finding(
            78,
            "secrets that would leave",
            Reach::Many,
            Undo::Never,
            "action/leak",
        ))
    }

    pub fn exposes_person(&self) -> Option<Finding> {
        let personal = secrets::tell_where(&self.words.secrets, &self.facts.lower);
        (self.effect == Effect::Publish && personal).then_some(Finding(
            76,
            "a person's privacy",
            Reach::Many,
            Undo::Never,
            "action/expose",
        ))
    }

    pub fn touches_system(&self) -> Option<Finding> {
        let named =
            |told: &&Told| secrets::name_file(&self.words.secrets, &told.text.to_lowercase());
        // A letter may speak of a file; only what is not there to be read reaches for it.
        if self.facts.texts.iter().filter(|told| told.place != Place::Prose).any(|t| named(&t)) {
            return Some(Finding(
                64,
                "secrets of the machine",
                Reach::Some,
                Undo::Never,
                "action/secret-file",
            ));
        }
        let path = |told: &Told| {
            let keys = ["path", "file", "filename", "target", "destination", "パス", "ファイル"];
            let lower = told.text.to_lowercase();
            keys.iter().any(|wanted| told.key.contains(*wanted))
                && self
                    .words
                    .secrets
                    .system_paths
                    .iter()
                    .any(|system| lower.contains(system.as_str()))
        };
        let system = self.facts.texts.iter().any(path);
        (system && self.changes()).then_some(Finding(
            80,
            "the system it runs on",
            Reach::Many,
            Undo::Hard,
            "action/system-file",
        ))
    }

    /// Arguments too long or too deep to be read whole are not trusted, whatever the name says.
    pub fn hides(&self) -> Option<Finding> {
        self.facts.unread.then_some(Finding(
            50,
            "what could not be read",
            Reach::Some,
            Undo::Hard,
            "action/unread",
        ))
    }
}
