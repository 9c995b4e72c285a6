//! The server through a real socket: whole responses, compared byte by byte.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on should stop")]

mod answers;
mod fixtures;
mod http;
mod lanes;
mod life;
mod program;
mod streams;
