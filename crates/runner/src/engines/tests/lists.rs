//! Lists of tools are followed, or they are an error.

use super::*;

/// What becomes of `--allow` and `--deny` in the modes of each way of talking.
fn check(name: &str, allow: &[&str], deny: &[&str], expect: Expect) {
    let own = |it: &[&str]| -> Vec<String> { it.iter().map(|it| (*it).to_owned()).collect() };
    let mut text = String::new();
    for talk in [Interaction::OneShot, Interaction::Dialogue] {
        for mode in [Mode::Ask, Mode::Deny, Mode::Allow] {
            let mut request = request(mode, talk, Resume::Fresh);
            request.permissions.allow = (!allow.is_empty()).then(|| own(allow));
            request.permissions.deny = own(deny);
            text += &launch_line(&launch(name, &config(""), &request));
            text.push('\n');
        }
    }
    expect.assert_eq(&text);
}

#[test]
fn a_tool_that_cannot_be_denied_is_an_error_in_both_ways_of_talking() {
    check(
        "codex",
        &[],
        &["shell"],
        expect![[r#"
        error: engine `codex` cannot deny single tools; hint: choose what it may do with `--permissions`, or with `sandbox` in the config
        error: engine `codex` cannot deny single tools; hint: choose what it may do with `--permissions`, or with `sandbox` in the config
        error: engine `codex` cannot deny single tools; hint: choose what it may do with `--permissions`, or with `sandbox` in the config
        error: engine `codex` cannot deny single tools; hint: choose what it may do with `--permissions`, or with `sandbox` in the config
        error: engine `codex` cannot deny single tools; hint: choose what it may do with `--permissions`, or with `sandbox` in the config
        error: engine `codex` cannot deny single tools; hint: choose what it may do with `--permissions`, or with `sandbox` in the config
    "#]],
    );
    check(
        "gemini",
        &[],
        &["replace"],
        expect![[r#"
        error: engine `gemini` cannot deny single tools; hint: write a policy file, and name it in `args` in the config: `--policy=FILE`
        error: engine `gemini` cannot deny single tools; hint: write a policy file, and name it in `args` in the config: `--policy=FILE`
        error: engine `gemini` cannot deny single tools; hint: write a policy file, and name it in `args` in the config: `--policy=FILE`
        error: engine `gemini` cannot deny single tools; hint: write a policy file, and name it in `args` in the config: `--policy=FILE`
        error: engine `gemini` cannot deny single tools; hint: write a policy file, and name it in `args` in the config: `--policy=FILE`
        error: engine `gemini` cannot deny single tools; hint: write a policy file, and name it in `args` in the config: `--policy=FILE`
    "#]],
    );
    check(
        "acp:helper",
        &[],
        &["shell"],
        expect![[r#"
        error: engine `acp` cannot deny single tools; hint: choose what it may do with `--permissions`, or in the agent's own settings
        error: engine `acp` cannot deny single tools; hint: choose what it may do with `--permissions`, or in the agent's own settings
        error: engine `acp` cannot deny single tools; hint: choose what it may do with `--permissions`, or in the agent's own settings
        error: engine `acp` cannot deny single tools; hint: choose what it may do with `--permissions`, or in the agent's own settings
        error: engine `acp` cannot deny single tools; hint: choose what it may do with `--permissions`, or in the agent's own settings
        error: engine `acp` cannot deny single tools; hint: choose what it may do with `--permissions`, or in the agent's own settings
    "#]],
    );
}

#[test]
fn a_tool_is_allowed_by_a_flag_or_by_an_answer_or_not_at_all() {
    check(
        "codex",
        &["shell"],
        &[],
        expect![[r#"
            error: engine `codex` cannot allow single tools where it asks nobody; hint: choose what it may do with `--permissions`, or with `sandbox` in the config
            error: engine `codex` cannot allow single tools where it asks nobody; hint: choose what it may do with `--permissions`, or with `sandbox` in the config
            /bin/codex exec --json --skip-git-repo-check -c 'sandbox_mode="danger-full-access"' -c 'approval_policy="never"' -- 'fix it'
            /bin/codex app-server -c 'sandbox_mode="read-only"' -c 'approval_policy="on-request"' <open
            /bin/codex app-server -c 'sandbox_mode="read-only"' -c 'approval_policy="on-request"' <open
            /bin/codex app-server -c 'sandbox_mode="danger-full-access"' -c 'approval_policy="never"' <open
        "#]],
    );
    check(
        "gemini",
        &["replace"],
        &[],
        expect![[r#"
            GEMINI_CLI_NO_RELAUNCH=true /bin/gemini --output-format stream-json --skip-trust --approval-mode default '--allowed-tools=replace' '--prompt=fix it'
            GEMINI_CLI_NO_RELAUNCH=true /bin/gemini --output-format stream-json --skip-trust --approval-mode default '--allowed-tools=replace' '--prompt=fix it'
            GEMINI_CLI_NO_RELAUNCH=true /bin/gemini --output-format stream-json --skip-trust --approval-mode yolo '--prompt=fix it'
            GEMINI_CLI_NO_RELAUNCH=true /bin/gemini --acp --approval-mode default '--allowed-tools=replace' <open
            GEMINI_CLI_NO_RELAUNCH=true /bin/gemini --acp --approval-mode default '--allowed-tools=replace' <open
            GEMINI_CLI_NO_RELAUNCH=true /bin/gemini --acp --approval-mode yolo <open
        "#]],
    );
    check(
        "acp:helper",
        &["shell"],
        &[],
        expect![[r#"
        error: engine `acp` cannot run a prompt without being talked with; hint: an ACP agent is always talked with
        error: engine `acp` cannot run a prompt without being talked with; hint: an ACP agent is always talked with
        error: engine `acp` cannot run a prompt without being talked with; hint: an ACP agent is always talked with
        /bin/helper  <open
        /bin/helper  <open
        /bin/helper  <open
    "#]],
    );
}

#[test]
fn a_pattern_is_an_error_where_tools_have_only_names() {
    for name in ["codex", "gemini", "acp:helper"] {
        let mut request = request(Mode::Ask, Interaction::Dialogue, Resume::Fresh);
        request.permissions.allow = Some(vec!["read".to_owned(), "shell(rm *)".to_owned()]);
        assert_eq!(
            launch(name, &config(""), &request),
            Err(Error::BadValue {
                what: "the tool",
                why: "is a pattern, where this engine takes the name of a whole tool",
                shown: "shell(rm *)".to_owned(),
            }),
            "{name}"
        );
    }
}

#[test]
fn rules_of_opencode_have_its_own_names() {
    check(
        "opencode",
        &["Read", "bash(git *)"],
        &["Bash", "write", "My_Tool"],
        expect![[r#"
            OPENCODE_PERMISSION='{"*":{"*":"deny"},"My_Tool":{"*":"deny"},"bash":{"*":"deny"},"edit":{"*":"deny"},"external_directory":{"*":"deny"},"glob":{"*":"allow"},"grep":{"*":"allow"},"list":{"*":"allow"},"lsp":{"*":"allow"},"read":{"*":"allow"},"skill":{"*":"allow"},"task":{"*":"allow"},"todoread":{"*":"allow"},"todowrite":{"*":"allow"}}' /bin/opencode run --format json --thinking <<<"fix it"
            OPENCODE_PERMISSION='{"*":{"*":"deny"},"My_Tool":{"*":"deny"},"bash":{"*":"deny"},"edit":{"*":"deny"},"external_directory":{"*":"deny"},"glob":{"*":"allow"},"grep":{"*":"allow"},"list":{"*":"allow"},"lsp":{"*":"allow"},"read":{"*":"allow"},"skill":{"*":"allow"},"task":{"*":"allow"},"todoread":{"*":"allow"},"todowrite":{"*":"allow"}}' /bin/opencode run --format json --thinking <<<"fix it"
            OPENCODE_PERMISSION='{"*":{"*":"allow"},"My_Tool":{"*":"deny"},"bash":{"*":"deny"},"edit":{"*":"deny"},"external_directory":{"*":"allow"},"glob":{"*":"allow"},"grep":{"*":"allow"},"list":{"*":"allow"},"lsp":{"*":"allow"},"read":{"*":"allow"},"skill":{"*":"allow"},"task":{"*":"allow"},"todoread":{"*":"allow"},"todowrite":{"*":"allow"}}' /bin/opencode run --format json --thinking --auto <<<"fix it"
            OPENCODE_PERMISSION='{"*":{"*":"ask"},"My_Tool":{"*":"deny"},"bash":{"*":"deny"},"edit":{"*":"deny"},"external_directory":{"*":"ask"},"glob":{"*":"allow"},"grep":{"*":"allow"},"list":{"*":"allow"},"lsp":{"*":"allow"},"read":{"*":"allow"},"skill":{"*":"allow"},"task":{"*":"allow"},"todoread":{"*":"allow"},"todowrite":{"*":"allow"}}' /bin/opencode acp <open
            OPENCODE_PERMISSION='{"*":{"*":"deny"},"My_Tool":{"*":"deny"},"bash":{"*":"deny"},"edit":{"*":"deny"},"external_directory":{"*":"deny"},"glob":{"*":"allow"},"grep":{"*":"allow"},"list":{"*":"allow"},"lsp":{"*":"allow"},"read":{"*":"allow"},"skill":{"*":"allow"},"task":{"*":"allow"},"todoread":{"*":"allow"},"todowrite":{"*":"allow"}}' /bin/opencode acp <open
            OPENCODE_PERMISSION='{"*":{"*":"allow"},"My_Tool":{"*":"deny"},"bash":{"*":"deny"},"edit":{"*":"deny"},"external_directory":{"*":"allow"},"glob":{"*":"allow"},"grep":{"*":"allow"},"list":{"*":"allow"},"lsp":{"*":"allow"},"read":{"*":"allow"},"skill":{"*":"allow"},"task":{"*":"allow"},"todoread":{"*":"allow"},"todowrite":{"*":"allow"}}' /bin/opencode acp <open
        "#]],
    );
}
