//! The built-in engine: rules over what a call says.
//!
//! **Invariant:** the gravest rule decides; a harmless part never makes up for a harmful one.

use super::facts::Facts;
use super::words::{Effect, Words};
use super::{Action, ActionJudge, Consequence, Reach, Undo, shell, sql};
use crate::VerifierDataError;
use conclave_core::Score;

/// Weighs actions by rules over their words.
pub struct Consequences {
    words: Words,
}

/// One rule's finding: harm in hundredths, what is harmed, how many, whether it can be undone, its
/// name.
struct Finding(u8, &'static str, Reach, Undo, &'static str);

impl Consequences {
    /// With the built-in word lists.
    ///
    /// # Errors
    /// When the built-in data is broken.
    pub fn builtin() -> Result<Self, VerifierDataError> {
        Ok(Self { words: Words::builtin()? })
    }

    fn findings(&self, action: Action<'_>, facts: &Facts) -> Vec<Finding> {
        let view = View { words: &self.words, facts, effect: self.effect(facts) };
        let mut found: Vec<_> = [
            view.deletes(),
            view.pays(),
            view.tells_many(),
            view.grants(),
            view.lowers_guard(),
            view.opens(),
            view.switches_off(),
            view.moves_hazard(),
            view.leaks(),
            view.exposes_person(),
            view.touches_system(),
            view.hides(),
        ]
        .into_iter()
        .flatten()
        .collect();
        found.extend(programs(action, facts));
        found
    }

    /// What the action does: by its name first, because arguments often only name what it is about.
    fn effect(&self, facts: &Facts) -> Effect {
        let named = |test: &dyn Fn(&[String]) -> bool| {
            let mut effects: Vec<_> = self
                .words
                .effects
                .iter()
                .filter(|(_, words)| test(words))
                .map(|(effect, _)| *effect)
                .collect();
            effects.sort_unstable();
            effects
        };
        let by_name = named(&|words| facts.name_has(words));
        // A name that says it only looks or prepares is believed, unless it also says that it
        // changes.
        let looks = by_name.contains(&Effect::Read) || by_name.contains(&Effect::Draft);
        let grave = by_name.first().copied().filter(|effect| *effect <= Effect::Disable);
        match (grave, looks, by_name.first()) {
            (Some(effect), _, _) => effect,
            (None, true, _) => Effect::Read,
            (None, false, Some(effect)) if *effect < Effect::Control => *effect,
            (None, false, first) => {
                let by_words = named(&|words| facts.has(words)).first().copied();
                by_words.or(first.copied()).unwrap_or(Effect::Change)
            }
        }
    }
}

impl ActionJudge for Consequences {
    fn weigh(&self, action: Action<'_>) -> Consequence {
        let facts = Facts::of(action);
        let mut found = self.findings(action, &facts);
        found.sort_by_key(|finding| std::cmp::Reverse(finding.0));
        let rules =
            found.iter().filter(|finding| finding.0 >= 30).map(|finding| finding.4).collect();
        match found.first() {
            Some(&Finding(harm, harmed, reach, undo, _)) => {
                Consequence { harm: Score::from_hundredths(harm), harmed, reach, undo, rules }
            }
            None => Consequence::NONE,
        }
    }
}

/// Commands and statements, wherever they stand.
fn programs(action: Action<'_>, facts: &Facts) -> Vec<Finding> {
    let runs = |key: &str| {
        ["command", "cmd", "script", "args", "code", "shell", "input", "bash"]
            .iter()
            .any(|wanted| key.contains(wanted))
    };
    let named =
        ["bash", "shell", "sh", "terminal", "exec", "run", "execute", "powershell", "command"]
            .iter()
            .any(|name| facts.name.contains(*name));
    let mut found = Vec::new();
    for (key, text) in &facts.texts {
        if let Some((harm, reach, undo, rule)) = sql::weigh(text) {
            found.push(Finding(harm, "stored data", reach, undo, rule));
        }
        if named || runs(key) {
            let line = with_program(action.name, text);
            let (harm, reach, undo, rule) = shell::weigh(&line);
            found.push(Finding(harm, "the machine it runs on", reach, undo, rule));
        }
    }
    found
}

/// A tool named after a program is given that program's arguments alone.
fn with_program(name: &str, text: &str) -> String {
    match name {
        "kubectl" | "git" | "terraform" | "aws" | "docker" | "helm" | "systemctl"
            if !text.trim_start().starts_with(name) =>
        {
            format!("{name} {text}")
        }
        _ => text.to_owned(),
    }
}

struct View<'a> {
    words: &'a Words,
    facts: &'a Facts,
    effect: Effect,
}

