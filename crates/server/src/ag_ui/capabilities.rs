//! What an engine is able to do, in the words of AG-UI.

use runner::config::Config;
use runner::engines::{self, Selected, select};
use serde_json::{Value, json};

use crate::error::Result;

pub(super) fn of(engine: &str, settings: &Config) -> Result<Value> {
    let selected = select(engine, settings)?;
    let row = engines::find(engine);
    let can = row.map(|it| it.capabilities).unwrap_or_default();
    let (is_model, provider) = match &selected {
        Selected::Responses(endpoint) => (true, endpoint.provider.name()),
        Selected::Agent(_) | Selected::Replay(_) => (false, selected.engine().name),
    };
    Ok(json!({
        "identity": {
            "name": engine, "type": "linkspan", "provider": provider,
            "description": row.map(|it| it.summary).unwrap_or_default(),
            "version": env!("CARGO_PKG_VERSION"),
        },
        "transport": { "streaming": true, "websocket": false, "httpBinary": true, "resumable": true },
        "tools": { "supported": true, "parallelCalls": true, "clientProvided": is_model },
        "state": { "snapshots": false, "deltas": false, "memory": can.resume, "persistentState": true },
        "multiAgent": { "supported": can.subagents },
        "reasoning": { "supported": true, "streaming": true, "encrypted": is_model },
        "multimodal": { "input": {
            "image": is_model, "audio": is_model, "video": false, "pdf": is_model, "file": is_model,
        } },
        "execution": { "codeExecution": !is_model, "sandboxed": false },
        "humanInTheLoop": {
            "supported": can.ask || is_model, "approvals": can.ask, "interrupts": can.ask,
            "approveWithEdits": can.edited_input,
        },
    }))
}
