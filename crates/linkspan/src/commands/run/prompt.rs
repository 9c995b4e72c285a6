//! The prompt, and the line in it that names a session to resume.

use std::io::{self, IsTerminal, Read};

use formats::resume::{self, ResumeLine};
use runner::engines;

use crate::cli::RunArgs;
use crate::exit::Failure;
use crate::streams::InputStream;

/// More than that is a mistake: no model takes it.
const MAX_PROMPT: u64 = 32 * 1024 * 1024;

/// What was asked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct PromptSource {
    pub(super) text: String,
    /// The last resume line.
    pub(super) resume: Option<ResumeLine>,
}

impl PromptSource {
    /// The prompt of a run: from the caller, the arguments or stdin.
    pub(super) fn of_run(args: &RunArgs) -> Result<Self, Failure> {
        match &args.caller.prompt {
            Some(text) => Self::checked(Self {
                text: text.clone(),
                resume: None,
            }),
            None => Self::read(&args.prompt),
        }
    }

    /// From the words of the command line; `-` among them, or no words at all, is stdin.
    fn read(words: &[String]) -> Result<Self, Failure> {
        let text = match words {
            [] if io::stdin().is_terminal() => {
                return Err(Failure::usage(
                    "there is no prompt",
                    "say what to do, as in `linkspan run 'fix the failing test'`, or pipe it in",
                ));
            }
            [] => stdin()?,
            words if words.iter().any(|it| it == "-") => return Self::mixed(words),
            words => words.join(" "),
        };
        Self::of(&text)
    }

    /// Words with something from stdin among them. That is what the words are about, a diff or a log,
    /// so nothing in it names a session.
    fn mixed(words: &[String]) -> Result<Self, Failure> {
        let mut parts = Vec::new();
        for word in words {
            parts.push(if word == "-" { stdin()? } else { word.clone() });
        }
        let text = parts.join(" ");
        Self::checked(Self { text, resume: None })
    }

    fn of(prompt_text: &str) -> Result<Self, Failure> {
        let (rest, resume) = resume::strip(prompt_text);
        // A resume line of a program that is not an engine is part of the prompt.
        let is_known = |it: &str| engines::find(it).is_some();
        let resume = resume.filter(|it| it.engine.as_deref().is_none_or(is_known));
        // Without such a line a prompt is not touched.
        let text = if resume.is_some() {
            rest
        } else {
            prompt_text.to_owned()
        };
        Self::checked(Self { text, resume })
    }

    fn checked(self) -> Result<Self, Failure> {
        if self.text.trim().is_empty() {
            return Err(Failure::usage(
                "the prompt is empty",
                "say what to do, as in `linkspan run 'fix the failing test'`",
            ));
        }
        Ok(self)
    }
}

/// All of stdin, as a prompt.
pub(crate) fn stdin() -> Result<String, Failure> {
    let mut bytes = Vec::new();
    // One byte more tells that the prompt is too long, without reading the rest of it.
    let mut input = io::stdin().lock().take(MAX_PROMPT + 1);
    let read = input.read_to_end(&mut bytes);
    read.map_err(|err| InputStream::failure("stdin", &err))?;
    if bytes.len() as u64 > MAX_PROMPT {
        return Err(Failure::usage(
            "the prompt is longer than 32 MB",
            "put it into a file and tell the agent to read it",
        ));
    }
    // A prompt is text; invalid UTF-8 is replaced rather than refused.
    Ok(String::from_utf8_lossy(&bytes)
        .trim_end_matches('\n')
        .to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_resume_line_is_taken_out_of_the_prompt() {
        let prompt = PromptSource::of("go on\n`claude --resume a-1`").unwrap();
        let resume = Some(ResumeLine {
            engine: Some("claude".to_owned()),
            id: "a-1".to_owned(),
        });
        let text = "go on".to_owned();
        assert_eq!(prompt, PromptSource { text, resume });
        let prompt = PromptSource::of("`codex resume b`").unwrap();
        assert_eq!(prompt.text, "continue");
    }

    #[test]
    fn an_unknown_program_is_prose() {
        for prompt_text in [
            "what does `vagrant resume box` do?\n`vagrant resume box`",
            "go on\n`linkspan run --engine vagrant --resume box`",
        ] {
            let prompt = PromptSource::of(prompt_text).unwrap();
            assert_eq!((&*prompt.text, prompt.resume), (prompt_text, None));
        }
    }

    #[test]
    fn any_other_prompt_stays_as_it_is() {
        let prompt_text = " a\r\nb \n";
        let prompt = PromptSource::of(prompt_text).unwrap();
        assert_eq!((&*prompt.text, prompt.resume), (prompt_text, None));
    }

    #[test]
    fn a_prompt_of_spaces_is_none() {
        assert_eq!(
            PromptSource::of(" \n").unwrap_err().message(),
            "linkspan: the prompt is empty"
        );
    }
}
