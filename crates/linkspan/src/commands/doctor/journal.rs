//! The journal: its structure, the checksums of its rows, what its witness remembers, and its repair.

use std::path::Path;

use journal::{Damage, DamagedRow, Fault, LostSession, Report, Sqlite};

use super::Finding;
use super::folder::{OthersAccess, others, size};
use crate::exit::{Code, Failure, chain};
use crate::store::{self, OpenMode};

const ABOUT: &str = "journal";
const REPAIR: &str = "`linkspan doctor --repair` rescues what is whole";
/// Losses that are named one by one.
const MAX_NAMED: usize = 50;

pub(super) fn check(folder: &Path, findings: &mut Vec<Finding>) {
    let path = store::file(folder);
    if !path.exists() {
        let has_witness = Sqlite::witness(&path).exists();
        findings.push(match has_witness {
            false => Finding::ok(ABOUT, "no session was ever kept here"),
            true => Finding::problem(
                ABOUT,
                "the journal is not there, and its witness is: it was deleted or moved away",
            )
            .hint("put it back, or remove the witness"),
        });
        return;
    }
    match Sqlite::examine(&path) {
        Ok(report) => finding_text(&path, &report, findings),
        Err(fault) => findings.push(unusable(&path, &fault)),
    }
}

fn unusable(path: &Path, fault: &Fault) -> Finding {
    let text = format!("`{}` cannot be read: {}", path.display(), chain(fault));
    let finding = Finding::problem(ABOUT, text);
    match fault {
        Fault::Corrupt(_) => finding.hint(
            "nothing of it can be rescued here; move it away to begin anew, and use a backup",
        ),
        Fault::Newer { .. } => finding.hint("use the newer linkspan"),
        Fault::Full
        | Fault::ReadOnly
        | Fault::Busy
        | Fault::Lost
        | Fault::InUse
        | Fault::Gone(_)
        | Fault::Closed
        | Fault::Io(_)
        | Fault::Database(_) => finding,
    }
}

fn finding_text(path: &Path, report: &Report, findings: &mut Vec<Finding>) {
    let place = path.display();
    let sizes = match report.wal_bytes {
        0 => size(report.bytes),
        wal => format!("{} and {} of changes", size(report.bytes), size(wal)),
    };
    if report.version > report.known {
        let text = format!(
            "`{place}` was written by a later version ({}, this program knows {})",
            report.version, report.known
        );
        findings.push(Finding::problem(ABOUT, text).hint("use the newer linkspan"));
        return;
    }
    match (others(path), report.version) {
        (OthersAccess::Nothing, version) if version == report.known => findings.push(Finding::ok(
            ABOUT,
            format!(
                "`{place}`: {} sessions, {} events, {sizes}",
                report.sessions, report.events
            ),
        )),
        (OthersAccess::Nothing, _) => findings.push(Finding::ok(
            ABOUT,
            format!("`{place}`, {sizes}, is of an earlier version; the next use upgrades it"),
        )),
        (OthersAccess::Read | OthersAccess::Write, _) => findings.push(
            Finding::problem(ABOUT, format!("others can read `{place}`"))
                .hint("`chmod 600` it; the next use does so too"),
        ),
    }
    for words in &report.structure {
        findings.push(Finding::problem(ABOUT, format!("its structure: {words}")).hint(REPAIR));
    }
    for line in rows(&report.damaged) {
        findings.push(Finding::problem(ABOUT, line).hint(REPAIR));
    }
    // The rows of an earlier version have no checksums yet.
    if report.is_whole() && report.version == report.known {
        findings.push(Finding::ok(
            ABOUT,
            "its structure is whole and every checksum fits",
        ));
    }
    match &report.missing {
        None => (),
        Some(missing) if missing.is_empty() => findings.push(Finding::ok(
            ABOUT,
            "its witness misses nothing that was acknowledged",
        )),
        Some(missing) => {
            for lost in missing.iter().take(MAX_NAMED) {
                findings.push(Finding::problem(ABOUT, missed(lost)));
            }
        }
    }
    let lost = report.open_runs.iter().filter(|it| hub::is_lost(it));
    for open in lost.take(MAX_NAMED) {
        let text = format!(
            "a program died during the run of session `{}`, which is still open",
            open.run.session
        );
        findings.push(Finding::warn(ABOUT, text).hint(
            "`linkspan doctor --repair` closes it as lost, and so does whatever opens the journal next",
        ));
    }
    for copy in &report.aside {
        findings.push(
            Finding::warn(ABOUT, format!("`{}` was put aside", copy.display()))
                .hint("remove it, with what begins like it, when nothing in it is wanted"),
        );
    }
}

fn missed(lost: &LostSession) -> String {
    let id = &lost.id;
    match lost.head {
        None => format!(
            "session `{id}` was acknowledged with {} events and is not there",
            lost.acknowledged
        ),
        Some(head) if head < lost.acknowledged => format!(
            "events {} to {} of session `{id}` were acknowledged and are not there",
            head + 1,
            lost.acknowledged
        ),
        Some(_) => format!(
            "{} prompts or answers to session `{id}` were acknowledged and are not there",
            lost.commands
        ),
    }
}

