//! What every page shares.

use crate::account::{Account, SignIn};
use crate::lockout::Lockouts;
use crate::same_site::FormKey;
use crate::session::Sessions;
use conclave_core::AuditId;
use conclave_engine::{Archive, Clock, Entropy};
use conclave_people::{Appeals, People};
use std::sync::Arc;

/// Told whenever the words of a decision are shown to somebody.
pub type TranscriptHook = Arc<dyn Fn(&Account, AuditId) + Send + Sync>;

/// Gives the appeals of the configuration that is in force at the moment.
pub type AppealsHook = Arc<dyn Fn() -> Arc<Appeals> + Send + Sync>;

/// What the dashboard needs from outside.
#[derive(Clone)]
pub struct Ports {
    /// Knows names and passwords.
    pub sign_in: Arc<dyn SignIn>,
    /// Recalls decisions.
    pub archive: Arc<dyn Archive>,
    /// Time.
    pub clock: Arc<dyn Clock>,
    /// Chance.
    pub entropy: Arc<dyn Entropy>,
    /// Told whenever the words of a decision are shown to somebody.
    pub on_transcript_read: TranscriptHook,
    /// What waits for people; absent where it is not set up.
    pub people: Option<Arc<People>>,
    /// The appeals of the configuration in force; absent where they are not set up.
    pub appeals: Option<AppealsHook>,
    /// Whether browsers reach it over https: cookies are then bound to that.
    pub https: bool,
}

/// What every page shares; cheap to clone.
#[derive(Clone)]
pub struct Dashboard(Arc<Shared>);

struct Shared {
    ports: Ports,
    sessions: Sessions,
    lockouts: Lockouts,
    forms: FormKey,
}

impl Dashboard {
    /// A dashboard nobody is signed in to.
    #[must_use]
    pub fn new(ports: Ports) -> Self {
        let (salt, key) = (random(&*ports.entropy), random(&*ports.entropy));
        Self(Arc::new(Shared {
            ports,
            sessions: Sessions::default(),
            lockouts: Lockouts::new(salt),
            forms: FormKey::new(key),
        }))
    }

    pub(crate) fn ports(&self) -> &Ports {
        &self.0.ports
    }

    /// The appeals of the configuration in force.
    pub(crate) fn appeals(&self) -> Option<Arc<Appeals>> {
        self.0.ports.appeals.as_ref().map(|hook| hook())
    }

    pub(crate) fn sessions(&self) -> &Sessions {
        &self.0.sessions
    }

    pub(crate) fn lockouts(&self) -> &Lockouts {
        &self.0.lockouts
    }

    pub(crate) fn forms(&self) -> &FormKey {
        &self.0.forms
    }

    /// A new value for a cookie: 256 random bits in hexadecimal.
    pub(crate) fn new_id(&self) -> String {
        hex::encode(random(&*self.0.ports.entropy))
    }

    /// Milliseconds since the Unix epoch.
    pub(crate) fn now_ms(&self) -> u64 {
        self.0.ports.clock.now_ms()
    }

    /// Whether browsers reach it over https.
    pub(crate) fn https(&self) -> bool {
        self.0.ports.https
    }
}

fn random(entropy: &dyn Entropy) -> [u8; 32] {
    let mut bytes = [0; 32];
    entropy.fill(&mut bytes);
    bytes
}
