//! The model and the mode of a session, by config options or by the older lists.

use formats::wire::acp::{self as wire, Choice, ConfigOption, Models, Modes};
use serde_json::Value;

use super::super::{Offer, Outbox};
use super::{Acp, AcpRequest};
use crate::request::Mode;

/// What agents call the mode in which they change files without a question.
const EDITS: &[&str] = &["acceptEdits", "autoEdit", "auto_edit"];

/// What agents call the modes in which they ask nothing at all.
const FREE: &[&str] = &["bypassPermissions", "yolo", "auto", "full-access"];

/// Whether an agent in this mode does things without a question.
fn is_free(mode: &str) -> bool {
    EDITS.contains(&mode) || FREE.contains(&mode)
}

/// What a session lets its client choose.
#[derive(Debug, Default)]
pub(super) struct SessionSettings {
    model: Option<SessionSetting>,
    mode: Option<SessionSetting>,
}

#[derive(Debug)]
struct SessionSetting {
    kind: SettingKind,
    /// How the session began.
    first: String,
    current: String,
    offers: Vec<Offer>,
}

#[derive(Clone, Debug)]
enum SettingKind {
    Option { id: String },
    Model,
    Mode,
}

impl SessionSettings {
    pub(super) fn new(
        options: Option<Vec<ConfigOption>>,
        modes: Option<Modes>,
        models: Option<Models>,
    ) -> Self {
        let mut offers = Self::default();
        for option in options.unwrap_or_default() {
            let category = option.category.as_deref().unwrap_or(&option.id);
            let place = match category {
                "model" => &mut offers.model,
                "mode" => &mut offers.mode,
                _ => continue,
            };
            let current = option.current_value.as_str().unwrap_or_default();
            let kind = SettingKind::Option {
                id: option.id.to_string(),
            };
            let mut choices = Vec::new();
            flatten(option.options, &mut choices);
            place.get_or_insert(SessionSetting::new(kind, current, choices));
        }
        // Agents may send the older lists as well; a config option takes precedence.
        if let Some(it) = models {
            let models = it.available_models.into_iter().map(Offer::from);
            let current = &it.current_model_id;
            let setting = SessionSetting::new(SettingKind::Model, current, models.collect());
            offers.model.get_or_insert(setting);
        }
        if let Some(it) = modes {
            let modes = it.available_modes.into_iter().map(Offer::from);
            let current = &it.current_mode_id;
            let setting = SessionSetting::new(SettingKind::Mode, current, modes.collect());
            offers.mode.get_or_insert(setting);
        }
        offers
    }

    pub(super) fn offers(&self) -> super::super::Offers {
        let model = self.model.as_ref();
        super::super::Offers {
            models: model.map(|it| it.offers.clone()).unwrap_or_default(),
            model: model.map(|it| it.current.clone()),
            commands: Vec::new(),
        }
    }
}

impl SessionSetting {
    fn new(kind: SettingKind, current: &str, offers: Vec<Offer>) -> Self {
        Self {
            kind,
            first: current.to_owned(),
            current: current.to_owned(),
            offers,
        }
    }

    fn find(&self, is_wanted: impl Fn(&str) -> bool) -> Option<String> {
        let mut ids = self.offers.iter().map(|it| &it.id);
        ids.find(|it| is_wanted(it)).cloned()
    }

    /// The mode to work in: the one the session began with, unless it was left planning.
    fn work(&self) -> String {
        match self.find(|it| it != "plan") {
            Some(other) if self.first == "plan" => other,
            _ => self.first.clone(),
        }
    }

    /// The mode to work in that asks before things happen; none when the agent is known to have no such
    /// mode.
    fn asking(&self) -> Option<String> {
        let work = self.work();
        match is_free(&work) {
            true => self.find(|it| it == "default"),
            false => Some(work),
        }
    }

