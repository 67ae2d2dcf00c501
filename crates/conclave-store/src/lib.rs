//! Adapters to durable storage: spool and SQLite.
