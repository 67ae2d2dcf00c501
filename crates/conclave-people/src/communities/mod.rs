//! Communities: who speaks for one ([`elders`]), and what it has laid down ([`protocols`]), held in memory
//! for whoever waits for a reply ([`cache`]). What a protocol says of a text is decided in
//! `conclave-govern`.

mod cache;
mod elders;
mod protocols;

pub(crate) use cache::ProtocolCache;
pub use elders::{CommunityElders, Elder, ElderProposal};
pub use protocols::ProtocolVersion;

use crate::people::PeopleError;
use conclave_govern::{NAME_BYTES_MAX, Unfit, community_id};

/// The most communities of one tenant.
const COMMUNITIES_MAX: u32 = 64;

/// Where the records of a community stand.
fn community_key(community: &str) -> Result<String, PeopleError> {
    let id = community_id(community);
    if id.is_empty() || community.len() > NAME_BYTES_MAX {
        let why = format!("must be 1 to {NAME_BYTES_MAX} bytes with letters");
        return Err(Unfit::new("community", why).into());
    }
    Ok(id)
}
