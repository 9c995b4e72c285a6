//! Any agent that speaks the Agent Client Protocol on stdio: the command is the user's own.

use super::{AgentRules, EngineConfig, Error, Invocation, arguments};
use crate::request::{Interaction, Permissions, Request, Resume, Stdin};

/// What `listed` allows: the kinds of tools that ACP has.
const ALLOWED_TOOLS: &[&str] = &["shell", "read", "edit", "write"];

pub(super) const RULES: AgentRules = AgentRules::new(invocation, ALLOWED_TOOLS);

/// Session, model and mode are chosen by messages; there is nothing to add to the command.
fn invocation(config: &EngineConfig, request: &Request) -> Result<Invocation, Error> {
    lists(&request.permissions)?;
    match (&request.resume, request.talk) {
        (_, Interaction::OneShot) => Err(Error::Unable {
            engine: "acp",
            what: "run a prompt without being talked with",
            hint: "an ACP agent is always talked with",
        }),
        (Resume::Latest, Interaction::Dialogue) => Err(Error::Unable {
            engine: "acp",
            what: "find the newest session",
            hint: "name the session with `--resume`",
        }),
        (Resume::Fresh, Interaction::Dialogue) => Ok(talk(config)),
        (Resume::Session(id) | Resume::Fork(id), Interaction::Dialogue) => {
            arguments::id(id)?;
            Ok(talk(config))
        }
    }
}

/// What the agent asks for can be answered by its name. What it does without asking cannot be denied.
fn lists(permissions: &Permissions) -> Result<(), Error> {
    arguments::whole_tools(permissions.allow.as_deref().unwrap_or_default())?;
    if permissions.deny.is_empty() {
        return Ok(());
    }
    Err(Error::Unable {
        engine: "acp",
        what: "deny single tools",
        hint: "choose what it may do with `--permissions`, or in the agent's own settings",
    })
}

fn talk(config: &EngineConfig) -> Invocation {
    let mut it = Invocation::new(Stdin::Open);
    it.extra(config);
    it
}
