//! `linkspan sessions`: lists the sessions in the journal, newest first, and removes old ones.

use std::path::Path;
use std::time::SystemTime;

use journal::{Owner, Removed, Session, SessionQuery};
use serde_json::json;

use crate::cli::SessionsArgs;
use crate::exit::{self, Code, Failure, chain, printable};
use crate::settings::Settings;
use crate::store::{self, OpenMode};
use crate::{relative_time, settings, table};

/// Characters of a title that are shown.
const MAX_TITLE: usize = 60;

pub(crate) fn run(args: &SessionsArgs) -> Result<(), Failure> {
    let folder = store::folder(&args.data)?;
    if args.prune {
        return prune(args, &folder);
    }
    // Ignoring the limits would look as if something was removed.
    let mut keep = args.keep.flags().into_iter();
    if let Some((_, flag, _)) = keep.find(|it| it.2.is_some()) {
        let words = format!("`{flag}` is for removing sessions");
        return Err(Failure::usage(words, "add `--prune`"));
    }
    if let Some(id) = &args.remove {
        return store::runtime()?.block_on(remove(&folder, id));
    }
    let sessions = match store::exists(&folder) {
        true => store::runtime()?.block_on(async {
            let journal = store::open(&folder, None, OpenMode::OrReadOnly).await?;
            let listing = journal.list(query(args), None, args.limit).await;
            listing.map(|it| it.sessions).map_err(store::failed)
        })?,
        false => Vec::new(),
    };
    if sessions.is_empty() {
        exit::print_line(match query(args) == SessionQuery::default() {
            true => {
                "linkspan: there are no sessions yet; `linkspan run` and `linkspan serve` start them\n"
            }
            false => "linkspan: no session matches; `linkspan sessions` lists all of them\n",
        });
        return Ok(());
    }
    let text = match args.json {
        true => sessions.iter().map(line).collect(),
        false => page(&sessions),
    };
    exit::print(text.as_bytes())
}

fn prune(args: &SessionsArgs, folder: &Path) -> Result<(), Failure> {
    let Settings { mut config, file } = settings::load(&args.file)?;
    settings::flags(&mut config, args.keep.flags())?;
    let retention = hub::retention(&config).ok_or_else(|| {
        let place = match &file {
            Some(it) => format!("the config, `{}`", printable(&it.path.to_string_lossy())),
            None => "the config".to_owned(),
        };
        let hint = format!(
            "give `--keep-days`, `--keep-sessions` or `--keep-bytes`, or set them in `[journal]` of {place}"
        );
        Failure::usage("no limits are configured", hint)
    })?;
    let removed = match store::exists(folder) {
        true => store::runtime()?.block_on(async {
            let journal = store::open(folder, None, OpenMode::OrReadOnly).await?;
            journal.retain(retention).await.map_err(store::failed)
        })?,
        false => Removed::default(),
    };
    let Removed { sessions, bytes } = removed;
    if args.json {
        let line = json!({ "sessions": sessions, "bytes": bytes });
        return exit::print(format!("{line}\n").as_bytes());
    }
    let words = match sessions {
        0 => "nothing is over the limits, nothing was removed".to_owned(),
        1 => format!("removed 1 session of {bytes} bytes"),
        n => format!("removed {n} sessions of {bytes} bytes"),
    };
    exit::print_line(&format!("linkspan: {words}\n"));
    Ok(())
}

async fn remove(folder: &Path, id: &str) -> Result<(), Failure> {
    let (journal, session) = store::open_session(folder, id).await?;
    let owner = Owner::new(hub::own_name());
    match hub::remove(&*journal, &session.id, &owner).await {
        Ok(()) => Ok(()),
        Err(err @ hub::Error::Busy(_)) => {
            let hint = match session.queued {
                0 => "stop its run, or wait for its end",
                _ => "it has prompts that wait: take them back, or let `linkspan serve` run them",
            };
            let hint = hint.to_owned();
            Err(Failure::new(Code::Busy, err.to_string()).hint(Some(hint)))
        }
        Err(err) => Err(Failure::new(Code::Io, chain(&err))),
    }
}

fn query(args: &SessionsArgs) -> SessionQuery {
    SessionQuery {
        home: None,
        engine: args.engine.clone(),
        text: args.text.clone().or_else(|| args.word.clone()),
        state: args.state,
    }
}

fn line(session: &Session) -> String {
    let line = json!({
        "id": session.id.as_str(),
        "engine": session.engine,
        "native": session.native.as_ref().map(|it| it.as_str()),
        "cwd": session.cwd,
        "title": session.title,
        "created_at": session.created_at,
        "active_at": session.active_at,
        "head": session.head,
        "bytes": session.bytes,
        "state": session.state.name(),
        "queue": session.queued,
        "parent": session.parent.as_ref().map(|it| json!({
            "session": it.session.as_str(),
            "seq": it.seq,
        })),
    });
    format!("{line}\n")
}

fn page(sessions: &[Session]) -> String {
    let now = SystemTime::now().into();
    let rows = sessions.iter().map(|it| {
        let title = it.title.as_deref().unwrap_or_default();
        let mut title: String = printable(title).chars().take(MAX_TITLE).collect();
        if let Some(parent) = &it.parent {
            title = format!("{title} (fork of {})", printable(parent.session.as_str()));
        }
        [
            printable(it.id.as_str()),
            printable(&it.engine),
            it.state.name().to_owned(),
            relative_time::ago(it.active_at, now),
            title,
        ]
    });
    let heading = ["session", "engine", "state", "last active", "title"];
    table::aligned(heading, rows)
}
