//! Open asks, for clients that connect after they were opened.

use axum::extract::ws::Utf8Bytes;
use formats::{BridgeWriter, waiting_ask};
use journal::WaitingAsk;
use model::Event;
use serde_json::Value;

use super::client_format::ClientFormat;

/// Messages that show the open asks that `wanted` picks. They have no cursor: the position of the client in
/// the session does not change. A client may get one twice, and knows it by its `askId`.
pub(super) fn waiting(
    asks: &[WaitingAsk],
    format: &ClientFormat,
    wanted: impl Fn(&WaitingAsk) -> bool,
) -> Vec<Utf8Bytes> {
    let mut messages = Vec::new();
    for ask in asks.iter().filter(|it| !it.answered && wanted(it)) {
        let line = String::from_utf8_lossy(&ask.line);
        let Ok(event) = Event::from_json(&line) else {
            continue;
        };
        let mut out = Vec::new();
        if let Some(served) = &format.served {
            waiting_ask(&event, served, &mut out);
        }
        if let Some(config) = &format.bridge {
            BridgeWriter::new(config.clone()).event(&event, &mut out);
        }
        let text = String::from_utf8_lossy(&out);
        let session = Value::from(ask.session.as_str());
        // The fields of the bridge are put in front, without parsing the message again.
        let fields = text.lines().filter_map(|it| it.strip_prefix('{'));
        messages.extend(
            fields.map(|it| {
                Utf8Bytes::from(format!(r#"{{"sessionId":{session},"replayed":true,{it}"#))
            }),
        );
    }
    messages
}
