//! Adapters to model providers.
