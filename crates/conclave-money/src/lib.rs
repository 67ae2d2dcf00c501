//! What requests cost, and the budgets they are reserved in and settled against.

mod accounts;
mod accounts_in_memory;
mod budget;
mod cost;
mod policies;
mod prices;
mod purse;
mod runaway;
mod size;
mod steward;

pub use accounts::{Accounts, AccountsError, HoldAnswer, Unsettled};
pub use accounts_in_memory::AccountsInMemory;
pub use budget::{
    Account, Crossing, Grant, Hold, HoldAsk, Page, Refusal, decode_lines, encode_lines,
};
pub use cost::cost_of_attempts;
pub use policies::{KnownPolicy, Policies, TenantsError};
pub use prices::{PriceError, PriceTable};
pub use purse::{Purse, PurseError, Reserve};
pub use runaway::Runaway;
pub use size::{
    GUIDANCE_TOKENS_MAX, MESSAGE_TOKENS, OUTPUT_TOKENS_DEFAULT, RequestSize, output_tokens_at_most,
    stated_output_tokens, tokens_at_most,
};
pub use steward::{Fee, Steward, StewardState, Unpaid, resets_ms};
