//! The session's config options: mode, model, reasoning effort.

use runner::engines::{self, Engine};
use runner::{Mode, Offers, RunOptions};

use crate::wire::{Choice, ConfigOption, ModeInfo, Modes};

/// The value of a choice that was not made.
pub(crate) const DEFAULT: &str = "default";

const ASK: ModeInfo = ModeInfo {
    id: "default",
    name: "Ask",
    description: "asks before it changes files or runs commands",
};
const ACCEPT_EDITS: ModeInfo = ModeInfo {
    id: "acceptEdits",
    name: "Accept edits",
    description: "changes files without asking, and asks for the rest",
};
const PLAN: ModeInfo = ModeInfo {
    id: "plan",
    name: "Plan",
    description: "looks and plans, and changes nothing",
};
const DENY: ModeInfo = ModeInfo {
    id: "dontAsk",
    name: "Deny",
    description: "never asks; runs only what you listed, and denies the rest",
};
const LISTED: ModeInfo = ModeInfo {
    id: "listed",
    name: "Allowed tools",
    description: "never asks; runs the allowed tools, and denies the rest",
};
const ALLOW: ModeInfo = ModeInfo {
    id: "bypassPermissions",
    name: "Allow everything",
    description: "never asks, and may do anything",
};

const MODES: &[(Mode, ModeInfo)] = &[
    (Mode::Ask, ASK),
    (Mode::AcceptEdits, ACCEPT_EDITS),
    (Mode::Plan, PLAN),
    (Mode::Deny, DENY),
    (Mode::Listed, LISTED),
    (Mode::Allow, ALLOW),
];

/// The modes an engine has here, by their names on the wire. They are those of Claude Code, which
/// tells its own mode by them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Choices {
    pub(crate) has_modes: bool,
    /// Some agents refuse to work as root without asking.
    pub(crate) may_allow: bool,
    pub(crate) efforts: &'static [&'static str],
}

impl Choices {
    pub(crate) fn of(engine: &str, is_root: bool) -> Self {
        let engine = engines::find(engine);
        let rules = engine.and_then(Engine::rules);
        Self {
            has_modes: rules.is_some(),
            may_allow: !is_root || !rules.is_some_and(|it| it.refuses_root),
            efforts: engine.map_or(&[], |it| it.efforts),
        }
    }

    fn available(self) -> impl Iterator<Item = &'static (Mode, ModeInfo)> {
        let modes = if self.has_modes { MODES } else { &MODES[..1] };
        modes
            .iter()
            .filter(move |it| self.may_allow || it.0 != Mode::Allow)
    }

    pub(crate) fn modes(self, current: Mode) -> Modes {
        Modes {
            current_mode_id: mode_id(current),
            available_modes: self.available().map(|it| it.1).collect(),
        }
    }

    pub(crate) fn mode(self, id: &str) -> Option<Mode> {
        self.available().find(|it| it.1.id == id).map(|it| it.0)
    }

    /// All options with their current values.
    pub(crate) fn options(
        self,
        chosen: Mode,
        run: &RunOptions,
        offers: &Offers,
    ) -> Vec<ConfigOption> {
        let mode = |it: &(Mode, ModeInfo)| Choice {
            value: it.1.id.to_owned(),
            name: it.1.name.to_owned(),
            description: Some(it.1.description.to_owned()),
        };
        let mut options = vec![ConfigOption {
            id: "mode",
            name: "Permissions",
            category: "mode",
            r#type: "select",
            current_value: mode_id(chosen).to_owned(),
            options: self.available().map(mode).collect(),
        }];
        if self.has_modes {
            options.push(models(run.model.as_deref(), offers));
        }
        if !self.efforts.is_empty() {
            let value = run.effort.as_deref().unwrap_or(DEFAULT);
            let efforts = std::iter::once(&DEFAULT).chain(self.efforts);
            options.push(ConfigOption {
                id: "effort",
                name: "Effort",
                category: "thought_level",
                r#type: "select",
                current_value: value.to_owned(),
                options: efforts.map(|it| plain(it)).collect(),
            });
        }
        options
    }
}

/// The models that are offered, the one in use among them.
fn models(chosen: Option<&str>, offers: &Offers) -> ConfigOption {
    let offered = offers.models.iter().map(|it| Choice {
        value: it.id.clone(),
        name: it.name.clone(),
        description: it.description.clone(),
    });
    let mut options: Vec<Choice> = offered.collect();
    let current = chosen.or(offers.model.as_deref()).unwrap_or(DEFAULT);
    if !options.iter().any(|it| it.value == current) {
        options.insert(0, plain(current));
    }
    ConfigOption {
        id: "model",
        name: "Model",
        category: "model",
        r#type: "select",
        current_value: current.to_owned(),
        options,
    }
}

fn plain(value: &str) -> Choice {
    let name = match value {
        DEFAULT => "Default".to_owned(),
        value => value.to_owned(),
    };
    Choice {
        value: value.to_owned(),
        name,
        description: None,
    }
}

pub(crate) fn mode_id(mode: Mode) -> &'static str {
    MODES
        .iter()
        .find(|it| it.0 == mode)
        .map_or(DEFAULT, |it| it.1.id)
}

#[cfg(test)]
mod tests {
    use runner::Offer;

    use super::*;

    #[test]
    fn every_mode_is_found_by_its_name() {
        let all = Choices::of("codex", true);
        for (mode, info) in MODES {
            assert_eq!(all.mode(info.id), Some(*mode));
            assert_eq!(mode_id(*mode), info.id);
        }
        assert_eq!(all.mode("yolo"), None);
        assert_eq!(Choices::of("claude", true).mode("bypassPermissions"), None);
        assert_eq!(Choices::of("replay", false).mode("plan"), None);
    }

    #[test]
    fn the_model_in_use_can_always_be_seen() {
        let chosen = |model: Option<&str>| RunOptions {
            model: model.map(str::to_owned),
            ..RunOptions::default()
        };
        let offers = Offers {
            models: vec![Offer {
                id: "opus".to_owned(),
                name: "Opus".to_owned(),
                description: None,
            }],
            ..Offers::default()
        };
        let values = |model, offers: &Offers| {
            let options = Choices::of("claude", false).options(Mode::Ask, &chosen(model), offers);
            let model = options.into_iter().find(|it| it.id == "model").unwrap();
            let values: Vec<String> = model.options.into_iter().map(|it| it.value).collect();
            (model.current_value, values.join(" "))
        };
        let told = |current: &str, values: &str| (current.to_owned(), values.to_owned());
        assert_eq!(values(None, &Offers::default()), told("default", "default"));
        assert_eq!(values(None, &offers), told("default", "default opus"));
        assert_eq!(values(Some("opus"), &offers), told("opus", "opus"));
        assert_eq!(values(Some("mine"), &offers), told("mine", "mine opus"));
    }
}
