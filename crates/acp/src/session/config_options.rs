//! Config options: the user's choices, the agent's offers and its own changes.

use runner::{Mode, Offers};
use serde_json::Value;

use super::Session;
use crate::options::{DEFAULT, mode_id};
use crate::rpc::{self, Error, Id};
use crate::wire::{self, SessionUpdate};

impl Session {
    pub(super) fn set_mode(&mut self, id: &Id, mode: &str) {
        let line = match self.choices.mode(mode) {
            Some(mode) => {
                self.core.change_mode(mode);
                rpc::result(id, &wire::Empty {})
            }
            None => rpc::refusal(Some(id), &self.no_such("mode", mode)),
        };
        self.lines.extend(line);
        self.send_options();
    }

    pub(super) fn set_option(&mut self, id: &Id, option: &str, value: &Value) {
        let chosen = value.as_str().unwrap_or_default();
        let error = match option {
            "mode" => match self.choices.mode(chosen) {
                Some(mode) => {
                    self.core.change_mode(mode);
                    self.update(SessionUpdate::CurrentModeUpdate {
                        current_mode_id: mode_id(mode),
                    });
                    None
                }
                None => Some(self.no_such("mode", chosen)),
            },
            "model" if !chosen.is_empty() && self.choices.has_modes => {
                self.core
                    .change_model((chosen != DEFAULT).then(|| chosen.to_owned()));
                None
            }
            "effort" if chosen == DEFAULT || self.choices.efforts.contains(&chosen) => {
                let effort = (chosen != DEFAULT).then(|| chosen.to_owned());
                self.core.change_effort(effort);
                None
            }
            _ => Some(self.no_such(option, chosen)),
        };
        let line = match error {
            Some(error) => rpc::refusal(Some(id), &error),
            None => {
                let config_options = self.config_options();
                rpc::result(id, &wire::ConfigOptions { config_options })
            }
        };
        self.lines.extend(line);
    }

    fn no_such(&self, option: &str, value: &str) -> Error {
        Error::params(format!("there is no {option} `{value}` to choose"))
    }

    pub(super) fn config_options(&self) -> Vec<wire::ConfigOption> {
        self.choices
            .options(self.core.mode(), self.core.options(), &self.offers)
    }

    fn send_options(&mut self) {
        let config_options = self.config_options();
        self.update(SessionUpdate::ConfigOptionUpdate { config_options });
    }

    /// Sends what the agent offers, once it has reported it.
    pub(super) fn apply_offers(&mut self) {
        if self.offers != Offers::default() {
            return;
        }
        let Some(agent) = self.core.worker.agent() else {
            return;
        };
        let offers = agent.offers();
        if offers == self.offers {
            return;
        }
        if !offers.commands.is_empty() {
            let commands = offers.commands.iter();
            let commands = commands.map(|it| wire::AvailableCommand {
                name: &it.name,
                description: it.description.clone(),
                input: it.hint.clone().map(|hint| wire::CommandInput { hint }),
            });
            self.writer.set_knows_commands();
            self.update(SessionUpdate::AvailableCommandsUpdate {
                available_commands: commands.collect(),
            });
        }
        self.offers = offers;
        self.send_options();
    }

    /// An agent that leaves its plan, or was allowed all edits, is in another mode.
    pub(super) fn apply_mode(&mut self) {
        let Some(mode) = self.agent_mode.take() else {
            return;
        };
        // Claude Code reports `dontAsk` for two of these: the client's choice counts.
        let is_ours = matches!(self.core.mode(), Mode::Allow | Mode::Listed | Mode::Deny);
        let Some(mode) = self.choices.mode(&mode).filter(|_| !is_ours) else {
            return;
        };
        if self.core.mode() != mode {
            self.core.worker.set_mode(mode);
            self.update(SessionUpdate::CurrentModeUpdate {
                current_mode_id: mode_id(mode),
            });
            self.send_options();
        }
    }
}
