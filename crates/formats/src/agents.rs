//! What writers know of the agents whose events they write, by the names of their engines.
//!
//! How agents are started is the table of the crate `runner`, which `formats` does not know. An engine
//! without a row here is written by its name.

/// One agent.
#[derive(Debug)]
pub(crate) struct AgentInfo {
    /// The engine's name, which is the program's where there is a resume line.
    pub(crate) engine: &'static str,
    /// What people call it.
    pub(crate) title: &'static str,
    /// Its own word for itself in OpenHands' statistics.
    pub(crate) usage_id: &'static str,
    /// Who serves its models, where that is always the same.
    pub(crate) provider: Option<&'static str>,
    pub(crate) resume: Option<ResumeForm>,
}

/// How the command is written that resumes a session.
#[derive(Debug)]
pub(crate) struct ResumeForm {
    /// What may stand between the program and the id. The first is written.
    pub(crate) words: &'static [&'static [&'static str]],
    pub(crate) id: IdForm,
    /// It is a program of its users, and not one of takopi's.
    pub(crate) is_offered: bool,
}

/// What an id looks like.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum IdForm {
    Word,
    /// `ses_` and letters and digits.
    OpenCode,
    /// Everything up to the end of the line, in quotes where it has spaces.
    Rest,
    /// Three bare words may be prose: the line has its backticks, and is spelled to the letter.
    InBackticks,
}

const RESUME_FLAG: ResumeForm = ResumeForm {
    words: &[&["--resume"], &["-r"]],
    id: IdForm::Word,
    is_offered: true,
};

const RESUME_VERB: ResumeForm = ResumeForm {
    words: &[&["resume"]],
    id: IdForm::Word,
    is_offered: true,
};

pub(crate) const AGENTS: &[AgentInfo] = &[
    AgentInfo {
        title: "Claude Code",
        usage_id: "claude-code",
        provider: Some("anthropic"),
        resume: Some(RESUME_FLAG),
        ..agent("claude")
    },
    AgentInfo {
        resume: Some(RESUME_VERB),
        ..agent("codex")
    },
    AgentInfo {
        resume: Some(ResumeForm {
            words: &[
                &["--session"],
                &["-s"],
                &["run", "--session"],
                &["run", "-s"],
            ],
            id: IdForm::OpenCode,
            is_offered: true,
        }),
        ..agent("opencode")
    },
    AgentInfo {
        resume: Some(RESUME_FLAG),
        ..agent("gemini")
    },
    AgentInfo {
        resume: Some(RESUME_FLAG),
        ..agent("qwen")
    },
    AgentInfo {
        resume: Some(ResumeForm {
            words: &[&["--session"]],
            id: IdForm::Rest,
            is_offered: false,
        }),
        ..agent("pi")
    },
    // The engine of takopi's own tests.
    AgentInfo {
        resume: Some(ResumeForm {
            id: IdForm::InBackticks,
            is_offered: false,
            ..RESUME_VERB
        }),
        ..agent("mock")
    },
    agent("openresponses"),
    agent("openhands"),
    agent("acp"),
    agent("ag-ui"),
];

const fn agent(engine: &'static str) -> AgentInfo {
    AgentInfo {
        engine,
        title: engine,
        usage_id: engine,
        provider: None,
        resume: None,
    }
}

pub(crate) fn find(engine: &str) -> Option<&'static AgentInfo> {
    AGENTS.iter().find(|it| it.engine == engine)
}
