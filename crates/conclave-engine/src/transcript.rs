//! Whoever reads a transcript leaves a trace.

use crate::engine::Engine;
use conclave_core::{AuditId, TenantId};
use conclave_ledger::{Body, Draft, Kind, Value, tenant_number};
use conclave_ports::pseudonym;

impl Engine {
    /// Notes that somebody saw the words of a decision; the reader stands in the leaf as a pseudonym.
    pub fn note_transcript_read(&self, tenant: &TenantId, reader: &str, read: AuditId) {
        let key = &self.settings.pseudonym_key;
        let reader = pseudonym(key, b"reader", tenant.as_str(), reader);
        let draft = Draft {
            policy: self.settings.policy,
            directives: self.settings.directives,
            build: self.settings.build.clone(),
            public: Value::map([
                ("what", Value::from("decision.read")),
                ("decision", Value::Bytes(read.0.into_bytes().to_vec())),
                ("reader", Value::Bytes(reader.to_vec())),
            ]),
            ..Draft::new(Kind::AdminAction, tenant_number(tenant.as_str()))
        };
        self.ledger.append_soon(draft, Body::empty());
    }
}
