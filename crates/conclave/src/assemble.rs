//! Wiring: configuration in, engine out.

use crate::bare;
use crate::config::{
    AuditFailureName, Config, ModeName, OnDoubtName, OnInjection, OnInputBlock, ScrutinyName,
    StreamName, UnjudgedName,
};
use crate::outbox::GuardedPost;
use crate::own_files;
use crate::prices::{Prices, steward};
use crate::upstream::Upstream;
use anyhow::{Context, anyhow};
use conclave_core::{Mode, Scrutiny, Seat, TenantId, UserId};
use conclave_engine::{
    Archive, BuiltIn, Clock, Engine, Entropy, KeyDesk, Ledger, Memory, Panel, Places, Records,
    Settings, Shares, Subjects, Verifier, standard_guards,
};
use conclave_gateway::{GatewayLimits, GatewaySettings, LinkCheck, Services, TlsIdentity};
use conclave_govern::Jurisdictions;
use conclave_instinct::{Instinct, PinnedKey};
use conclave_money::{Policies, Steward, StewardState};
use conclave_people::{Appeals, GuardedHandOut, People, Staff};
use conclave_recipes::{RecipeRunner, Workshop};
use conclave_store::{RetentionRules, RootKey, Stamp, Store, TenantRetention};
use conclave_voice::Resources;
use sha2::{Digest, Sha256};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

/// What outlives a reload.
#[derive(Clone)]
pub struct Ground {
    /// Remembers.
    pub ledger: Arc<dyn Ledger>,
    /// Recalls.
    pub archive: Arc<dyn Archive>,
    /// Who has been here before.
    pub memory: Arc<Memory>,
    /// Who may compute, and when.
    pub shares: Shares,
    /// Names people.
    pub subjects: Arc<dyn Subjects>,
    /// Time.
    pub clock: Arc<dyn Clock>,
    /// Chance.
    pub entropy: Arc<dyn Entropy>,
    /// Keys the pseudonyms in the ledger.
    pub pseudonym_key: [u8; 32],
    /// Accounts, policies and what is known of both.
    pub steward: Arc<StewardState>,
    /// Keeps what people agree to, lay down and decide.
    pub records: Arc<dyn Records>,
    /// Knows it.
    pub people: Arc<People>,
    /// Makes and withdraws API keys.
    pub keys: Arc<dyn KeyDesk>,
}

/// What outlives a reload, over a store.
pub fn ground(
    store: &Store,
    steward: Arc<StewardState>,
    staff: Option<Arc<dyn Staff>>,
    clock: Arc<dyn Clock>,
    entropy: Arc<dyn Entropy>,
) -> Ground {
    let records = store.records();
    let keys = store.key_desk(clock.clone(), entropy.clone());
    let (subjects, key) = (store.subjects(), store.pseudonym_key());
    let people =
        People::new(records.clone(), subjects.clone(), clock.clone(), entropy.clone(), key);
    let people = match staff {
        Some(staff) => people.with_staff(staff),
        None => people,
    };
    Ground {
        ledger: bare::ledger(store.ledger()),
        archive: store.archive(),
        memory: Arc::new(Memory::new(store.archive())),
        shares: Shares::default(),
        steward,
        subjects,
        clock,
        entropy,
        pseudonym_key: key,
        records,
        people: Arc::new(people),
        keys,
    }
}

/// Wires what a configuration describes.
///
/// The engine is built in a thread of its own: compiling the data files leaves tens of megabytes of scraps in
/// the thread's heap, which the allocator can only hand on once that thread has ended.
///
/// # Errors
/// When a secret cannot be had, a provider's address is refused, or data files are broken.
pub fn services(config: &Config, ground: &Ground) -> anyhow::Result<Services> {
    std::thread::scope(|scope| {
        let built = scope.spawn(|| build(config, ground)).join();
        built.unwrap_or_else(|_| Err(anyhow!("building the engine panicked")))
    })
}

