//! A recording of both directions of a conversation: every line wraps one message.

use super::lenient::{Any, Num, Str};

object! {
    Line {
        /// Seconds since the recording began.
        t: Num = "t",
        /// `in` went to the agent, `out` came from it.
        dir: Str<'a> = "dir",
        msg: Any<'a> = "msg",
    }
}
