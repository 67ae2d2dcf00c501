//! The arithmetic of reservations: money reserved before a request, settled after it.
//!
//! **Invariant:** a request reserves the most it can cost, and is granted it where what it is likely to cost is
//! left beside all that is spent and reserved. So whatever is asked for at once, spent never exceeds a limit by
//! more than one request costs beyond what was likely: the last that was granted. What was granted under a
//! higher limit, or what a provider charges beyond what was reserved, is counted as it is, and nothing more is
//! granted until it fits again.
//!
//! **Invariant:** a reservation is settled once. Settling it again, or one that nobody knows, changes
//! nothing; one whose row cannot be read is neither settled nor charged.

use conclave_core::MicroUsd;
use conclave_govern::{AccountKey, AccountLimit};
use std::cmp::Reverse;
use std::collections::BTreeMap;
use thiserror::Error;
use uuid::Uuid;

/// What was spent from an account, and what is reserved in it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Balance {
    /// Settled, or charged because nobody settled it.
    pub spent: u64,
    /// For requests that run.
    pub reserved: u64,
    /// The highest alert that was raised, in per cent.
    pub alerted: u8,
}

impl Balance {
    /// Spent and reserved together: what a limit is compared with.
    #[must_use]
    pub const fn used(&self) -> u64 {
        self.spent.saturating_add(self.reserved)
    }

    fn has_spent(&self, percent: u8, limit: MicroUsd) -> bool {
        u128::from(self.spent) * 100 >= u128::from(limit.0) * u128::from(percent)
    }
}

/// What the accounts are asked to reserve.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReservationOrder {
    /// That of the decision the money is for: the same id asked for twice is one reservation.
    pub id: [u8; 16],
    /// The number of the tenant under which the decision will be recorded.
    pub tenant: u64,
    /// Every limit in force.
    pub lines: Vec<AccountLimit>,
    /// What the request can cost.
    pub cost: CostBound,
    /// What may be reserved instead.
    pub cheaper: Option<CheaperOption>,
    /// The time the request came, in milliseconds since the Unix epoch.
    pub now_ms: u64,
    /// When nobody is believed to settle it any more.
    pub expires_ms: u64,
}

impl ReservationOrder {
    fn granted(&self, amount: MicroUsd, left: MicroUsd, is_cheaper: bool) -> Reservation {
        Reservation { id: self.id, amount, left: left.min(amount), is_cheaper, is_counted: true }
    }
}

/// What a request can cost.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CostBound {
    /// At most.
    pub most: MicroUsd,
    /// Probably: what must be left for it to be granted.
    pub likely: MicroUsd,
}

impl CostBound {
    /// Where nobody knows better than the most.
    #[must_use]
    pub const fn exact(most: MicroUsd) -> Self {
        Self { most, likely: most }
    }
}

/// A cheaper model that is asked where money becomes scarce.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CheaperOption {
    /// What the request can cost with it.
    pub cost: CostBound,
    /// From which spent share of any limit on it is asked, in per cent.
    pub from_percent: u8,
}

/// Money that was reserved for a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reservation {
    /// That of the decision the money is for.
    pub id: [u8; 16],
    /// How much.
    pub amount: MicroUsd,
    /// How much of it there is; less than that only where it was granted because it is likely to cost less.
    pub left: MicroUsd,
    /// Whether that is the amount for the cheaper model, which is then the one to ask.
    pub is_cheaper: bool,
    /// Whether it stands in accounts; under a limit for single requests alone there are none.
    pub(crate) is_counted: bool,
}

/// A limit that a request does not fit in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LineExceeded {
    /// The first limit that would be exceeded.
    pub line: AccountLimit,
    /// What is left of it.
    pub left: MicroUsd,
    /// What the request is likely to cost.
    pub likely: MicroUsd,
    /// How it stands with the request.
    pub outlook: Outlook,
    /// The alert of 100 per cent, where all is spent and nobody was told yet.
    pub crossing: Option<Crossing>,
}