fn build(config: &Config, ground: &Ground) -> anyhow::Result<Services> {
    let settings = Settings {
        directives: instinct(config)?.digest(),
        ..settings(config, ground.pseudonym_key)?
    };
    let now_ms = ground.clock.now_ms();
    let steward =
        Arc::new(steward(config, ground.steward.clone(), now_ms, settings.reply_timeout)?);
    let hand_out = GuardedHandOut {
        people: ground.people.clone(),
        governance: ground.people.clone(),
        archive: ground.archive.clone(),
        ledger: ground.ledger.clone(),
        policies: steward.clone(),
        clock: ground.clock.clone(),
        stamp: settings.stamp(),
        pseudonym_key: ground.pseudonym_key,
    };
    let hand_out = Arc::new(hand_out);
    let appeals = Appeals {
        people: ground.people.clone(),
        hand_out: hand_out.clone(),
        staffed: config.reviews.staffed,
    };
    let engine = engine(config, ground, settings, steward)?;
    let recipes = RecipeRunner {
        engine: engine.clone(),
        workshop: Arc::new(workshop(config)?),
        records: Some(ground.records.clone()),
    };
    Ok(Services {
        engine: Arc::new(engine),
        recipes: Arc::new(recipes),
        people: ground.people.clone(),
        appeals: Arc::new(appeals),
        hand_out,
        post: Arc::new(GuardedPost::new(config.webhooks.allow_private)),
        key_desk: ground.keys.clone(),
        settings: gateway_settings(config),
    })
}

fn engine(
    config: &Config,
    ground: &Ground,
    settings: Settings,
    steward: Arc<Steward>,
) -> anyhow::Result<Engine> {
    let instinct = instinct(config)?;
    let resources = resources(config)?;
    let now_ms = ground.clock.now_ms();
    let share_wait = Duration::from_millis(config.limits.share_wait_ms);
    let upstream = Upstream::connect(config, &Prices::of(config, now_ms)?)?;
    Ok(Engine {
        instinct: Arc::new(instinct),
        detectors: own_files::detectors(config)?,
        field: Arc::new(conclave_voice::Field::builtin().context("field files")?),
        voices: own_files::voices(config, &resources)?,
        models: Arc::new(upstream.offered()?),
        guards: standard_guards(),
        panel: panel(config, upstream.verifiers(&ground.entropy)?)?,
        verdicts: Arc::default(),
        readings: Arc::default(),
        ledger: ground.ledger.clone(),
        archive: ground.archive.clone(),
        shares: ground.shares.clone().with_wait_max(share_wait),
        memory: ground.memory.clone(),
        subjects: ground.subjects.clone(),
        clock: ground.clock.clone(),
        entropy: ground.entropy.clone(),
        settings: Arc::new(settings),
        policies: steward.clone(),
        steward: Some(steward),
        governance: Some(ground.people.clone()),
        places: Arc::new(Places {
            rules: Jurisdictions::builtin().context("rules of jurisdictions")?,
            provider_regions: config.recipes.provider_regions.clone(),
        }),
        personal_data: Arc::default(),
    })
}

/// The certificate that connections are encrypted with; none where the configuration names none.
///
/// # Errors
/// When its files cannot be used; the sentence says why.
pub fn tls(config: &Config, now_ms: u64) -> anyhow::Result<Option<Arc<TlsIdentity>>> {
    let Some(files) = config.tls.files() else { return Ok(None) };
    let identity = TlsIdentity::load(files, now_ms).context("tls")?;
    Ok(Some(Arc::new(identity)))
}

/// So many recipe files of one's own are read.
const RECIPE_FILES_MAX: usize = 64;

/// The recipes, the built-in ones and an organisation's own, with what they work with.
///
/// # Errors
/// When a recipe file cannot be read or used; the error names it.
pub fn workshop(config: &Config) -> anyhow::Result<Workshop> {
    let own = match &config.recipes.dir {
        Some(dir) => recipe_files(dir).with_context(|| format!("recipes.dir {}", dir.display()))?,
        None => Vec::new(),
    };
    Ok(Workshop::new(&own, config.recipes.settings())?)
}

/// Every `*.toml` of a directory, by name.
fn recipe_files(dir: &Path) -> anyhow::Result<Vec<(String, String)>> {
    let mut paths = Vec::new();
    for entry in std::fs::read_dir(dir)? {
        let path = entry?.path();
        if path.extension().is_some_and(|extension| extension == "toml") {
            paths.push(path);
        }
    }
    paths.sort();
    if paths.len() > RECIPE_FILES_MAX {
        return Err(anyhow!("has more than {RECIPE_FILES_MAX} recipe files"));
    }
    let read = |path: &std::path::PathBuf| {
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let text = std::fs::read_to_string(path).with_context(|| name.clone())?;
        Ok((name, text))
    };
    paths.iter().map(read).collect()
}

