//! The HTTP API: wire types, authentication, limits, OpenAPI.
