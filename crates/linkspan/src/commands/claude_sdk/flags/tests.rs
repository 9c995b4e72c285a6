//! The flags of Claude Code, as the SDK of 0.3.325 writes them.

use super::*;

fn read(flags: &[&str]) -> Result<ClaudeFlags, String> {
    let flags: Vec<String> = flags.iter().map(ToString::to_string).collect();
    ClaudeFlags::read(&flags).map_err(|err| err.message())
}

#[test]
fn the_command_line_of_the_sdk() {
    let flags = read(&[
        "--output-format",
        "stream-json",
        "--verbose",
        "--input-format",
        "stream-json",
        "--model=claude-sonnet-4-5",
        "--allowedTools=Bash,Write",
        "--permission-prompt-tool=stdio",
        "--setting-sources=",
        "--permission-mode=acceptEdits",
        "--include-partial-messages",
        "--resume=5c0d",
    ]);
    let flags = flags.unwrap();
    let options = RunOptions {
        model: Some("claude-sonnet-4-5".to_owned()),
        permissions: Some(Mode::AcceptEdits),
        allow: Some(vec!["Bash".to_owned(), "Write".to_owned()]),
        ..RunOptions::default()
    };
    assert_eq!(flags.options, options);
    let client = ClaudeClient {
        wants_partials: true,
        replays_prompts: false,
    };
    assert_eq!(flags.client, client);
    assert!(flags.asks_host && flags.is_dialogue && flags.ignored.is_empty());
    assert_eq!(flags.resume.as_deref(), Some("5c0d"));
}

#[test]
fn what_nobody_knows_is_reported_and_ignored() {
    let flags = read(&["--shiny=1", "--newer", "value", "--switch", "--model", "m"]).unwrap();
    let ignored = ["--shiny", "--newer", "--switch"];
    let ignored = ignored.map(|it| format!("`{it}` is not known, and ignored"));
    assert_eq!(flags.ignored, ignored);
    assert_eq!(flags.options.model.as_deref(), Some("m"));
}

#[test]
fn what_only_claude_code_can_do_is_refused_by_its_name() {
    for flag in REFUSED {
        let refused = read(&[&format!("{flag}=1")]).unwrap_err();
        let expected =
            format!("linkspan: `{flag}` is not supported: only Claude Code itself has it");
        assert_eq!(refused, expected);
    }
    assert_eq!(
        read(&["--output-format", "json"]).unwrap_err(),
        "linkspan: `--output-format` cannot be `json`"
    );
    assert_eq!(
        read(&["--permission-mode=auto"]).unwrap_err(),
        "linkspan: there is no permission mode `auto`"
    );
}

#[test]
fn mcp_servers_are_those_of_the_host() {
    let config = r#"{"mcpServers":{"files":{"command":"srv","args":["a"],"env":{"K":"v"}},"web":{"type":"http","url":"http://h","headers":{"A":"b"}}}}"#;
    let flags = read(&["--mcp-config", config]).unwrap();
    let pair = |a: &str, b: &str| (a.to_owned(), b.to_owned());
    let expected = [
        McpServer {
            name: "files".to_owned(),
            via: McpVia::Stdio {
                command: "srv".to_owned(),
                args: vec!["a".to_owned()],
                env: vec![pair("K", "v")],
            },
        },
        McpServer {
            name: "web".to_owned(),
            via: McpVia::Http {
                url: "http://h".to_owned(),
                headers: vec![pair("A", "b")],
            },
        },
    ];
    assert_eq!(flags.mcp_servers, expected);
    let inside = r#"{"mcpServers":{"calc":{"type":"sdk"}}}"#;
    assert_eq!(
        read(&["--mcp-config", inside]).unwrap_err(),
        "linkspan: the MCP server `calc` is not supported"
    );
}