/// Crisis lines: those compiled in, with the organisation's own in the place of those they name.
///
/// # Errors
/// When the organisation's file cannot be read or used; the error names it.
pub fn resources(config: &Config) -> anyhow::Result<Resources> {
    let builtin = Resources::builtin().context("resource files")?;
    let Some(file) = &config.resources.file else {
        return Ok(builtin);
    };
    let name = format!("resources.file {}", file.display());
    let text = std::fs::read_to_string(file).with_context(|| name.clone())?;
    Ok(builtin.overridden(&name, &text)?)
}

/// The directives in force: the set compiled in, or the organisation's own; either way signed by the
/// key this program was built with.
///
/// # Errors
/// When one byte differs from what was signed.
pub fn instinct(config: &Config) -> anyhow::Result<Instinct> {
    let Some(file) = &config.directives.file else {
        return Instinct::builtin().context("the directives compiled into this program");
    };
    let read = |path: &Path| {
        std::fs::read(path).with_context(|| format!("the directives in {}", path.display()))
    };
    let signature = read(&file.with_extension("sig"))?;
    let signature = String::from_utf8_lossy(&signature).into_owned();
    Instinct::verify(&read(file)?, &signature, &PinnedKey::compiled_in()?)
        .with_context(|| format!("the directives in {}", file.display()))
}

/// What every entry says about this program and configuration.
///
/// # Errors
/// When the directives cannot be read, or the configuration cannot be written down.
pub fn stamp(config: &Config) -> anyhow::Result<Stamp> {
    Ok(Stamp {
        policy: digest(config)?,
        directives: instinct(config)?.digest(),
        build: env!("CARGO_PKG_VERSION").to_owned(),
    })
}

/// The root key, where it is kept elsewhere.
///
/// # Errors
/// When it cannot be had or is none.
pub fn root_key(config: &Config) -> anyhow::Result<Option<RootKey>> {
    let Some(reference) = &config.storage.root_key else { return Ok(None) };
    let secret = reference.resolve().map_err(|why| anyhow!("storage.root_key: {why}"))?;
    Ok(Some(RootKey::parse(&secret).context("storage.root_key")?))
}

/// How long words are kept, by the configuration and by what tenants have set themselves.
#[must_use]
pub fn retention_under(config: &Config, policies: &Policies) -> RetentionRules {
    let mut rules = retention(config);
    for (tenant, known) in policies.each() {
        if let Some(days) = known.policy.retention_days {
            rules.tenants.entry(tenant).or_default().days = Some(days);
        }
    }
    rules
}

/// How long words are kept. Names were checked when the file was read.
fn retention(config: &Config) -> RetentionRules {
    let tenants = config.tenants.iter().filter_map(|(name, tenant)| {
        let users = tenant.legal_hold_users.iter();
        let held_users = users.filter_map(|user| UserId::new(user.as_str()).ok()).collect();
        let (days, hold) = (tenant.retention_days, tenant.legal_hold);
        let name = TenantId::new(name.as_str()).ok()?;
        Some((name, TenantRetention { days, hold, held_users }))
    });
    RetentionRules { days: config.storage.retention_days, tenants: tenants.collect() }
}

/// How the gateway answers.
#[must_use]
pub fn gateway_settings(config: &Config) -> GatewaySettings {
    GatewaySettings {
        reply_on_input_block: config.policy.on_input_block == OnInputBlock::Reply,
        omit_own_fields: config.policy.omit_own_fields,
        link_check: LinkCheck(if config.policy.allow_private_urls {
            |_| Ok(())
        } else {
            |url| conclave_models::check_fetched_url(url).map_err(|error| error.to_string())
        }),
        rates: config.rate_limits.rates(),
        keyless_requests_per_minute: config.rate_limits.keyless_requests_per_minute,
    }
}

/// What the gateway takes on.
#[must_use]
pub fn limits(config: &Config) -> GatewayLimits {
    GatewayLimits {
        body_bytes_max: config.limits.body_bytes_max,
        turns_max: config.limits.turns_max,
        connections_max: config.limits.connections_max,
        connections_per_address_max: config.limits.connections_per_address_max,
        drain_timeout: Duration::from_millis(config.limits.drain_timeout_ms),
        drain_grace: Duration::from_millis(config.limits.drain_grace_ms),
        ..GatewayLimits::default()
    }
}

