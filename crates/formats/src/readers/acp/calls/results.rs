//! What came back from a call, and how it ended.

use model::{Raw, Status, Text, Tool, ToolKind, ToolResult};

use super::super::wire::{self, Meta};
use super::AcpCall;
use crate::readers::acp_tool_content;
use crate::readers::content::{self, ContentPiece};
use crate::tools;
use crate::wire::lenient::{Any, Num};
use crate::wire::scanner;

object! {
    /// What agents put into `rawOutput` of a command.
    RawOutput {
        exit_code: Num = "exitCode",
        exit_code_snake: Num = "exit_code",
        metadata: OutputMeta<'a> = "metadata",
    }

    OutputMeta {
        exit: Num = "exit",
    }
}

impl AcpCall {
    /// What came back. Agents send what the model saw, an object of their own, or both.
    pub(super) fn result<'r>(&'r self, status: Status, meta: &Meta<'r>) -> Option<ToolResult<'r>> {
        let content = self.content.as_ref().map(Raw::as_raw_value);
        let mut pieces = acp_tool_content::contents(Any(content)).pieces;
        let has_output = self.output.as_ref().is_some_and(Raw::is_string);
        if self.is_description && has_output {
            // Nothing replaced the words that the call was introduced with.
            pieces.clear();
        }
        if self.terminal_exit.is_some() || !self.streamed.is_empty() {
            // What the terminal showed is known here.
            pieces.retain(|it| !is_terminal(it));
        }
        if pieces.is_empty() && !self.streamed.is_empty() {
            pieces.push(ContentPiece::Text(Text::new(&*self.streamed)));
        }
        let is_silent = pieces.is_empty() && self.output.is_none();
        // linkspan wrote the status of a call that never had a result: none is made up for it.
        if is_silent && meta.status.0.is_some() {
            return None;
        }
        let output = self.output.as_ref().map(Raw::by_ref);
        let (content, structured) = match (meta.result.raw(), output) {
            (Some(content), output) => (content, output),
            // The blocks that the model saw are more than what is left of them in the content.
            (None, Some(output)) if output.get().starts_with('[') => (output, None),
            (None, Some(output)) if output.is_string() && pieces.is_empty() => (output, None),
            (None, output) => {
                let content = content::content(pieces);
                // An object is not compared with a text: neither has to be decoded.
                let is_other = |it: &Raw<'_>| {
                    !it.is_string() || Text::from(it.by_ref()) != Text::from(content.by_ref())
                };
                let structured = output.filter(is_other);
                (content, structured)
            }
        };
        let is_error = meta.is_error.0.unwrap_or(status != Status::Ok);
        Some(ToolResult {
            structured,
            ..ToolResult::new(content, is_error)
        })
    }

    /// The exit code of a command, as its terminal, its output or its words tell it.
    pub(super) fn exit_code(&self, tool: &Tool<'_>) -> Option<i32> {
        if self.terminal_exit.is_some() || tool.class.kind != ToolKind::Shell {
            return self.terminal_exit;
        }
        let output: RawOutput<'_> = (self.output.as_ref())
            .and_then(|it| scanner::from_str(it.get()).ok())
            .unwrap_or_default();
        let codes = [
            output.exit_code,
            output.exit_code_snake,
            output.metadata.exit,
        ];
        let code = codes.into_iter().find_map(Num::as_u64);
        let in_text = || {
            // Only an error begins with `Exit code N`; other output may well contain the words.
            let result = tool.result.as_ref().filter(|it| it.is_error)?;
            tools::exit_code(&Text::from(result.content.by_ref()).to_str())
        };
        code.and_then(|it| i32::try_from(it).ok()).or_else(in_text)
    }
}

/// True for a block that only names a terminal.
fn is_terminal(piece: &ContentPiece<'_>) -> bool {
    match piece {
        ContentPiece::Part(model::Part::Other(raw)) => {
            let content: wire::ToolContent<'_> = scanner::from_str(raw.get()).unwrap_or_default();
            content.r#type.as_deref() == Some("terminal")
        }
        ContentPiece::Part(_) | ContentPiece::Text(_) => false,
    }
}
