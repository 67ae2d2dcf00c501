//! The arithmetic of money that is set aside before and settled after.
//!
//! **Invariant:** what is granted never makes spent and held together more than a limit. What was
//! granted under a higher limit, or what a provider charges beyond what was set aside, is counted as it
//! is, and nothing more is granted until it fits again.
//!
//! **Invariant:** a hold is settled once. Settling it again, or one that nobody knows, changes nothing.

use conclave_core::MicroUsd;
use conclave_govern::{AccountKey, Line, Period, Scope};
use std::collections::BTreeMap;

/// What was spent, and what may still be.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Account {
    /// Settled, or charged because nobody settled it.
    pub spent: u64,
    /// Set aside for requests that run.
    pub held: u64,
    /// The highest alert that was raised, in per cent.
    pub alerted: u8,
}

impl Account {
    /// Both together.
    #[must_use]
    pub const fn used(&self) -> u64 {
        self.spent.saturating_add(self.held)
    }

    /// Whether at least so many per cent of a limit are spent.
    #[must_use]
    pub fn has_spent(&self, percent: u8, limit: MicroUsd) -> bool {
        u128::from(self.spent) * 100 >= u128::from(limit.0) * u128::from(percent)
    }
}

/// Money that is set aside.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Hold {
    /// How much.
    pub most: u64,
    /// For which accounts, each with its limit.
    pub lines: Vec<Line>,
    /// The number of the tenant under which the decision will be recorded.
    pub tenant: u64,
    /// When it was set aside.
    pub made_ms: u64,
    /// From when on nobody is believed to settle it any more.
    pub expires_ms: u64,
    /// Whether it was charged in full because nobody settled it in time.
    pub charged: bool,
}

/// Asks for money.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HoldAsk {
    /// Unique: the same id asked for twice is one hold.
    pub id: [u8; 16],
    /// The number of the tenant.
    pub tenant: u64,
    /// Every limit in force.
    pub lines: Vec<Line>,
    /// The most that the request can cost.
    pub most: MicroUsd,
    /// The most that it can cost with a cheaper model, and from which share on that one is asked.
    pub cheaper: Option<(MicroUsd, u8)>,
    /// Now.
    pub now_ms: u64,
    /// When it is given up.
    pub expires_ms: u64,
}

/// What was granted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Grant {
    /// How much was set aside.
    pub held: MicroUsd,
    /// Whether that is the cheaper amount.
    pub is_cheaper: bool,
}

/// Why nothing was granted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refusal {
    /// The limit that would be exceeded.
    pub line: Line,
    /// What is left of it.
    pub left: MicroUsd,
}

/// A share of a limit that was reached for the first time in its period.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Crossing {
    /// Which limit.
    pub line: Line,
    /// How much of it, in per cent.
    pub percent: u8,
    /// What is spent.
    pub spent: MicroUsd,
}

/// The accounts and holds that one or more requests are about.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Page {
    /// Accounts by what they are for; one that is not there is empty.
    pub accounts: BTreeMap<AccountKey, Account>,
    /// Holds by id.
    pub holds: BTreeMap<[u8; 16], Hold>,
}

impl Page {
    /// Sets money aside in every account or in none.
    ///
    /// # Errors
    /// When one limit would be exceeded; the first alert of 100 % goes with it.
    pub fn hold(&mut self, ask: &HoldAsk) -> Result<Grant, (Refusal, Option<Crossing>)> {
        if let Some(known) = self.holds.get(&ask.id) {
            let is_cheaper = known.most != ask.most.0;
            return Ok(Grant { held: MicroUsd(known.most), is_cheaper });
        }
        let late = |percent: u8| {
            ask.lines.iter().any(|line| self.account(&line.key).has_spent(percent, line.limit))
        };
        let cheaper = ask.cheaper.map(|(most, percent)| (most, late(percent)));
        let grant = match cheaper {
            Some((most, true)) => self.fits(&ask.lines, most).map(|()| (most, true)),
            Some((most, false)) => match self.fits(&ask.lines, ask.most) {
                Ok(()) => Ok((ask.most, false)),
                Err(refusal) => {
                    self.fits(&ask.lines, most).map(|()| (most, true)).map_err(|_| refusal)
                }
            },
            None => self.fits(&ask.lines, ask.most).map(|()| (ask.most, false)),
        };
        match grant {
            Ok((most, is_cheaper)) => {
                self.set_aside(ask, most);
                Ok(Grant { held: most, is_cheaper })
            }
            Err(refusal) => {
                let crossing = self.alert(&refusal.line, 100);
                Err((refusal, crossing))
            }
        }
    }

