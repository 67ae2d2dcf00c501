//! Finds identifying data in texts and JSON, and replaces it with tokens that can be undone, pure
