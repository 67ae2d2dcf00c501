//! Fakes and fixtures for tests.
