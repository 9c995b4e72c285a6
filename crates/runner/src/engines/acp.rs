//! Any agent that speaks the Agent Client Protocol on stdio: the command is the user's own.

use super::{EngineConfig, Error, Invocation, guard};
use crate::request::{Request, Resume, Stdin, Talk};

/// Session, model and mode are chosen by messages; there is nothing to add to the command.
pub(super) fn invocation(config: &EngineConfig, request: &Request) -> Result<Invocation, Error> {
    match (&request.resume, request.talk) {
        (_, Talk::OneShot) => Err(Error::Unable {
            engine: "acp",
            what: "run a prompt without being talked with",
            hint: "an ACP agent is always talked with",
        }),
        (Resume::Latest, Talk::Dialogue) => Err(Error::Unable {
            engine: "acp",
            what: "find the newest session",
            hint: "name the session with `--resume`",
        }),
        (Resume::Fresh, Talk::Dialogue) => Ok(talk(config)),
        (Resume::Session(id) | Resume::Fork(id), Talk::Dialogue) => {
            guard::id(id)?;
            Ok(talk(config))
        }
    }
}

fn talk(config: &EngineConfig) -> Invocation {
    let mut it = Invocation::new(Stdin::Open);
    it.extra(config);
    it
}
