//! The options of a run that not every engine has.

use super::{ENGINES, Engine, Error};
use crate::options::RunOptions;

/// An option that is a column of [`ENGINES`]; `docs/engines.md` names the engines of each.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EngineOption {
    Effort,
    OutputStyle,
    Verbosity,
    Speed,
}

impl EngineOption {
    pub(super) const ALL: &[Self] = &[
        Self::Effort,
        Self::OutputStyle,
        Self::Verbosity,
        Self::Speed,
    ];

    /// Its name for users.
    pub(super) fn text(self) -> &'static str {
        match self {
            Self::Effort => "reasoning effort",
            Self::OutputStyle => "output style",
            Self::Verbosity => "verbosity",
            Self::Speed => "playing speed",
        }
    }

    fn is_set(self, options: &RunOptions) -> bool {
        match self {
            Self::Effort => options.effort.is_some(),
            Self::OutputStyle => options.output_style.is_some(),
            Self::Verbosity => options.verbosity.is_some(),
            Self::Speed => options.speed.is_some(),
        }
    }

    pub(super) fn engines(self) -> impl Iterator<Item = &'static Engine> {
        let engines = ENGINES.iter();
        engines.filter(move |it| it.options.contains(&self))
    }
}

impl Engine {
    /// Fails on an option that this engine does not have: a caller who sets one expects an effect.
    pub(super) fn check_options(&self, options: &RunOptions) -> Result<(), Error> {
        let mut set = EngineOption::ALL.iter().filter(|it| it.is_set(options));
        match set.find(|it| !self.options.contains(it)) {
            None => Ok(()),
            Some(option) => Err(Error::NoOption {
                engine: self.name,
                option: *option,
            }),
        }
    }
}
