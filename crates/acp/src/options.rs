//! The session's config options: mode, model, reasoning effort.

use std::borrow::Cow;

use runner::engines::{self, Engine};
use runner::{Mode, Offers, RunOptions};
use serde_json::Value;

use crate::wire::{Choice, ConfigOption, ModeInfo, Modes};

/// The value of a choice that was not made.
pub(crate) const DEFAULT: &str = "default";

const ASK: ModeInfo = mode_info(
    "default",
    "Ask",
    "asks before it changes files or runs commands",
);
const ACCEPT_EDITS: ModeInfo = mode_info(
    "acceptEdits",
    "Accept edits",
    "changes files without asking, and asks for the rest",
);
const PLAN: ModeInfo = mode_info("plan", "Plan", "looks and plans, and changes nothing");
const DENY: ModeInfo = mode_info(
    "dontAsk",
    "Deny",
    "never asks; runs only what you listed, and denies the rest",
);
const LISTED: ModeInfo = mode_info(
    "listed",
    "Allowed tools",
    "never asks; runs the allowed tools, and denies the rest",
);
const ALLOW: ModeInfo = mode_info(
    "bypassPermissions",
    "Allow everything",
    "never asks, and may do anything",
);

const fn mode_info(id: &'static str, name: &'static str, description: &'static str) -> ModeInfo {
    ModeInfo {
        id: Cow::Borrowed(id),
        name: Cow::Borrowed(name),
        description: Cow::Borrowed(description),
    }
}

const MODES: &[(Mode, ModeInfo)] = &[
    (Mode::Ask, ASK),
    (Mode::AcceptEdits, ACCEPT_EDITS),
    (Mode::Plan, PLAN),
    (Mode::Deny, DENY),
    (Mode::Listed, LISTED),
    (Mode::Allow, ALLOW),
];

/// The modes an engine has here, by their names on the wire. They are those of Claude Code, which
/// reports its own mode by them.
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
            current_mode_id: mode_id(current).to_owned(),
            available_modes: self.available().map(|it| it.1.clone()).collect(),
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
            value: Some(it.1.id.to_string()),
            name: Some(it.1.name.to_string()),
            description: Some(it.1.description.to_string()),
            options: Vec::new(),
        };
        let mut options = vec![select(
            ["mode", "Permissions", "mode"],
            mode_id(chosen),
            self.available().map(mode).collect(),
        )];
        if self.has_modes {
            options.push(models(run.model.as_deref(), offers));
        }
        if !self.efforts.is_empty() {
            let value = run.effort.as_deref().unwrap_or(DEFAULT);
            let efforts = std::iter::once(&DEFAULT).chain(self.efforts);
            options.push(select(
                ["effort", "Effort", "thought_level"],
                value,
                efforts.map(|it| plain(it)).collect(),
            ));
        }
        options
    }
}

/// The models that are offered, the one in use among them.
fn models(chosen: Option<&str>, offers: &Offers) -> ConfigOption {
    let offered = offers.models.iter().map(|it| Choice {
        value: Some(it.id.clone()),
        name: Some(it.name.clone()),
        description: it.description.clone(),
        options: Vec::new(),
    });
    let mut options: Vec<Choice> = offered.collect();
    let current = chosen.or(offers.model.as_deref()).unwrap_or(DEFAULT);
    if !options
        .iter()
        .any(|it| it.value.as_deref() == Some(current))
    {
        options.insert(0, plain(current));
    }
    select(["model", "Model", "model"], current, options)
}

/// An option of which one value is chosen; it has an id, a name and a category.
fn select(
    [id, name, category]: [&'static str; 3],
    value: &str,
    options: Vec<Choice>,
) -> ConfigOption {
    ConfigOption {
        id: Cow::Borrowed(id),
        name: Cow::Borrowed(name),
        category: Some(Cow::Borrowed(category)),
        r#type: Cow::Borrowed("select"),
        current_value: Value::from(value),
        options,
    }
}

fn plain(value: &str) -> Choice {
    let name = match value {
        DEFAULT => "Default".to_owned(),
        value => value.to_owned(),
    };
    Choice {
        value: Some(value.to_owned()),
        name: Some(name),
        description: None,
        options: Vec::new(),
    }
}

pub(crate) fn mode_id(mode: Mode) -> &'static str {
    MODES
        .iter()
        .find(|it| it.0 == mode)
        .map_or(DEFAULT, |it| &*it.1.id)
}

#[cfg(test)]
mod tests {
    use runner::Offer;

    use super::*;

    #[test]
    fn every_mode_is_found_by_its_name() {
        let all = Choices::of("codex", true);
        for (mode, info) in MODES {
            assert_eq!(all.mode(&info.id), Some(*mode));
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
            let values: Vec<String> = model
                .options
                .into_iter()
                .filter_map(|it| it.value)
                .collect();
            (model.current_value, values.join(" "))
        };
        let expected = |current: &str, values: &str| (Value::from(current), values.to_owned());
        assert_eq!(
            values(None, &Offers::default()),
            expected("default", "default")
        );
        assert_eq!(values(None, &offers), expected("default", "default opus"));
        assert_eq!(values(Some("opus"), &offers), expected("opus", "opus"));
        assert_eq!(values(Some("mine"), &offers), expected("mine", "mine opus"));
    }
}