/// Damaged rows in words; events of a session that follow each other are one line.
fn rows(damaged: &[DamagedRow]) -> Vec<String> {
    let mut lines = Vec::new();
    let mut rest = damaged;
    while let Some((first, more)) = rest.split_first() {
        let mut last = first.row;
        let n_more = more
            .iter()
            .take_while(|it| {
                let follows = it.session == first.session && is_next(last, it.row);
                last = if follows { it.row } else { last };
                follows
            })
            .count();
        lines.push(match (first.row, last) {
            (Damage::Event(from), Damage::Event(to)) if from < to => format!(
                "events {from} to {to} of session `{}` are damaged",
                first.session
            ),
            (row, _) => format!("{row} of session `{}` is damaged", first.session),
        });
        rest = &more[n_more..];
        if lines.len() >= MAX_NAMED && !rest.is_empty() {
            lines.push(format!("{} more rows are damaged", rest.len()));
            break;
        }
    }
    lines
}

fn is_next(row: Damage, next: Damage) -> bool {
    matches!((row, next), (Damage::Event(one), Damage::Event(two)) if two == one + 1)
}

/// Rescues what is whole, if something is not.
pub(super) fn repair(folder: &Path) -> Result<Vec<Finding>, Failure> {
    let path = store::file(folder);
    if !path.exists() {
        return Err(Failure::usage(
            format!("there is no journal in `{}`", folder.display()),
            "name its directory with `--data-dir`",
        ));
    }
    let failed = |fault: Fault| {
        let hint = match &fault {
            Fault::InUse => {
                "stop the programs that use it, such as `linkspan serve`, and try again"
            }
            _ => "move the file away to begin anew, and use a backup",
        };
        let message = format!("cannot repair `{}`: {}", path.display(), chain(&fault));
        Failure::new(Code::Io, message).hint(Some(hint.to_owned()))
    };
    let mut report = Sqlite::examine(&path).map_err(failed)?;
    if report.version < report.known {
        // Opening it gives its rows the checksums that a repair goes by.
        let opened = store::open_as_found(folder, None, OpenMode::ReadWrite);
        store::runtime()?.block_on(opened).map(drop)?;
        report = Sqlite::examine(&path).map_err(failed)?;
    }
    if report.is_whole() {
        let mut findings = close_lost_runs(folder, &report)?;
        let text = match findings.is_empty() {
            true => format!("`{}` is whole; nothing was changed", path.display()),
            false => format!("`{}` is whole", path.display()),
        };
        findings.insert(0, Finding::ok(ABOUT, text));
        return Ok(findings);
    }
    let repaired = Sqlite::repair(&path).map_err(failed)?;
    let text = format!(
        "{} sessions with {} events were rescued into a new journal",
        repaired.sessions, repaired.events
    );
    let mut findings = vec![Finding::ok(ABOUT, text)];
    let lost = rows(&repaired.lost).into_iter();
    findings.extend(lost.map(|it| Finding::warn(ABOUT, format!("lost: {it}"))));
    if let Some(kept) = repaired.kept.first() {
        let text = format!("the old journal is kept as `{}`", kept.display());
        findings.push(Finding::ok(ABOUT, text));
    }
    findings.extend(close_lost_runs(folder, &report)?);
    Ok(findings)
}

/// Closes the runs that dead programs have left open.
fn close_lost_runs(folder: &Path, report: &Report) -> Result<Vec<Finding>, Failure> {
    if !report.open_runs.iter().any(hub::is_lost) {
        return Ok(Vec::new());
    }
    let closed = store::runtime()?.block_on(async {
        let journal = store::open_as_found(folder, None, OpenMode::ReadWrite).await?;
        let closed = hub::close_lost_runs(&*journal).await;
        closed.map_err(store::failed)
    })?;
    let found = closed.iter().map(|it| {
        let text = format!("the run of session `{it}`, whose program died, was closed as lost");
        Finding::ok(ABOUT, text)
    });
    Ok(found.collect())
}

#[cfg(test)]
mod tests {
    use model::SessionId;

    use super::*;

    #[test]
    fn events_that_follow_each_other_are_one_line() {
        let row = |session: &str, row| DamagedRow {
            session: SessionId::new(session.to_owned()),
            row,
        };
        let damaged = [
            row("a", Damage::Entry),
            row("a", Damage::Event(3)),
            row("a", Damage::Event(4)),
            row("a", Damage::Event(5)),
            row("a", Damage::Event(7)),
            row("b", Damage::Event(8)),
            row("b", Damage::Command(9)),
        ];
        assert_eq!(
            rows(&damaged),
            [
                "the entry of session `a` is damaged",
                "events 3 to 5 of session `a` are damaged",
                "event 7 of session `a` is damaged",
                "event 8 of session `b` is damaged",
                "command 9 of session `b` is damaged",
            ]
        );
    }
}
