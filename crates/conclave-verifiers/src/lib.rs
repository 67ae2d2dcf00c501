//! The built-in verifiers: a reply judged in the light of its conversation, pure.
