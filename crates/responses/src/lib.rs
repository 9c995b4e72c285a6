//! Any OpenResponses endpoint as an agent: a conversation in, the bytes of its answer out.
//!
//! `request` turns the messages of a thread into a request, in the shapes that each provider takes, and is
//! pure; `thread` decides how much of the thread has to be sent; `call` is one request on its way, with its
//! retries and time-outs. What comes back is read by the format `openresponses` like any other agent's output.

mod call;
mod endpoint;
mod redact;
mod request;
mod thread;

pub use call::{Call, CallError, CallEvent};
pub use endpoint::{Azure, Endpoint, EndpointError, Key, Limits, OpenClaw, Provider};
pub use request::UnsupportedInput;
pub use thread::{Conversation, digest};