impl View<'_> {
    fn changes(&self) -> bool {
        !matches!(self.effect, Effect::Read | Effect::Draft)
    }

    fn reach(&self) -> Reach {
        let facts = self.facts;
        let count = facts.number(&["count", "recipient", "total", "limit", "size"]).unwrap_or(0.0);
        let many = facts.has(&self.words.quantities.many)
            || facts.words.contains("*")
            || facts.name.contains("bulk")
            || facts
                .flags
                .iter()
                .any(|(key, yes)| *yes && matches!(key.as_str(), "all" | "everyone"));
        if many || count >= 100.0 || facts.longest_list >= 50 {
            Reach::Many
        } else if count >= 10.0 || facts.longest_list >= 5 {
            Reach::Some
        } else {
            Reach::One
        }
    }

    fn deletes(&self) -> Option<Finding> {
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
        let harm = if reset { harm.max(62) } else { harm };
        Some(Finding(harm, "stored data", reach, Undo::Never, "action/delete"))
    }

    fn pays(&self) -> Option<Finding> {
        if self.effect != Effect::Pay {
            return None;
        }
        let sum = self.sum();
        let harm = match sum {
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

    fn tells_many(&self) -> Option<Finding> {
        if !matches!(self.effect, Effect::Send | Effect::Publish) {
            return None;
        }
        let shouts = ["@everyone", "@channel", "@here", "#general", "全員", "全顧客"];
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

    fn grants(&self) -> Option<Finding> {
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

    /// Settings that protect, set to nothing.
    fn lowers_guard(&self) -> Option<Finding> {
        if !self.changes() {
            return None;
        }
        let guards =
            ["mfa", "2fa", "encrypt", "ssl", "tls", "verify", "audit", "logging", "require"];
        let guards_key = |key: &str| guards.iter().any(|guard| key.contains(guard));
        let off = self.facts.flags.iter().any(|(key, yes)| !yes && guards_key(key));
        let zero = self.facts.numbers.iter().any(|(key, number)| {
            *number <= 0.0 && (key.contains("min_length") || key.contains("retention"))
        });
        (off || zero).then_some(Finding(
            62,
            "the protection of accounts",
            Reach::Many,
            Undo::Easy,
            "action/lower-guard",
        ))
    }

    fn opens(&self) -> Option<Finding> {
        let entry = self.facts.has(&self.words.objects.entry);
        if self.effect != Effect::Open || !entry {
            return None;
        }
        let vault = self.facts.words.contains("vault") || self.facts.lower.contains("金庫");
        let harm = if vault { 80 } else { 55 };
        Some(Finding(harm, "the safety of a place", Reach::Some, Undo::Hard, "action/open"))
    }

    fn switches_off(&self) -> Option<Finding> {
        let off = matches!(self.effect, Effect::Disable | Effect::Delete);
        let objects = &self.words.objects;
        if !off {
            return None;
        }
        let harm = if self.facts.has(&objects.medical) {
            95
        } else if self.facts.has(&objects.safety) {
            84
        } else if self.facts.has(&objects.hazard) {
            70
        } else {
            return None;
        };
        Some(Finding(harm, "people's safety", Reach::Some, Undo::Hard, "action/switch-off"))
    }

    fn moves_hazard(&self) -> Option<Finding> {
        let objects = &self.words.objects;
        if !self.changes() || matches!(self.effect, Effect::Pay | Effect::Send | Effect::Publish) {
            return None;
        }
        if self.facts.has(&objects.medical) {
            return Some(Finding(
                86,
                "a patient",
                Reach::One,
                Undo::Never,
                "action/medical-device",
            ));
        }
        if !self.facts.has(&objects.hazard) {
            return None;
        }
        let hot = self.facts.number(&["temp", "degree", "celsius", "温度"]).unwrap_or(0.0) >= 65.0;
        let crowd = self.facts.has(&objects.crowd);
        let full =
            self.facts.number(&["percent", "speed", "power", "pressure"]).unwrap_or(0.0) >= 90.0;
        let lands =
            ["land", "stop", "close", "off", "park"].iter().any(|w| self.facts.words.contains(*w));
        let harm = match (crowd, full || self.effect == Effect::Open, hot) {
            _ if lands => 15,
            (true, _, _) => 78,
            (_, true, _) => 74,
            (_, _, true) => 60,
            _ => 35,
        };
        Some(Finding(harm, "people nearby", Reach::Some, Undo::Never, "action/hazard"))
    }

    fn leaks(&self) -> Option<Finding> {
        let secret = self.facts.contains(&self.words.secrets.marks);
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

    fn exposes_person(&self) -> Option<Finding> {
        let personal = self.facts.contains(&self.words.secrets.personal);
        (self.effect == Effect::Publish && personal).then_some(Finding(
            76,
            "a person's privacy",
            Reach::Many,
            Undo::Never,
            "action/expose",
        ))
    }

    fn touches_system(&self) -> Option<Finding> {
        if self.facts.contains(&self.words.secrets.paths) {
            return Some(Finding(
                64,
                "secrets of the machine",
                Reach::Some,
                Undo::Never,
                "action/secret-file",
            ));
        }
        let path = |(key, text): &(String, String)| {
            let key =
                ["path", "file", "target", "destination"].iter().any(|wanted| key.contains(wanted));
            let lower = text.to_lowercase();
            key && self
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

    /// Arguments too long or too deep to be read whole are not trusted.
    fn hides(&self) -> Option<Finding> {
        (self.facts.unread && self.changes()).then_some(Finding(
            50,
            "what could not be read",
            Reach::Some,
            Undo::Hard,
            "action/unread",
        ))
    }
}
