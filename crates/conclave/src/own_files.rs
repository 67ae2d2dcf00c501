//! The detector and the voices with files of one's own.
//!
//! **Invariant:** a file that cannot be read or used stops the start or the reload; it is never left out.

use crate::commands::checker;
use crate::config::{Config, PersonaFiles};
use anyhow::{Context, bail};
use conclave_classify::Ensemble;
use conclave_core::TenantId;
use conclave_detect::Detector;
use conclave_engine::PerTenant;
use conclave_voice::{Language, Resources, Voices};
use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Larger files of one's own are refused.
const FILE_BYTES_MAX: u64 = 1 << 20;

/// A detector for everybody, and one for each tenant with pattern files of its own. All share the trained models.
///
/// # Errors
/// When a pattern file cannot be read or used; the error names it.
pub fn detectors(config: &Config) -> anyhow::Result<PerTenant<Detector>> {
    let trained = Arc::new(checker::classifier(config.detection.second_tier)?);
    let shared = read_all(&config.detection.pattern_files)
        .and_then(|files| detector(&files, &trained))
        .context("detection.pattern_files")?;
    let mut detectors = PerTenant::shared(shared);
    for (name, tenant) in &config.tenants {
        if !tenant.pattern_files.is_empty() {
            let paths = [config.detection.pattern_files.as_slice(), &tenant.pattern_files].concat();
            let own = read_all(&paths)
                .and_then(|files| detector(&files, &trained))
                .with_context(|| format!("tenants.{name}.pattern_files"))?;
            detectors = detectors.with(TenantId::new(name.as_str())?, own);
        }
    }
    Ok(detectors)
}

/// The voices for everybody, and those of each tenant with persona files of its own.
///
/// # Errors
/// When a persona file cannot be read or used; the error names it.
pub fn voices(config: &Config, resources: &Resources) -> anyhow::Result<PerTenant<Voices>> {
    let builtin = Voices::naming(resources.clone()).context("built-in persona files")?;
    let shared = worded(builtin, &config.personas).context("personas")?;
    let mut voices = PerTenant::shared(shared.clone());
    for (name, tenant) in &config.tenants {
        if !tenant.personas.is_default() {
            let own = worded(shared.clone(), &tenant.personas)
                .with_context(|| format!("tenants.{name}.personas"))?;
            voices = voices.with(TenantId::new(name.as_str())?, own);
        }
    }
    Ok(voices)
}

/// The built-in patterns with these files beside them, and these trained models.
///
/// # Errors
/// When a file cannot be used.
fn detector(files: &[OwnFile], trained: &Arc<Ensemble>) -> anyhow::Result<Detector> {
    let texts: Vec<_> = files.iter().map(|file| (file.name.as_str(), file.text.as_str())).collect();
    Ok(Detector::with_own_files(&texts)?.with_classifier(trained.clone()))
}

/// The same for a command that reads texts.
///
/// # Errors
/// When a file cannot be read or used.
pub fn detector_of(paths: &[PathBuf], trained: &Arc<Ensemble>) -> anyhow::Result<Detector> {
    detector(&read_all(paths)?, trained)
}

fn worded(mut voices: Voices, files: &PersonaFiles) -> anyhow::Result<Voices> {
    let scripts = [(Language::English, &files.english), (Language::Japanese, &files.japanese)];
    for (language, path) in scripts {
        if let Some(path) = path {
            let OwnFile { name, text } = read(path)?;
            voices = voices.with_script(language, &name, &text)?;
        }
    }
    if let Some(path) = &files.vectors {
        let OwnFile { name, text } = read(path)?;
        voices = voices.with_vectors(&name, &text)?;
    }
    Ok(voices)
}

struct OwnFile {
    name: String,
    text: String,
}

fn read_all(paths: &[PathBuf]) -> anyhow::Result<Vec<OwnFile>> {
    paths.iter().map(|path| read(path)).collect()
}