/// Whether a request that does not fit in a limit will.
/// The later, the greater.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Outlook {
    /// As soon as requests that run are settled.
    Soon,
    /// When the limit begins anew.
    NextPeriod,
    /// Never: it is likely to cost more than the whole limit.
    Never,
}

/// A share of a limit that was reached for the first time in its period.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Crossing {
    /// Which limit.
    pub line: AccountLimit,
    /// How much of it, in per cent.
    pub percent: u8,
    /// What is spent.
    pub spent: MicroUsd,
}

/// A reservation that is not settled yet, as a store keeps it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OpenReservation {
    /// How much is reserved.
    pub amount: u64,
    /// In which accounts, each with its limit.
    pub lines: Vec<AccountLimit>,
    /// The number of the tenant under which the decision will be recorded.
    pub tenant: u64,
    /// When it was made.
    pub made_ms: u64,
    /// From when on nobody is believed to settle it any more.
    pub expires_ms: u64,
    /// Whether it was charged in full because nobody settled it in time.
    pub charged: bool,
}

/// A stored reservation that says nothing this program can settle.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("the reservation {} cannot be read: {why}", Uuid::from_bytes(*id))]
pub struct UnreadableReservation {
    /// Its id.
    pub id: [u8; 16],
    /// What is wrong with it.
    pub why: String,
}

/// The balances and reservations that one or more requests are about.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AccountPage {
    /// Balances by account; an account that is not here is empty.
    pub balances: BTreeMap<AccountKey, Balance>,
    /// Open reservations by id.
    pub reservations: BTreeMap<[u8; 16], OpenReservation>,
    /// Reservations that are there and cannot be read.
    pub unreadable: BTreeMap<[u8; 16], UnreadableReservation>,
}

impl AccountPage {
    /// Reserves money in every account or in none.
    ///
    /// # Errors
    /// When one limit would be exceeded.
    pub fn reserve(&mut self, order: &ReservationOrder) -> Result<Reservation, Box<LineExceeded>> {
        if let Some(known) = self.reservations.get(&order.id) {
            let amount = MicroUsd(known.amount);
            let left = self.left(order).saturating_add(amount);
            return Ok(order.granted(amount, left, amount != order.cost.most));
        }
        match self.choose_amount(order) {
            Ok(reservation) => {
                self.open(order, reservation.amount);
                Ok(reservation)
            }
            Err(mut exceeded) => {
                exceeded.crossing = self.raise_highest(&exceeded.line, &[100]);
                Err(exceeded)
            }
        }
    }

    /// The amount for the model that was asked for, or for the cheaper one where a limit comes near or
    /// the dearer one does not fit.
    fn choose_amount(&self, order: &ReservationOrder) -> Result<Reservation, Box<LineExceeded>> {
        let left = self.left(order);
        let granted = |cost: CostBound, is_cheaper| {
            self.check_fit(order, cost).map(|()| order.granted(cost.most, left, is_cheaper))
        };
        let dear = || granted(order.cost, false);
        let Some(cheaper) = order.cheaper else { return dear() };
        let cheap = granted(cheaper.cost, true);
        let is_scarce = order
            .lines
            .iter()
            .any(|line| self.balance(&line.key).has_spent(cheaper.from_percent, line.limit));
        if is_scarce { cheap } else { dear().or_else(|exceeded| cheap.map_err(|_| exceeded)) }
    }

    /// Counts what was really spent and frees the rest. Also corrects what was charged meanwhile.
    ///
    /// # Errors
    /// When the reservation cannot be read; it stays as it is then.
    pub fn settle(
        &mut self,
        id: [u8; 16],
        spent: MicroUsd,
        alerts: &[u8],
    ) -> Result<Vec<Crossing>, UnreadableReservation> {
        if let Some(unreadable) = self.unreadable.get(&id) {
            return Err(unreadable.clone());
        }
        let Some(open) = self.reservations.remove(&id) else { return Ok(Vec::new()) };
        for line in &open.lines {
            let balance = self.balances.entry(line.key.clone()).or_default();
            release(balance, &open);
            balance.spent = balance.spent.saturating_add(spent.0);
        }
        Ok(open.lines.iter().filter_map(|line| self.raise_highest(line, alerts)).collect())
    }

