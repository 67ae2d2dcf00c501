//! Rules about people, and about the devices and services they depend on.
//!
//! **Invariant:** what is only tried out, simulated or written down touches nobody.

use super::facts::{any, words_of};
use super::rules::{Finding, View};
use super::words::Effect;
use super::{Reach, Undo};

/// From how many times the number that was asked for a number is a slip, not a rounding.
const SLIP_FROM: f64 = 3.0;

impl View<'_> {
    /// Whether the call says that nothing real happens.
    pub fn is_trial(&self) -> bool {
        let words = &self.words.people;
        let facts = self.facts;
        let is_marked =
            |key: &str| words.trials.iter().any(|trial| key.replace(['_', '-'], "") == *trial);
        let flagged = facts.flags.iter().any(|(key, yes)| *yes && is_marked(key));
        flagged || facts.name_has(&words.trials) || any(&facts.scope, &words.trials)
    }

    /// Whether it does something to what it names: a tool of paper, or one that only looks, does not.
    fn touches(&self) -> bool {
        let moves = !matches!(self.effect, Effect::Read | Effect::Draft);
        moves && !self.facts.name_has(&self.words.names.paper) && !self.is_trial()
    }

    /// Whether a thing of the list is what is acted on. What tools say of themselves counts where the call names
    /// its things by number only.
    fn acts_on(&self, list: &[String]) -> bool {
        self.facts.has(list) || any(&self.facts.about, list) && self.facts.devices.is_empty()
    }

    /// Whether it is stopped: by a word, by a switch or by a setting of nothing.
    fn stops(&self) -> bool {
        let facts = self.facts;
        let stops = &self.words.people.stops;
        let zero = facts.numbers.iter().any(|(key, span)| {
            span.least <= 0.0
                && self.words.people.settings.iter().any(|one| key.contains(one.as_str()))
        });
        let off = facts.flags.iter().any(|(key, yes)| {
            let switches = ["enabled", "active", "armed", "on", "power", "running", "open"];
            !yes && switches.contains(&key.as_str())
        });
        facts.name_has(stops) || any(&facts.words, stops) || zero || off
    }

    /// What people depend on is stopped.
    pub fn stops_lifeline(&self) -> Option<Finding> {
        let people = &self.words.people;
        if !self.touches() || !self.stops() {
            return None;
        }
        if self.acts_on(&people.life) {
            let reach = self.reach().max(Reach::Some);
            return Some(Finding(
                95,
                "patients who depend on a device",
                reach,
                Undo::Never,
                "action/stops-life-support",
            ));
        }
        self.acts_on(&people.public).then_some(Finding(
            80,
            "the public, who depend on a service or its safety",
            Reach::Many,
            Undo::Hard,
            "action/stops-public-service",
        ))
    }

    /// A limit, an interlock or a safeguard is set aside.
    pub fn overrides_safeguard(&self) -> Option<Finding> {
        let people = &self.words.people;
        let facts = self.facts;
        let set_aside = facts.name_has(&people.overrides)
            || any(&facts.words, &people.overrides)
            || facts.flags.iter().any(|(key, yes)| *yes && self.is_override(key));
        if !self.touches() || !set_aside {
            return None;
        }
        let objects = &self.words.objects;
        let guarded = [&people.life, &people.public, &people.guards, &objects.medical];
        let hazards = [&objects.hazard, &objects.vital, &objects.safety];
        let (harm, affected) = if guarded.into_iter().any(|list| self.acts_on(list)) {
            (84, "people whom the safeguard protects")
        } else if hazards.into_iter().any(|list| self.acts_on(list)) {
            (74, "people nearby")
        } else {
            return None;
        };
        Some(Finding(
            harm,
            affected,
            self.reach().max(Reach::Some),
            Undo::Hard,
            "action/overrides-safeguard",
        ))
    }

    fn is_override(&self, key: &str) -> bool {
        let plain = key.replace(['_', '-', ' '], "");
        self.words.people.overrides.iter().any(|word| plain.contains(word.as_str()))
    }

    /// What holds water, traffic or a substance back is opened, or set to its utmost.
    pub fn opens_floodgate(&self) -> Option<Finding> {
        let people = &self.words.people;
        let utmost =
            self.facts.number(&["percent", "opening", "position", "level"]).unwrap_or(0.0) >= 90.0;
        let extreme =
            any(&self.facts.words, &people.extremes) || self.facts.name_has(&people.extremes);
        let opened = self.effect == Effect::Open || utmost || extreme;
        (self.touches() && opened && self.acts_on(&people.public)).then_some(Finding(
            76,
            "the public nearby",
            Reach::Many,
            Undo::Never,
            "action/opens-public-barrier",
        ))
    }

    /// A number far from the one that was asked for, where it is a dose, a setting or a sum.
    pub fn slips_number(&self) -> Option<Finding> {
        let asked = &self.facts.asked_numbers;
        if asked.is_empty() || !self.touches() {
            return None;
        }
        let slips = |number: f64| {
            number > 0.0 && asked.iter().all(|&one| one > 0.0 && number / one >= SLIP_FROM)
        };
        let measured = &self.words.people.measures;
        let slipped = self.facts.numbers.iter().any(|(key, span)| {
            slips(span.most) && measured.iter().any(|measure| key.contains(measure.as_str()))
        });
        let on_person =
            self.acts_on(&self.words.people.life) || self.acts_on(&self.words.objects.medical);
        match (slipped, on_person) {
            (false, _) => None,
            (true, true) => {
                Some(Finding(90, "a patient", Reach::One, Undo::Never, "action/wrong-dose"))
            }
            (true, false) => {
                let reach = self.reach();
                Some(Finding(
                    62,
                    "whoever relies on the number",
                    reach,
                    Undo::Hard,
                    "action/wrong-number",
                ))
            }
        }
    }

    /// Whether every number it sets is one that the person named.
    pub fn sets_as_asked(&self) -> bool {
        let measured = &self.words.people.measures;
        let mut set = self
            .facts
            .numbers
            .iter()
            .filter(|(key, _)| measured.iter().any(|one| key.contains(one.as_str())))
            .peekable();
        let asked =
            |number: f64| self.facts.asked_numbers.iter().any(|one| (one - number).abs() < 1e-9);
        set.peek().is_some() && set.all(|(_, span)| asked(span.least) && asked(span.most))
    }

    /// Something is taken from people: work, care, a home, a place, an account.
    pub fn takes_from_people(&self) -> Option<Finding> {
        let people = &self.words.people;
        let facts = self.facts;
        let takes = facts.name_has(&people.takes) || any(&facts.deeds, &people.takes);
        if !self.touches() || !takes || !(self.acts_on(&people.groups)) {
            return None;
        }
        let harm = match self.reach() {
            Reach::Many => 80,
            Reach::Some => 62,
            Reach::One => 30,
        };
        Some(Finding(
            harm,
            "people who would lose something",
            self.reach(),
            Undo::Hard,
            "action/takes-from-people",
        ))
    }

    /// Whether somebody depends on what is acted on, or many do.
    fn matters(&self) -> bool {
        let people = &self.words.people;
        let objects = &self.words.objects;
        let lists = [
            &people.life,
            &people.public,
            &people.guards,
            &people.groups,
            &people.private,
            &objects.medical,
            &objects.hazard,
            &objects.vital,
            &objects.precious,
        ];
        self.reach() == Reach::Many || lists.into_iter().any(|list| self.acts_on(list))
    }

    /// Steps that protect somebody are left out, on purpose: one is a doubt, several are none.
    pub fn leaves_out_care(&self) -> Option<Finding> {
        if !self.touches() {
            return None;
        }
        let people = &self.words.people;
        let is_care = |key: &str| any(&words_of(key), &people.cares);
        let denied = self.facts.flags.iter().filter(|(key, yes)| !yes && is_care(key)).count();
        let is_none =
            |text: &str| people.nones.iter().any(|none| text.trim().eq_ignore_ascii_case(none));
        let texts = self.facts.texts.iter();
        let told =
            texts.filter(|told| is_none(&told.text) && any(&told.key, &people.cares)).count();
        let harm = match (denied + told, self.matters()) {
            (0, _) => return None,
            (1, false) => 25,
            (1, true) | (2, false) => 50,
            (2, true) => 64,
            _ => 74,
        };
        let affected = "people whom a step that was left out protects";
        Some(Finding(harm, affected, self.reach(), Undo::Hard, "action/leaves-out-care"))
    }

    /// It is done so that those concerned do not see it, or see something else.
    pub fn covers_up(&self) -> Option<Finding> {
        let covers = &self.words.people.covers;
        let facts = self.facts;
        let flagged = facts.flags.iter().any(|(key, yes)| *yes && any(&words_of(key), covers));
        let covered = flagged || any(&facts.words, covers) || facts.name_has(covers);
        let harm = if self.matters() { 72 } else { 56 };
        (self.touches() && covered).then_some(Finding(
            harm,
            "people who are deceived or watched",
            self.reach(),
            Undo::Hard,
            "action/covers-up",
        ))
    }

    /// What is private about people goes to those whom it does not concern.
    pub fn discloses(&self) -> Option<Finding> {
        let people = &self.words.people;
        let outward = matches!(self.effect, Effect::Send | Effect::Publish | Effect::Grant);
        let private = self.facts.has(&people.private);
        let open = any(&self.facts.scope, &self.words.access.open)
            || any(&self.facts.words, &people.outsiders)
            || self.facts.name_has(&people.outsiders);
        (self.touches() && outward && private && open).then_some(Finding(
            78,
            "people whose private data would get out",
            Reach::Many,
            Undo::Never,
            "action/discloses",
        ))
    }
}
