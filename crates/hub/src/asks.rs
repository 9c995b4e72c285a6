//! Answers to what agents ask.

use journal::WriteId;
use model::SessionId;
use runner::{Answer, NotSettled, engines};

use crate::command::{StoredAnswer, to_bytes};
use crate::error::{Error, Result};
use crate::hub::Hub;

impl Hub {
    /// Answers the ask of event `seq`. The first answer wins; later ones fail with
    /// [`journal::Error::Answered`]. What a recording asks cannot be answered.
    pub async fn settle(&self, session: &SessionId<'_>, seq: u64, answer: Answer) -> Result<()> {
        if self.is_recorded(session, seq).await? {
            return Err(Error::Recorded);
        }
        if let Answer::Allow { input: Some(input) } | Answer::AllowAlways { input: Some(input) } =
            &answer
        {
            if !runner::is_input(input) {
                return Err(NotSettled::BadInput.into());
            }
            let status = self.shared.status(session);
            // What the agent of another process takes is not known here: its worker denies the ask
            // if the answer cannot be given.
            if status.current.is_some() && !status.takes_changes {
                return Err(NotSettled::FixedInput.into());
            }
        }
        let is_late = false;
        let answer = to_bytes(&StoredAnswer { answer, is_late });
        self.journal()
            .settle(session, seq, WriteId::new(), answer)
            .await?;
        Ok(())
    }

    /// Whether an answer may change what the session's agent runs.
    pub fn takes_changes(&self, session: &SessionId<'_>) -> bool {
        self.shared.status(session).takes_changes
    }

    /// Whether the ask of event `seq` waits for a person: the permissions do not decide it, it has no
    /// answer yet, and it is not part of a recording.
    pub async fn is_waiting(&self, session: &SessionId<'_>, seq: u64) -> Result<bool> {
        let asks = self.journal().asks(None).await?;
        let is_open = asks
            .iter()
            .any(|it| it.session == *session && it.seq == seq && !it.answered);
        let status = self.shared.status(session);
        // For a session of another process only the journal is known.
        let is_put = status.current.is_none() || status.asks.contains(&seq);
        Ok(is_open && is_put && !self.is_recorded(session, seq).await?)
    }

    /// Whether the ask of event `seq` is open, and part of a recording.
    async fn is_recorded(&self, session: &SessionId<'_>, seq: u64) -> Result<bool> {
        let found = self.journal().find_session(session).await?;
        let settings = &self.shared.config.settings;
        let selected = found.map(|it| engines::select(&it.engine, settings));
        if !matches!(selected, Some(Ok(engines::Selected::Replay(_)))) {
            return Ok(false);
        }
        // An ask that is not open is left to the journal, whose error says why.
        let asks = self.journal().asks(None).await?;
        Ok(asks
            .iter()
            .any(|it| it.session == *session && it.seq == seq))
    }
}
