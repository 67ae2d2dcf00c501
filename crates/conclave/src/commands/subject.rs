//! `conclave subject`: what is kept of a person, and its erasure.

use super::Answer;
use super::data_directory::open_store;
use crate::cli::{SubjectArgs, SubjectCommand, SubjectEraseArgs, SubjectExportArgs};
use crate::output;
use anyhow::{Context, bail};
use conclave_core::{TenantId, UserId};
use conclave_people::export_page;
use conclave_store::Store;
use serde_json::json;
use std::fs::OpenOptions;
use std::io::Write;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

/// Runs the command.
///
/// # Errors
/// When the data directory cannot be used; while the gateway runs it says whom to ask instead.
pub fn run(command: &SubjectCommand, as_json: bool) -> anyhow::Result<Answer> {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    match command {
        SubjectCommand::Export(args) => runtime.block_on(export(args)),
        SubjectCommand::Erase(args) => runtime.block_on(erase(args, as_json)),
    }
}

/// A person, and the store in which something may be kept of them.
struct OpenedSubject {
    store: Store,
    tenant: TenantId,
    user: UserId,
}

fn open_subject(args: &SubjectArgs, method: &str) -> anyhow::Result<OpenedSubject> {
    let tenant = TenantId::new(args.tenant.as_str())?;
    let user = UserId::new(args.id.as_str())?;
    let instead = format!(
        "ask the gateway itself, with an owner key: curl -X {method} -H \"authorization: Bearer \
         $CONCLAVE_KEY\" http://ADDRESS/v1/subjects/{}",
        args.id
    );
    Ok(OpenedSubject { store: open_store(&args.open, &instead)?, tenant, user })
}

fn say_unknown(id: &str, as_json: bool) -> Answer {
    if as_json {
        output::json(&json!({"id": id, "known": false}));
    } else {
        output::line("nobody is known by this id: nothing was recorded, or it was erased already");
    }
    Answer::No
}

async fn export(args: &SubjectExportArgs) -> anyhow::Result<Answer> {
    let OpenedSubject { store, tenant, user } = open_subject(&args.subject, "GET")?;
    let subjects = store.subjects().find_all(&tenant, &user).await?;
    if subjects.is_empty() {
        return Ok(say_unknown(&args.subject.id, false));
    }
    let mut out = Out::open(args.output.as_deref())?;
    let archive = store.archive();
    let records = store.records();
    for subject in subjects {
        let mut before = None;
        loop {
            let page = export_page(&*archive, &*records, &tenant, subject, before).await?;
            page.decisions.iter().try_for_each(|decision| out.line(&decision.to_string()))?;
            before = page.before;
            if before.is_none() {
                break;
            }
        }
    }
    out.finish()?;
    Ok(Answer::Yes)
}

async fn erase(args: &SubjectEraseArgs, as_json: bool) -> anyhow::Result<Answer> {
    let OpenedSubject { store, tenant, user } = open_subject(&args.subject, "DELETE")?;
    if store.subjects().find(&tenant, &user).await?.is_none() {
        return Ok(say_unknown(&args.subject.id, as_json));
    }
    if !args.yes {
        bail!("nothing was erased: this cannot be undone; add --yes to do it");
    }
    let Some(receipt) = store.subjects().erase(&tenant, &user).await? else {
        return Ok(say_unknown(&args.subject.id, as_json));
    };
    if as_json {
        output::json(&receipt.to_json());
    } else {
        output::line(&format!(
            "erased: the words of {} decisions of {} are gone; entry {} says so, leaf hash {}",
            receipt.bodies,
            hex::encode(receipt.subject),
            receipt.entry,
            hex::encode(receipt.leaf_hash)
        ));
        output::note(
            "Copies made before open with nothing once the keys are replaced, within 7 days while the \
             gateway runs or now with `conclave keys rotate-epoch`. Backups you keep elsewhere with \
             their own root key are yours to delete.",
        );
    }
    Ok(Answer::Yes)
}

/// Where the export goes; a file is made for its owner only.
enum Out {
    Stdout,
    File(std::io::BufWriter<std::fs::File>),
}

impl Out {
    fn open(path: Option<&Path>) -> anyhow::Result<Self> {
        let Some(path) = path else { return Ok(Self::Stdout) };
        let made = OpenOptions::new().write(true).create_new(true).mode(0o600).open(path);
        let made = made.with_context(|| format!("cannot make {}", path.display()))?;
        Ok(Self::File(std::io::BufWriter::new(made)))
    }

    fn line(&mut self, text: &str) -> anyhow::Result<()> {
        match self {
            Self::Stdout => output::line(text),
            Self::File(file) => writeln!(file, "{text}")?,
        }
        Ok(())
    }

    fn finish(self) -> anyhow::Result<()> {
        if let Self::File(mut file) = self {
            file.flush()?;
            file.get_ref().sync_all()?;
        }
        Ok(())
    }
}