    /// Charges a reservation that nobody settled in time with all of it. It is kept until it is settled
    /// after all, or pruned.
    pub fn expire(&mut self, id: [u8; 16], now_ms: u64) {
        let Some(open) = self.reservations.get_mut(&id) else { return };
        if open.charged || now_ms < open.expires_ms {
            return;
        }
        for line in &open.lines {
            let balance = self.balances.entry(line.key.clone()).or_default();
            release(balance, open);
            balance.spent = balance.spent.saturating_add(open.amount);
        }
        open.charged = true;
    }

    fn balance(&self, key: &AccountKey) -> Balance {
        self.balances.get(key).copied().unwrap_or_default()
    }

    /// What is left in the account where it is least.
    fn left(&self, order: &ReservationOrder) -> MicroUsd {
        let left = order.lines.iter().map(|line| self.left_of(line));
        left.min().unwrap_or(MicroUsd(u64::MAX))
    }

    fn left_of(&self, line: &AccountLimit) -> MicroUsd {
        MicroUsd(line.limit.0.saturating_sub(self.balance(&line.key).used()))
    }

    /// Whether what it is likely to cost is left everywhere. Of the limits where it is not, the one that
    /// stays so longest is named.
    fn check_fit(
        &self,
        order: &ReservationOrder,
        cost: CostBound,
    ) -> Result<(), Box<LineExceeded>> {
        // Whatever costs anything needs an account that is not used up.
        let likely = cost.likely.min(cost.most).max(MicroUsd(cost.most.0.min(1)));
        let refusals = order.lines.iter().filter_map(|line| {
            let left = self.left_of(line);
            let spent = MicroUsd(self.balance(&line.key).spent);
            let outlook = if likely <= left {
                return None;
            } else if likely > line.limit {
                Outlook::Never
            } else if spent.saturating_add(likely) <= line.limit {
                Outlook::Soon
            } else {
                Outlook::NextPeriod
            };
            Some(LineExceeded { line: line.clone(), left, likely, outlook, crossing: None })
        });
        match refusals.min_by_key(|one| Reverse(one.outlook)) {
            Some(exceeded) => Err(Box::new(exceeded)),
            None => Ok(()),
        }
    }

    fn open(&mut self, order: &ReservationOrder, amount: MicroUsd) {
        for line in &order.lines {
            let balance = self.balances.entry(line.key.clone()).or_default();
            balance.reserved = balance.reserved.saturating_add(amount.0);
        }
        let open = OpenReservation {
            amount: amount.0,
            lines: order.lines.clone(),
            tenant: order.tenant,
            made_ms: order.now_ms,
            expires_ms: order.expires_ms,
            charged: false,
        };
        self.reservations.insert(order.id, open);
    }

    fn raise_highest(&mut self, line: &AccountLimit, percents: &[u8]) -> Option<Crossing> {
        let balance = self.balance(&line.key);
        let reached = percents.iter().copied().filter(|p| balance.has_spent(*p, line.limit));
        self.raise_alert(line, reached.max()?)
    }

    /// Raises an alert unless it, or a higher one, was raised before.
    fn raise_alert(&mut self, line: &AccountLimit, percent: u8) -> Option<Crossing> {
        let balance = self.balances.entry(line.key.clone()).or_default();
        if balance.alerted >= percent {
            return None;
        }
        balance.alerted = percent;
        Some(Crossing { line: line.clone(), percent, spent: MicroUsd(balance.spent) })
    }
}

fn release(balance: &mut Balance, open: &OpenReservation) {
    let side = if open.charged { &mut balance.spent } else { &mut balance.reserved };
    *side = side.saturating_sub(open.amount);
}

#[cfg(test)]
#[path = "page_tests.rs"]
mod tests;