    /// The name this agent has for a mode; none when it has no such mode.
    fn mode(&self, mode: Mode) -> Option<String> {
        match mode {
            Mode::Allow => Some(self.work()),
            // How questions are answered makes the difference, so it has to ask.
            Mode::Deny | Mode::Ask | Mode::Listed => self.asking(),
            Mode::AcceptEdits => self
                .find(|it| EDITS.contains(&it))
                .or_else(|| self.asking()),
            Mode::Plan => self.find(|it| it == "plan"),
        }
    }
}

impl Acp {
    /// False when the agent offers no choice.
    pub(super) fn ask_for_model(&mut self, model: &str, out: &mut Outbox) -> bool {
        let Some(setting) = &mut self.offers.model else {
            return false;
        };
        if setting.current != model {
            // Before the answer comes, so that the same model is not set twice.
            setting.current = model.to_owned();
            let kind = setting.kind.clone();
            let asked = AcpRequest::Setting {
                what: format!("model `{model}`"),
                is_vital: false,
            };
            self.set(kind, model, asked, out);
        }
        true
    }

    /// False when the agent has no such mode.
    pub(super) fn ask_for_mode(&mut self, mode: Mode, out: &mut Outbox) -> bool {
        let Some(setting) = &mut self.offers.mode else {
            // Without modes there is nothing to set, but planning needs one.
            return mode != Mode::Plan;
        };
        let Some(value) = setting.mode(mode) else {
            return false;
        };
        if setting.current != value {
            // An agent whose mode cannot be changed must not do more than was allowed.
            let is_vital = mode == Mode::Plan || is_free(&setting.current);
            setting.current.clone_from(&value);
            let kind = setting.kind.clone();
            let asked = AcpRequest::Setting {
                what: format!("mode `{value}`"),
                is_vital,
            };
            self.set(kind, &value, asked, out);
        }
        true
    }

    /// Gemini answers before it sends the history of the session it loads, and would send it into the
    /// first run. What is asked meanwhile is answered afterwards: the mode is set as it is.
    pub(super) fn wait_for_history(&mut self, out: &mut Outbox) {
        if let Some(mode) = &self.offers.mode {
            let (kind, current) = (mode.kind.clone(), mode.current.clone());
            let asked = AcpRequest::Setting {
                what: format!("mode `{current}`"),
                is_vital: false,
            };
            self.set(kind, &current, asked, out);
        }
    }

    fn set(&mut self, kind: SettingKind, value: &str, asked: AcpRequest, out: &mut Outbox) {
        let Some(session_id) = self.session.clone() else {
            return;
        };
        self.n_settings += 1;
        let rpc = &mut self.rpc;
        match kind {
            SettingKind::Option { id } => {
                let params = wire::SetConfigOption {
                    session_id,
                    config_id: id,
                    value: Value::from(value),
                };
                rpc.request(asked, "session/set_config_option", params, out);
            }
            SettingKind::Model => {
                let params = wire::SetModel {
                    session_id,
                    model_id: value.to_owned(),
                };
                rpc.request(asked, "session/set_model", params, out);
            }
            SettingKind::Mode => {
                let params = wire::SetMode {
                    session_id,
                    mode_id: value.to_owned(),
                };
                rpc.request(asked, "session/set_mode", params, out);
            }
        }
    }

    pub(super) fn setting_answered(&mut self, out: &mut Outbox) {
        self.n_settings = self.n_settings.saturating_sub(1);
        self.next(out);
    }
}

fn flatten(choices: Vec<Choice>, offers: &mut Vec<Offer>) {
    for choice in choices {
        // A choice without a value is a group, and has its own choices.
        offers.extend(choice.value.map(|id| Offer {
            name: choice.name.unwrap_or_else(|| id.clone()),
            description: choice.description,
            id,
        }));
        flatten(choice.options, offers);
    }
}

impl From<wire::ModeInfo> for Offer {
    fn from(mode: wire::ModeInfo) -> Self {
        Self {
            id: mode.id.into_owned(),
            name: mode.name.into_owned(),
            description: Some(mode.description.into_owned()),
        }
    }
}

impl From<wire::ModelInfo> for Offer {
    fn from(model: wire::ModelInfo) -> Self {
        Self {
            id: model.model_id,
            name: model.name,
            description: model.description,
        }
    }
}