fn read(path: &Path) -> anyhow::Result<OwnFile> {
    let name = path.display().to_string();
    let file = std::fs::File::open(path).with_context(|| name.clone())?;
    let mut text = String::new();
    file.take(FILE_BYTES_MAX + 1).read_to_string(&mut text).with_context(|| name.clone())?;
    if text.len() as u64 > FILE_BYTES_MAX {
        bail!("{name} is larger than {FILE_BYTES_MAX} bytes");
    }
    Ok(OwnFile { name, text })
}

#[cfg(test)]
mod tests {
    use super::*;
    use conclave_core::{Mode, Persona};
    use conclave_voice::{Situation, Speech};

    const RULE: &str = "language = \"en\"\ncategory = \"fraud\"\n[concept.own_ticket]\nwords = [\"golden ticket\"]\n\
                        [[rule]]\nid = \"golden-ticket\"\nclass = \"high\"\nany = [\"own_ticket\"]\n";

    fn config(text: &str) -> Config {
        toml::from_str(text).unwrap()
    }

    #[test]
    fn a_tenants_patterns_hold_for_that_tenant_alone() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("acme.toml");
        std::fs::write(&path, RULE).unwrap();
        // The models have never heard of it, and do not make the rule count for less.
        let text = format!("[tenants.acme]\npattern_files = [{path:?}]\n");
        let detectors = detectors(&config(&text)).unwrap();
        let harm = |tenant: &str| {
            let tenant = TenantId::new(tenant).unwrap();
            detectors.of(&tenant).read("Print me a golden ticket.", Mode::Normal).harm
        };
        assert!(harm("acme").hundredths() >= 60 && harm("other").hundredths() < 30);
        let everybody = format!(
            "[detection]\nsecond_tier = \"never\"\npattern_files = [{path:?}]\n[tenants.acme]\n"
        );
        let detectors = super::detectors(&config(&everybody)).unwrap();
        let other = TenantId::new("other").unwrap();
        let reading = detectors.of(&other).read("Print me a golden ticket.", Mode::Normal);
        assert!(reading.is_harmful());
    }

    #[test]
    fn a_tenants_words_are_its_own_and_still_name_help() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("vectors.toml");
        let same = "{ formality = 0.9, empathy = 0.1, verbosity = 0.1 }";
        let names = Persona::ALL.map(Persona::as_str);
        let vectors: String = names.iter().map(|name| format!("{name} = {same}\n")).collect();
        std::fs::write(&path, vectors).unwrap();
        let text = format!("[tenants.acme.personas]\nvectors = {path:?}\n");
        let voices = voices(&config(&text), &Resources::builtin().unwrap()).unwrap();
        let say = |tenant: &str| {
            let speech = Speech {
                situation: Situation::SafeCompletion,
                persona: Persona::Friend,
                language: "en",
                category: None,
                staffed: false,
                country: Some("US"),
                in_crisis: true,
            };
            voices.of(&TenantId::new(tenant).unwrap()).say(&speech)
        };
        assert_ne!(say("acme"), say("other"));
        assert!(say("acme").contains("988"), "{}", say("acme"));
    }

    #[test]
    fn a_file_that_cannot_be_used_is_named() {
        let folder = tempfile::tempdir().unwrap();
        let broken = folder.path().join("broken.toml");
        std::fs::write(&broken, "language = 3").unwrap();
        for (text, part) in [
            (format!("[detection]\npattern_files = [{broken:?}]"), "detection.pattern_files"),
            (format!("[tenants.acme]\npattern_files = [{broken:?}]"), "tenants.acme.pattern_files"),
            ("[tenants.acme]\npattern_files = [\"/nowhere.toml\"]".to_owned(), "/nowhere.toml"),
        ] {
            let error = format!("{:#}", detectors(&config(&text)).err().unwrap());
            assert!(error.contains(part), "{error}");
        }
        let resources = Resources::builtin().unwrap();
        for kind in ["english", "japanese", "vectors"] {
            let text = format!("[personas]\n{kind} = {broken:?}");
            let error = format!("{:#}", voices(&config(&text), &resources).err().unwrap());
            assert!(error.contains("personas") && error.contains("broken.toml"), "{error}");
        }
    }
}
