//! A model server on loopback that plays scripts, so that the real agents run offline.
//!
//! One [`Scenario`] serves four wires: Anthropic Messages, OpenAI Responses, OpenAI Chat Completions and Gemini.
//! `docs/scripted-model.md` is the manual: the script language, the lanes, and how to point each agent here.

mod dialects;
mod frames;
mod playback;
mod request;
mod scenario;
mod server;

/// What [`Turn::error`] and [`Turn::header`] are made of.
pub use axum::http::{HeaderName, HeaderValue, StatusCode};
pub use playback::Playback;
pub use request::Request;
pub use scenario::{Block, Cut, Lanes, Repeat, Scenario, Stop, Turn, Usage};
pub use server::{Server, serve};
