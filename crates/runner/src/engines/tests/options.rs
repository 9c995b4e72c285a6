//! An option that an engine does not have is refused, and the manual says which engines have it.

use super::*;

/// Which of the options a request sets.
fn with(option: EngineOption) -> RunOptions {
    let value = Some("high".to_owned());
    let mut options = RunOptions::default();
    match option {
        EngineOption::Effort => options.effort = value,
        EngineOption::OutputStyle => options.output_style = value,
        EngineOption::Verbosity => options.verbosity = value,
        EngineOption::Speed => options.speed = Some(2.0),
    }
    options
}

#[test]
fn an_option_that_an_engine_lacks_is_refused_with_those_that_have_it() {
    let config = config("[engines.responses.mine]\nbase_url = 'http://127.0.0.1:1/v1'");
    let names = [
        "claude",
        "codex",
        "opencode",
        "gemini",
        "openhands",
        "acp:helper",
        "responses:mine",
        "replay:tools",
    ];
    assert_eq!(names.len(), ENGINES.len());
    let mut refused = String::new();
    for name in names {
        let selected = select(name, &config).unwrap();
        assert_eq!(selected.check_options(&RunOptions::default()), Ok(()));
        let checked = EngineOption::ALL.iter();
        let errors = checked.filter_map(|it| selected.check_options(&with(*it)).err());
        for err in errors {
            refused += &format!("{err}; {}\n", err.hint().unwrap());
        }
    }
    expect![[r#"
        engine `claude` cannot choose the verbosity; leave it out, or use an engine that has it: codex
        engine `claude` cannot choose the playing speed; leave it out, or use an engine that has it: replay:FILE
        engine `codex` cannot choose the output style; leave it out, or use an engine that has it: claude
        engine `codex` cannot choose the playing speed; leave it out, or use an engine that has it: replay:FILE
        engine `opencode` cannot choose the reasoning effort; leave it out, or use an engine that has it: claude, codex, openhands, responses:NAME
        engine `opencode` cannot choose the output style; leave it out, or use an engine that has it: claude
        engine `opencode` cannot choose the verbosity; leave it out, or use an engine that has it: codex
        engine `opencode` cannot choose the playing speed; leave it out, or use an engine that has it: replay:FILE
        engine `gemini` cannot choose the reasoning effort; leave it out, or use an engine that has it: claude, codex, openhands, responses:NAME
        engine `gemini` cannot choose the output style; leave it out, or use an engine that has it: claude
        engine `gemini` cannot choose the verbosity; leave it out, or use an engine that has it: codex
        engine `gemini` cannot choose the playing speed; leave it out, or use an engine that has it: replay:FILE
        engine `openhands` cannot choose the output style; leave it out, or use an engine that has it: claude
        engine `openhands` cannot choose the verbosity; leave it out, or use an engine that has it: codex
        engine `openhands` cannot choose the playing speed; leave it out, or use an engine that has it: replay:FILE
        engine `acp` cannot choose the reasoning effort; leave it out, or use an engine that has it: claude, codex, openhands, responses:NAME
        engine `acp` cannot choose the output style; leave it out, or use an engine that has it: claude
        engine `acp` cannot choose the verbosity; leave it out, or use an engine that has it: codex
        engine `acp` cannot choose the playing speed; leave it out, or use an engine that has it: replay:FILE
        engine `responses` cannot choose the output style; leave it out, or use an engine that has it: claude
        engine `responses` cannot choose the verbosity; leave it out, or use an engine that has it: codex
        engine `responses` cannot choose the playing speed; leave it out, or use an engine that has it: replay:FILE
        engine `replay` cannot choose the reasoning effort; leave it out, or use an engine that has it: claude, codex, openhands, responses:NAME
        engine `replay` cannot choose the output style; leave it out, or use an engine that has it: claude
        engine `replay` cannot choose the verbosity; leave it out, or use an engine that has it: codex
    "#]].assert_eq(&refused);
}

#[test]
fn the_manual_names_the_engines_of_each_option() {
    let manual = include_str!("../../../../../docs/engines.md");
    let rows = ["effort", "outputStyle", "verbosity", "speed"];
    for (name, option) in rows.iter().zip(EngineOption::ALL) {
        let mut rows = manual.lines();
        let row = rows.find(|it| it.starts_with(&format!("| `{name}` | `--")));
        let engines = option.engines().map(|it| match it.argument {
            Some(_) => format!("`{}:…`", it.name),
            None => format!("`{}`", it.name),
        });
        let engines = engines.collect::<Vec<_>>().join(", ");
        let cell = row.and_then(|it| it.split(" | ").last());
        assert_eq!(cell, Some(&*format!("{engines}; the others refuse it |")));
    }
}
