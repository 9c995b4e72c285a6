//! `linkspan token`: the address of the page again, and tokens for others.

use std::time::SystemTime;

use serde_json::json;
use server::{Key, Keys, Role, RunningServer};

use super::serve::{keys, token_failed};
use crate::cli::TokenArgs;
use crate::exit::{self, Failure};
use crate::{relative_time, store, table};

/// The default address.
const USUAL: &str = "http://127.0.0.1:8787";

pub(crate) fn run(args: &TokenArgs) -> Result<(), Failure> {
    let folder = store::folder(&args.data)?;
    let mut keys = keys(&folder, args.token_file.as_deref())?;
    if let Some(id) = &args.revoke {
        keys.revoke(id).map_err(token_failed)?;
        exit::print_line(&format!("linkspan: revoked `{id}`\n"));
        return Ok(());
    }
    let servers = server::running(&folder);
    let is_running = !servers.is_empty();
    if !is_running {
        exit::print_line(
            "linkspan: no server is running on this data directory; `linkspan serve` starts one, and \
             then this address opens its page\n",
        );
    }
    let pages = pages(servers);
    let text = match args.role {
        Some(role) => make(&mut keys, role, &pages, args.json.then_some(is_running))?,
        None if args.json => lines(&keys, &pages, is_running),
        None => page(&keys, &pages),
    };
    exit::print(text.as_bytes())
}

/// Where the page is: each server of this directory that runs says so, the oldest first; else where one
/// would be.
fn pages(servers: Vec<RunningServer>) -> Vec<String> {
    match servers.is_empty() {
        true => vec![USUAL.to_owned()],
        false => servers.into_iter().map(|it| it.page).collect(),
    }
}

/// The addresses that open the pages.
fn addresses(pages: &[String], token: &str) -> Vec<String> {
    let pages = pages.iter();
    // In the fragment, which browsers do not send: no proxy can log it.
    pages.map(|it| format!("{it}/#token={token}")).collect()
}

/// `json` is whether a server is running, where JSON is wanted.
fn make(
    keys: &mut Keys,
    role: Role,
    pages: &[String],
    json: Option<bool>,
) -> Result<String, Failure> {
    let (key, secret) = keys.make(role).map_err(token_failed)?;
    let token = secret.reveal();
    let urls = addresses(pages, token);
    if let Some(is_running) = json {
        let line = json!({
            "id": key.id, "role": role.name(), "token": token, "url": urls[0], "urls": urls,
            "running": is_running,
        });
        return Ok(format!("{line}\n"));
    }
    let id = &key.id;
    // On stderr, so that a script gets the address alone.
    exit::print_line(&format!(
        "linkspan: this token is not shown again; `linkspan token --revoke {id}` takes it back\n"
    ));
    Ok(urls.iter().map(|it| format!("{it}\n")).collect())
}

fn lines(keys: &Keys, pages: &[String], is_running: bool) -> String {
    let token = keys.first().reveal();
    let urls = addresses(pages, token);
    let first = json!({
        "id": null, "role": "admin", "token": token, "url": urls[0], "urls": urls,
        "running": is_running,
    });
    let others = keys.list().iter();
    let others = others
        .map(|it| json!({ "id": it.id, "role": it.role.name(), "created_at": it.created_at }));
    exit::json_lines([first].into_iter().chain(others))
}

fn page(keys: &Keys, pages: &[String]) -> String {
    let urls = addresses(pages, keys.first().reveal());
    let page: String = urls.iter().map(|it| format!("{it}\n")).collect();
    if keys.list().is_empty() {
        return page;
    }
    let now = SystemTime::now().into();
    let row = |it: &Key| {
        [
            it.id.clone(),
            it.role.name().to_owned(),
            relative_time::ago(it.created_at, now),
        ]
    };
    let table = table::aligned(["token", "may", "made"], keys.list().iter().map(row));
    format!("{page}\n{table}")
}