    /// Says what was really spent; gives the rest back. Also corrects what was charged meanwhile.
    pub fn settle(&mut self, id: [u8; 16], spent: MicroUsd, alerts: &[u8]) -> Vec<Crossing> {
        let Some(hold) = self.holds.remove(&id) else { return Vec::new() };
        for line in &hold.lines {
            let account = self.accounts.entry(line.key.clone()).or_default();
            release(account, &hold);
            account.spent = account.spent.saturating_add(spent.0);
        }
        self.alerts(&hold.lines, alerts)
    }

    /// Charges a hold that nobody settled in time with all that was set aside. It is kept until it is
    /// settled after all, or let go.
    pub fn expire(&mut self, id: [u8; 16], now_ms: u64, alerts: &[u8]) -> Vec<Crossing> {
        let Some(hold) = self.holds.get_mut(&id) else { return Vec::new() };
        if hold.charged || now_ms < hold.expires_ms {
            return Vec::new();
        }
        let before = hold.clone();
        hold.charged = true;
        for line in &before.lines {
            let account = self.accounts.entry(line.key.clone()).or_default();
            release(account, &before);
            account.spent = account.spent.saturating_add(before.most);
        }
        self.alerts(&before.lines, alerts)
    }

    fn account(&self, key: &AccountKey) -> Account {
        self.accounts.get(key).copied().unwrap_or_default()
    }

    fn fits(&self, lines: &[Line], most: MicroUsd) -> Result<(), Refusal> {
        for line in lines {
            let left = line.limit.0.saturating_sub(self.account(&line.key).used());
            if most.0 > left {
                return Err(Refusal { line: line.clone(), left: MicroUsd(left) });
            }
        }
        Ok(())
    }

    fn set_aside(&mut self, ask: &HoldAsk, most: MicroUsd) {
        for line in &ask.lines {
            let account = self.accounts.entry(line.key.clone()).or_default();
            account.held = account.held.saturating_add(most.0);
        }
        let hold = Hold {
            most: most.0,
            lines: ask.lines.clone(),
            tenant: ask.tenant,
            made_ms: ask.now_ms,
            expires_ms: ask.expires_ms,
            charged: false,
        };
        self.holds.insert(ask.id, hold);
    }

    fn alerts(&mut self, lines: &[Line], percents: &[u8]) -> Vec<Crossing> {
        let mut crossings = Vec::new();
        for line in lines {
            let account = self.account(&line.key);
            let reached = percents.iter().copied().filter(|p| account.has_spent(*p, line.limit));
            if let Some(percent) = reached.max() {
                crossings.extend(self.alert(line, percent));
            }
        }
        crossings
    }

    /// Raises an alert unless it, or a higher one, was raised before.
    fn alert(&mut self, line: &Line, percent: u8) -> Option<Crossing> {
        let account = self.accounts.entry(line.key.clone()).or_default();
        if account.alerted >= percent {
            return None;
        }
        account.alerted = percent;
        Some(Crossing { line: line.clone(), percent, spent: MicroUsd(account.spent) })
    }
}

fn release(account: &mut Account, hold: &Hold) {
    let side = if hold.charged { &mut account.spent } else { &mut account.held };
    *side = side.saturating_sub(hold.most);
}

/// Writes the lines of a hold as text for a store: one a line, the name last.
#[must_use]
pub fn encode_lines(lines: &[Line]) -> String {
    let rows = lines.iter().map(|line| {
        let AccountKey { tenant, scope, name, period, number } = &line.key;
        let (scope, period, limit) = (scope.as_str(), period.as_str(), line.limit.0);
        format!("{limit} {tenant} {scope} {period} {number} {name}")
    });
    rows.collect::<Vec<_>>().join("\n")
}

/// Reads them again; what is not of this form is left out.
#[must_use]
pub fn decode_lines(text: &str) -> Vec<Line> {
    let line = |row: &str| {
        let mut parts = row.splitn(6, ' ');
        let limit = MicroUsd(parts.next()?.parse().ok()?);
        let tenant = parts.next()?.parse().ok()?;
        let scope = Scope::parse(parts.next()?)?;
        let period = Period::parse(parts.next()?)?;
        let number = parts.next()?.parse().ok()?;
        let name = parts.next()?.to_owned();
        Some(Line { key: AccountKey { tenant, scope, name, period, number }, limit })
    };
    text.lines().filter_map(line).collect()
}

#[cfg(test)]
#[path = "budget_tests.rs"]
mod tests;
