//! What people agree to, lay down, decide and are told of, and what is kept of one person. Nothing
//! here asks a model.

pub(crate) mod appeals;
pub(crate) mod consents;
pub(crate) mod desk;
pub(crate) mod protocols;
pub(crate) mod reviews;
pub(crate) mod subjects;
pub(crate) mod users;
pub(crate) mod webhooks;
