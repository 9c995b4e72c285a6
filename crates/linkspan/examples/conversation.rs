//! Two prompts for one agent: `cargo run --example conversation -- claude 'list the files'`.
//!
//! Without arguments a recording is played, which needs no agent and no key.

#![expect(clippy::print_stdout, reason = "an example shows what it does")]

use std::env;
use std::error::Error;

use linkspan::{Answer, Body, Conversation, ConversationConfig};

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    let mut args = env::args().skip(1);
    let engine = args.next().unwrap_or_else(|| "replay:tools".to_owned());
    let message = args.next().unwrap_or_else(|| "look around".to_owned());

    let mut config = ConversationConfig::new(&engine, &env::current_dir()?)?;
    config.options.allow = Some(vec!["file_editor".to_owned()]);
    let mut conversation = Conversation::new(config);
    conversation.on_event(|event| {
        if let Body::ItemClosed(closed) = &event.body {
            println!("{:?} {}", closed.status, closed.item.id());
        }
    });
    conversation.on_ask(|asked| {
        println!("allowed: {} {}", asked.ask.tool, asked.ask.title);
        Answer::Allow { input: None }
    });
    for message in [message.as_str(), "what did you do?"] {
        conversation.send_message(message);
        let ended = conversation.run().await?;
        println!("{:?}: {:?}", conversation.state(), ended.outcome);
    }
    conversation.close().await;
    Ok(())
}
