//! The launch context of an agent: its format, its kind of interaction, and hints for failures.

use std::path::PathBuf;

use super::select::SelectedAgent;
use super::{Error, Found, Machine};
use crate::agent::{Backend, Limits, Setup};
use crate::dialogue::Dialogue;
use crate::locks::Locks;
use crate::permissions::MODES;
use crate::process::{Guard, NotFound};
use crate::request::{Interaction, Mode, Request, Resume};

/// What a start needs besides the request.
#[derive(Clone, Debug)]
pub struct LaunchContext {
    pub limits: Limits,
    pub guard: Guard,
    /// Where sessions are locked; none locks nothing.
    pub locks: Option<Locks>,
    /// A description of this holder for others that wait for the session.
    pub holder: String,
    /// Fail instead of waiting for a session that is in use.
    pub no_wait: bool,
}

impl SelectedAgent {
    /// Everything that [`crate::Agent::start`] has to know. `find` looks for the program, `machine` knows
    /// variables and files.
    pub fn setup(
        &self,
        request: &Request,
        around: LaunchContext,
        find: impl Fn(&str) -> Result<PathBuf, NotFound>,
        machine: Machine<'_>,
    ) -> Result<Setup, Error> {
        let mut launch = self.launch(request, find)?;
        let login = self.engine.login.as_ref();
        let key = login.map(|it| (it, it.choose(&self.config, machine)));
        if let Some((login, chosen)) = &key
            && chosen.is_withheld()
        {
            // The agent would prefer the key to its own login, and bill it.
            launch.env_remove.push(login.first_key().into());
        }
        let used = key.as_ref().and_then(|(_, chosen)| chosen.key());
        if let (Some(key), Some(use_key)) = (used, self.rules.use_key) {
            use_key(&mut launch, key, request.talk);
        }
        let name = self.engine.name;
        let guard = around.guard;
        let prompt = request.prompt.clone();
        let (in_use, expect) = match &request.resume {
            Resume::Session(id) => (Some(id.clone()), Some(id.clone())),
            // It is only read, but while an agent works in it there is nothing whole to read.
            Resume::Fork(id) => (Some(id.clone()), None),
            // Neither has an id yet; the lock is taken as soon as the agent reports one.
            Resume::Fresh | Resume::Latest => (None, None),
        };
        let backend = match request.talk {
            Interaction::OneShot => Backend::OneShot {
                launch,
                guard,
                prompt,
                echoes: self.engine.echoes,
            },
            Interaction::Dialogue => Backend::Dialogue {
                launch,
                guard,
                prompt: (!prompt.is_empty()).then(|| prompt.as_str().into()),
                dialogue: self.dialogue(request, used.and_then(|it| it.value.to_str())),
            },
        };
        let (engine, format) = (self.label().to_owned(), self.format(request.talk));
        Ok(Setup {
            expect,
            in_use,
            is_fork: matches!(request.resume, Resume::Fork(_)),
            is_latest: request.resume == Resume::Latest,
            locks: around.locks,
            holder: around.holder,
            no_wait: around.no_wait,
            login_hint: (key.as_ref()).and_then(|(login, chosen)| {
                let is_set = || match login.find(&self.config, machine) {
                    Some(Found::Variable(_)) => true,
                    Some(Found::Login) | None => false,
                };
                let hint = chosen.hint(name, login);
                hint.or_else(|| (!is_set()).then(|| login.hint()))
            }),
            notice: (key.as_ref())
                .and_then(|(login, chosen)| chosen.notice(name, self.engine.summary, login)),
            modes: self.modes(request),
            ..Setup::new(engine, format, backend, around.limits)
        })
    }

    /// What locks and events call it. An ACP agent is known by its command.
    fn label(&self) -> &str {
        match self.engine.argument {
            Some(_) => &self.name,
            None => self.engine.name,
        }
    }

    /// The format it speaks.
    fn format(&self, talk: Interaction) -> &'static str {
        let format = match talk {
            Interaction::OneShot => self.engine.one_shot,
            Interaction::Dialogue => self.engine.dialogue.as_ref().map(|it| it.format),
        };
        // Its rules have refused what it cannot do.
        format.unwrap_or(self.engine.name)
    }

    /// The machine that talks with it; `key` is the API key that it is to use.
    pub(super) fn dialogue(&self, request: &Request, key: Option<&str>) -> Box<dyn Dialogue> {
        let mut request = request.clone();
        request.options.model = request.options.model.or_else(|| self.config.model.clone());
        // Its rules have refused what cannot be talked with.
        let new = self.engine.dialogue.as_ref().map(|it| it.new);
        new.unwrap_or(super::ACP_DIALOGUE.new)(&request, &self.config, key)
    }

    /// The modes that this agent can be switched to: its tool rules are fixed at the start and must
    /// be the same in them.
    fn modes(&self, request: &Request) -> Vec<Mode> {
        let fixed = |mode: Mode| {
            let mut request = request.clone();
            request.permissions.mode = mode;
            // A mode whose rules cannot be made is none to switch to.
            (self.rules.fixed_rules)(&self.config, &request).ok()
        };
        let now = fixed(request.permissions.mode);
        let modes = MODES.iter().map(|it| it.mode);
        modes.filter(|it| fixed(*it) == now).collect()
    }
}