fn settings(config: &Config, pseudonym_key: [u8; 32]) -> anyhow::Result<Settings> {
    let rules = &config.deliberation;
    Ok(Settings {
        attempts_max: rules.attempts_max,
        turn_deadline: Duration::from_millis(rules.turn_deadline_ms),
        reply_timeout: Duration::from_millis(rules.reply_timeout_ms),
        crisis_deadline: Duration::from_millis(rules.crisis_deadline_ms),
        panel_deadline: Duration::from_millis(rules.panel_deadline_ms),
        scrutiny_min: match rules.scrutiny_min {
            ScrutinyName::Normal => Scrutiny::Normal,
            ScrutinyName::Raised => Scrutiny::Raised,
            ScrutinyName::Strict => Scrutiny::Strict,
        },
        modes_allowed: config.policy.modes_allowed.iter().map(|mode| mode_of(*mode)).collect(),
        audit_failure: match config.policy.audit_failure {
            AuditFailureName::Hold => conclave_engine::AuditFailure::Hold,
            AuditFailureName::DeliverAndAlert => conclave_engine::AuditFailure::DeliverAndAlert,
        },
        stream: match config.policy.stream {
            StreamName::Buffered => conclave_engine::StreamPolicy::Buffered,
            StreamName::Windowed => conclave_engine::StreamPolicy::Windowed,
        },
        sensitive_models: config.recipes.sensitive_models.clone(),
        staffed: config.reviews.staffed,
        public_url: config
            .server
            .public_url
            .as_deref()
            .map(|url| url.trim_end_matches('/').to_owned()),
        block_injection: config.policy.on_injection == OnInjection::Block,
        on_doubt: match config.policy.on_doubt {
            OnDoubtName::Flag => conclave_engine::OnDoubt::Flag,
            OnDoubtName::Block => conclave_engine::OnDoubt::Block,
        },
        unjudged: match config.policy.unjudged {
            UnjudgedName::Pass => conclave_engine::UnjudgedParts::Pass,
            UnjudgedName::Refuse => conclave_engine::UnjudgedParts::Refuse,
        },
        policy: digest(config)?,
        ..Settings::standard(pseudonym_key)
    })
}

const fn mode_of(name: ModeName) -> Mode {
    match name {
        ModeName::Normal => Mode::Normal,
        ModeName::Technical => Mode::Technical,
        ModeName::ChildSafe => Mode::ChildSafe,
        ModeName::Creative => Mode::Creative,
        ModeName::Debug => Mode::Debug,
    }
}

/// The digest that names a configuration in the ledger; secrets are only referred to in it.
///
/// # Errors
/// When the configuration cannot be written down, as with a path that is not UTF-8: a digest of
/// nothing would name every such configuration alike.
fn digest(config: &Config) -> anyhow::Result<[u8; 32]> {
    let written = serde_json::to_vec(config).context(
        "the configuration has no digest for the ledger: a value cannot be written down",
    )?;
    Ok(Sha256::digest(written).into())
}

/// The built-in verifiers, and those that are asked elsewhere.
fn panel(config: &Config, outside: Vec<Arc<dyn Verifier>>) -> anyhow::Result<Panel> {
    let judges = bare::judges(crate::commands::checker::judges()?);
    let seated = judges.into_iter().map(|judge| {
        let seat = judge.seat();
        let changed = config.verifiers.get(&*seat.verifier).map_or(seat.clone(), |change| Seat {
            weight: change.weight.unwrap_or(seat.weight),
            required: change.required.unwrap_or(seat.required),
            monitor: change.monitor.unwrap_or(seat.monitor),
            ..seat
        });
        Arc::new(BuiltIn::seated(judge, changed)) as Arc<dyn Verifier>
    });
    Ok(Panel::new(seated.chain(outside).collect()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::ffi::OsStr;
    use std::os::unix::ffi::OsStrExt;

    #[test]
    fn a_configuration_that_cannot_be_written_down_has_no_digest_instead_of_that_of_nothing() {
        let mut config = Config::default();
        let before = digest(&config).unwrap();
        config.policy.omit_own_fields = !config.policy.omit_own_fields;
        assert_ne!(digest(&config).unwrap(), before);
        config.server.data = OsStr::from_bytes(b"data-\xff").into();
        let error = format!("{:#}", digest(&config).unwrap_err());
        assert!(error.contains("UTF-8"), "{error}");
        assert!(stamp(&config).is_err(), "nothing is entered under it");
    }
}
