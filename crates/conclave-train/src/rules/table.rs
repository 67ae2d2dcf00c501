//! The trial as a page of Markdown: counts, never a row.

use super::Trial;
use super::record::{LEAST_PRECISION, ORDINARY_PER_ALARM, RuleFault, RuleRecord};
use super::side::WRONG_LABELS;
use std::io::Write;

/// Writes the page.
///
/// # Errors
/// When `out` cannot be written.
pub fn write(out: &mut impl Write, trial: &Trial) -> anyhow::Result<()> {
    let hints = trial.records.iter().filter(|record| record.is_hint).count();
    let breaking = trial.records.iter().filter(|record| record.breaks_limits()).count();
    writeln!(
        out,
        "# Every rule on trial\n\n\
         How often each pattern rule fires, without a trained model, on the rows of training: those of the public sets and\n\
         of [our corpus](../corpus/README.md). `conclave-train rules` writes this page.\n\n\
         - **Ordinary** texts are the rows labelled safe of requests, texts, injections and crises: {} of them. Many are\n  \
           look-alikes, written to frighten, so that the rates are higher than in everyday talk. Left out: {} whose text\n  \
           plainly asks for what its label denies.\n\
         - **Harmful** texts are what a rule is about: for harm rules harmful requests and texts ({}), for crisis rules people\n  \
           who need help, for injection rules injections and jailbreaks. A rule that fires on another kind of harm has neither\n  \
           a hit nor an alarm, nor has one that fires where nobody labelled what it is about: a crisis rule on people who\n  \
           write about their troubles, a hate rule on a set labelled for sexism alone.\n\
         - **Precision** is the share of harmful texts it fires on, divided by that share and the share of ordinary texts\n  \
           together: what it would be if there were as many of the one as of the other.\n\
         - A rule that fires on ordinary text more than once in {ORDINARY_PER_ALARM}, or with a precision under {LEAST_PRECISION}, does not decide by\n  \
           itself: it is a **hint** (`hint = true` in its file). One or two alarms condemn no rule, unless it never fires\n  \
           on what it is about.\n\n\
         {} rules, {hints} of them hints; {breaking} that decide break the limits.\n",
        trial.texts.ordinary,
        WRONG_LABELS.len(),
        trial.texts.harmful,
        trial.records.len(),
    )?;
    writeln!(out, "| rule | ordinary | in {ORDINARY_PER_ALARM} | harmful | precision | |")?;
    writeln!(out, "|---|---:|---:|---:|---:|---|")?;
    let fires = |record: &&RuleRecord| record.precision.is_some();
    for record in trial.records.iter().filter(fires) {
        writeln!(
            out,
            "| {} | {} | {:.2} | {} | {:.2} | {} |",
            record.rule,
            record.alarms,
            record.alarms_per_5000,
            record.hits,
            record.precision.unwrap_or(1.0),
            remark(record),
        )?;
    }
    let silent: Vec<&str> =
        trial.records.iter().filter(|one| !fires(one)).map(|one| one.rule.as_str()).collect();
    writeln!(out, "\n{} rules fired on nothing: {}.", silent.len(), silent.join(", "))?;
    Ok(())
}

/// What a reader should know about a rule beside its figures.
fn remark(record: &RuleRecord) -> &'static str {
    match record.fault {
        _ if record.is_hint => "hint",
        Some(RuleFault::OnlyOrdinary) => "**never on harm**",
        Some(RuleFault::Imprecise) => "**imprecise**",
        Some(RuleFault::TooOften) => "**too often**",
        None => "",
    }
}
