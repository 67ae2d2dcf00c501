//! The use-cases: runs the rules through ports.
