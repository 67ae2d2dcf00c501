//! Prices, budgets and reservations: what a request can cost at most is reserved before it runs and
//! settled after with what it did cost.
//!
//! **Invariant:** what cannot be known (a price, a stored reservation, an answer of the accounts) is a
//! refusal or an error, never nothing.

mod accounts;
mod accounts_in_memory;
mod likely;
mod lines;
mod page;
mod policies;
mod prices;
mod refusal;
mod runaway;
mod size;
mod steward;

pub use accounts::{AccountBalance, Accounts, AccountsError, ReserveOutcome, UnsettledReservation};
pub use accounts_in_memory::AccountsInMemory;
pub use lines::{LineFormatError, decode_lines, encode_lines};
pub use page::{
    AccountPage, Balance, CheaperOption, CostBound, Crossing, LineExceeded, OpenReservation,
    Outlook, Reservation, ReservationOrder, UnreadableReservation,
};
pub use policies::{KnownPolicy, Policies, TenantsError};
pub use prices::{PriceError, PriceTable};
pub use refusal::BudgetRefusal;
pub use size::{
    GUIDANCE_TOKENS_MAX, MESSAGE_TOKENS, OUTPUT_TOKENS_DEFAULT, RequestSize, stated_output_tokens,
    tokens_at_most,
};
pub use steward::{Payer, ReconcileError, ReservationRequest, Steward, StewardState, VerifierFee};
