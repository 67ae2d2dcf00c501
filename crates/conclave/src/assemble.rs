//! Wiring: configuration in, engine out.

use crate::config::{
    AuditFailure, Config, ModeName, OfferedModel, OnInjection, OnInputBlock, Provider,
    ProviderKind, ScrutinyName,
};
use anyhow::{Context, anyhow};
use conclave_core::{MicroUsd, Mode, Scrutiny, Seat, TenantId, UserId};
use conclave_engine::{
    Archive, BuiltIn, Clock, Engine, Entropy, Governed, Ledger, Memory, Panel, Settings, Subjects,
    Verifier, Workshop,
};
use conclave_gateway::{GatewayLimits, Manners};
use conclave_instinct::{Instinct, PinnedKey};
use conclave_models::{Builtin, Entry, Models, OpenAiCompatible, ProviderConfig};
use conclave_store::{RetentionRules, RootKey, Stamp, TenantRetention};
use sha2::{Digest, Sha256};
use std::collections::BTreeMap;
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
    /// Names people.
    pub subjects: Arc<dyn Subjects>,
    /// Time.
    pub clock: Arc<dyn Clock>,
    /// Chance.
    pub entropy: Arc<dyn Entropy>,
    /// Keys the pseudonyms in the ledger.
    pub pseudonym_key: [u8; 32],
    /// Who keeps consent, culture, money and records.
    pub governed: Governed,
}

/// Builds the engine a configuration describes.
///
/// It is built in a thread of its own: compiling the data files leaves tens of megabytes of scraps in
/// the thread's heap, which the allocator can only hand on once that thread has ended.
///
/// # Errors
/// When a secret cannot be had, a provider's address is refused, or data files are broken.
pub fn engine(config: &Config, ground: &Ground) -> anyhow::Result<Engine> {
    std::thread::scope(|scope| {
        let built = scope.spawn(|| build(config, ground)).join();
        built.unwrap_or_else(|_| Err(anyhow!("building the engine panicked")))
    })
}

fn build(config: &Config, ground: &Ground) -> anyhow::Result<Engine> {
    let instinct = instinct(config)?;
    let settings =
        Settings { directives: instinct.digest(), ..settings(config, ground.pseudonym_key) };
    Ok(Engine {
        instinct: Arc::new(instinct),
        detector: Arc::new(crate::commands::checker::detector(config.detection.second_tier)?),
        field: Arc::new(conclave_voice::Field::builtin().context("field files")?),
        voices: Arc::new(conclave_voice::Voices::builtin().context("persona files")?),
        resources: Arc::new(conclave_voice::Resources::builtin().context("resource files")?),
        models: Arc::new(models(config)?),
        panel: panel(config)?,
        verdicts: Arc::default(),
        ledger: ground.ledger.clone(),
        archive: ground.archive.clone(),
        memory: ground.memory.clone(),
        subjects: ground.subjects.clone(),
        clock: ground.clock.clone(),
        entropy: ground.entropy.clone(),
        settings: Arc::new(settings),
        governed: ground.governed.clone(),
        workshop: Arc::new(workshop(config)?),
    })
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
/// When the directives cannot be read.
pub fn stamp(config: &Config) -> anyhow::Result<Stamp> {
    Ok(Stamp {
        policy: digest(config),
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

/// How long words are kept. Names were checked when the file was read.
#[must_use]
pub fn retention(config: &Config) -> RetentionRules {
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
pub fn manners(config: &Config) -> Manners {
    Manners {
        reply_on_input_block: config.policy.on_input_block == OnInputBlock::Reply,
        omit_own_fields: config.policy.omit_own_fields,
    }
}

/// What the gateway takes on.
#[must_use]
pub fn limits(config: &Config) -> GatewayLimits {
    GatewayLimits {
        body_bytes_max: config.limits.body_bytes_max,
        turns_max: config.limits.turns_max,
        connections_max: config.limits.connections_max,
        drain_timeout: Duration::from_millis(config.limits.drain_timeout_ms),
        ..GatewayLimits::default()
    }
}

fn settings(config: &Config, pseudonym_key: [u8; 32]) -> Settings {
    let rules = &config.deliberation;
    Settings {
        attempts_max: rules.attempts_max,
        turn_deadline: Duration::from_millis(rules.turn_deadline_ms),
        crisis_deadline: Duration::from_millis(rules.crisis_deadline_ms),
        panel_deadline: Duration::from_millis(rules.panel_deadline_ms),
        scrutiny_min: match rules.scrutiny_min {
            ScrutinyName::Normal => Scrutiny::Normal,
            ScrutinyName::Raised => Scrutiny::Raised,
            ScrutinyName::Strict => Scrutiny::Strict,
        },
        modes_allowed: config.policy.modes_allowed.iter().map(|mode| mode_of(*mode)).collect(),
        audit_failure: match config.policy.audit_failure {
            AuditFailure::Hold => conclave_engine::AuditFailure::Hold,
            AuditFailure::DeliverAndAlert => conclave_engine::AuditFailure::DeliverAndAlert,
        },
        block_injection: config.policy.on_injection == OnInjection::Block,
        policy: digest(config),
        ..Settings::standard(pseudonym_key)
    }
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
#[must_use]
pub fn digest(config: &Config) -> [u8; 32] {
    Sha256::digest(serde_json::to_vec(config).unwrap_or_default()).into()
}

fn panel(config: &Config) -> anyhow::Result<Panel> {
    let judges = conclave_verifiers::builtin().context("verifier files")?;
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
    Ok(Panel::new(seated.collect()))
}

fn models(config: &Config) -> anyhow::Result<Models> {
    let providers: BTreeMap<_, _> =
        config.providers.iter().map(|provider| (provider.name.as_str(), provider)).collect();
    let mut entries = vec![builtin()?];
    for model in &config.models {
        let provider = providers
            .get(model.provider.as_str())
            .ok_or_else(|| anyhow!("there is no provider `{}`", model.provider))?;
        entries.push(offered(model, provider)?);
    }
    Ok(Models::new(entries)?)
}

fn builtin() -> anyhow::Result<Entry> {
    Ok(Entry {
        name: Builtin::NAME.into(),
        upstream: Builtin::NAME.into(),
        model: Arc::new(Builtin::new().context("responder files")?),
        provider: "conclave".into(),
        input_price: MicroUsd(0),
        output_price: MicroUsd(0),
    })
}

fn offered(model: &OfferedModel, provider: &Provider) -> anyhow::Result<Entry> {
    let ProviderKind::Openai = provider.kind;
    let api_key = match &provider.api_key {
        Some(reference) => Some(
            reference
                .resolve()
                .map_err(|why| anyhow!("the key of provider `{}`: {why}", provider.name))?,
        ),
        None => None,
    };
    let upstream = model.upstream_model.clone().unwrap_or_else(|| model.name.clone());
    let settings = ProviderConfig {
        api_key: api_key.map(Into::into),
        upstream_model: Some(upstream.clone()),
        allow_private: provider.allow_private,
        response_bytes_max: provider.reply_bytes_max,
        ..ProviderConfig::new(&provider.name, &provider.base_url)
    };
    Ok(Entry {
        name: model.name.clone(),
        upstream,
        model: Arc::new(OpenAiCompatible::new(settings)?),
        provider: provider.name.as_str().into(),
        input_price: price(model.input_usd_per_million),
        output_price: price(model.output_usd_per_million),
    })
}

/// Dollars to millionths; the range was checked when the file was read.
fn price(dollars: f64) -> MicroUsd {
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "0 to 1e12")]
    let micro = (dollars * 1e6).round() as u64;
    MicroUsd(micro)
}
