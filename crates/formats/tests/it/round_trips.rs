//! Reading back what was written: the same items, texts, tool calls and end, as far as the target
//! can say them.

mod acp_openhands;
mod ag_ui;
mod claude;
mod thread;
