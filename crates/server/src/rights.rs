//! Which role a prompt needs, by what it asks for.
//!
//! This is an allow-list. A field, a permission mode or a kind of engine that is not known to be
//! harmless needs `approve` or `admin`: nothing here has a wildcard arm or skips a field, so that a
//! new one needs a decision. A default answer of yes is an approval in advance, too.
//!
//! What the config says is the operator's decision; what a prompt chooses for itself never exceeds the role
//! of its token.

use std::time::Duration;

use hub::Submit;
use runner::config::{Config, Setting, Value};
use runner::engines::{Recording, Selected, select};
use runner::{AskDefault, Mode, RunOptions};

use crate::error::{ApiError, Result};
use crate::state::App;
use crate::tokens::{Caller, Role};

/// The role that something needs, and what it is needed for.
#[derive(Clone, Debug, PartialEq, Eq)]
struct RequiredRole {
    role: Role,
    what: String,
}

/// Refuses a prompt that asks for more than the caller's role may cause.
pub(crate) fn check_submit(app: &App, caller: &Caller, submit: &Submit) -> Result<()> {
    refuse_above(caller, needs(submit, app.engines.settings()))
}

/// Refuses an engine that the caller may not name, wherever it is named.
pub(crate) fn check_engine(app: &App, caller: &Caller, engine: &str) -> Result<()> {
    refuse_above(caller, engine_need(engine, app.engines.settings()))
}

fn refuse_above(caller: &Caller, needs: impl IntoIterator<Item = RequiredRole>) -> Result<()> {
    let missing = needs.into_iter().filter(|it| caller.role < it.role);
    // The highest one, so that one error names all that is needed; of several the first.
    let highest = missing.reduce(|a, b| if b.role > a.role { b } else { a });
    match highest {
        None => Ok(()),
        Some(RequiredRole { role, what }) => Err(too_low(caller, role, &what)),
    }
}

/// The error for an insufficient role. `what` names what the higher one is needed for.
pub(crate) fn too_low(caller: &Caller, needed: Role, what: &str) -> ApiError {
    let (own, needed) = (caller.role.name(), needed.name());
    ApiError::forbidden(format!("a token for `{needed}` is needed {what}")).hint(format!(
        "this token is for `{own}`; `linkspan token --role {needed}` makes one that may"
    ))
}

/// Everything in a prompt that needs more than `prompt`.
fn needs(submit: &Submit, settings: &Config) -> impl Iterator<Item = RequiredRole> {
    let Submit {
        // The prompt and its session: the role `prompt` covers every session.
        prompt: _,
        target: _,
        engine,
        // Where it works is checked by `roots`.
        cwd: _,
        options,
        // What AG-UI clients call their run, and the conversation for a model without tools of its own.
        client: _,
        thread: _,
    } = submit;
    let RunOptions {
        // Which model answers, how hard it thinks, and how it writes.
        model: _,
        effort: _,
        output_style: _,
        verbosity: _,
        permissions,
        allow,
        // Takes rights away.
        deny: _,
        // Of a recording.
        speed: _,
        ask_timeout,
        ask_default,
    } = options;
    let has_list = allow.as_ref().is_some_and(|it| !it.is_empty());
    let mode = permissions.and_then(|it| mode_need(it, has_list));
    let list = has_list.then(|| RequiredRole {
        role: Role::Approve,
        what: "to allow tools beforehand (`allow`)".to_owned(),
    });
    let engine = engine.as_deref().and_then(|it| engine_need(it, settings));
    let deadline = deadline_need(*ask_timeout, *ask_default, settings);
    [list, mode, deadline, engine].into_iter().flatten()
}

/// A timeout with the default `allow` is an approval.
fn deadline_need(
    timeout: Option<Duration>,
    default: Option<AskDefault>,
    settings: &Config,
) -> Option<RequiredRole> {
    let allows = |it: &Setting| {
        it.key.ends_with("ask_default") && it.value == Value::Text("allow".to_owned())
    };
    let is_yes = match default {
        Some(AskDefault::Allow) => true,
        Some(AskDefault::Deny) => false,
        // A timeout alone puts the config's default into force, whichever engine's that is.
        None => timeout.is_some() && settings.settings().iter().any(allows),
    };
    is_yes.then(|| RequiredRole {
        role: Role::Approve,
        what: "for an `askDefault` of `allow`, which lets tools run that nobody has answered for"
            .to_owned(),
    })
}

/// The lowest role that may name this mode, without a list of tools.
pub(crate) fn mode_role(mode: Mode) -> Role {
    mode_need(mode, false).map_or(Role::Prompt, |it| it.role)
}

/// What the table of modes says.
fn mode_need(mode: Mode, has_list: bool) -> Option<RequiredRole> {
    let name = mode.name();
    mode.needs_approval(has_list).then(|| RequiredRole {
        role: Role::Approve,
        what: format!("for `permissions` of `{name}`, which lets tools run unasked"),
    })
}

/// Naming a command line or a local file is reserved for the operator; engines of the config and
/// built-in ones are open to all.
fn engine_need(name: &str, settings: &Config) -> Option<RequiredRole> {
    let is_listed = match select(name, settings) {
        // The config alone names endpoints.
        Ok(Selected::Responses(_)) => true,
        Ok(Selected::Replay(Recording::Bundled(_))) => true,
        Ok(Selected::Replay(Recording::File(_))) => false,
        Ok(Selected::Agent(agent)) => {
            let value = name.split_once(':').map(|it| it.1);
            agent.engine.argument.is_none() || value.is_some_and(|it| settings.acp(it).is_some())
        }
        // Nothing starts: the hub reports the error.
        Err(_) => true,
    };
    (!is_listed).then(|| RequiredRole {
        role: Role::Admin,
        what: "to name a command or a file as the engine".to_owned(),
    })
}
