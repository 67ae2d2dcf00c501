//! Where traces go.

use super::SecretRef;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Where traces go. The variables of OpenTelemetry's own specification win over what stands here.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Telemetry {
    /// The base URL of an OTLP/HTTP collector, such as `http://127.0.0.1:4318`; without one, no spans
    /// are written. `OTEL_EXPORTER_OTLP_ENDPOINT` wins.
    pub otlp_endpoint: Option<String>,
    /// `env:NAME` or `file:PATH`: headers for the collector, as `name=value,name=value`.
    /// `OTEL_EXPORTER_OTLP_HEADERS` wins.
    pub otlp_headers: Option<SecretRef>,
    /// What the collector calls this service; `conclave` where nothing is said. `OTEL_SERVICE_NAME`
    /// wins.
    pub service_name: Option<String>,
    /// Whether providers are told of the trace, in `traceparent` and `tracestate`.
    pub tell_providers: bool,
}

impl Default for Telemetry {
    fn default() -> Self {
        Self { otlp_endpoint: None, otlp_headers: None, service_name: None, tell_providers: true }
    }
}

impl Telemetry {
    pub(super) fn is_default(&self) -> bool {
        *self == Self::default()
    }
}
