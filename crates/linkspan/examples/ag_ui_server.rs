//! Any agent for any AG-UI app: `cargo run --example ag_ui_server -- claude`, then `POST /ag-ui`.
//!
//! Without an argument a recording is served, which needs no agent and no key.

#![expect(clippy::print_stdout, reason = "an example shows what it does")]

use std::env;
use std::error::Error;

use linkspan::ag_ui;

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let engine = env::args()
        .nth(1)
        .unwrap_or_else(|| "replay:tools".to_owned());
    let ag_ui = ag_ui::router(ag_ui::Config::new(&[&engine])?).await?;
    // Whoever reaches this address can run the engine: put your own login in front of it.
    let app = axum::Router::new().nest("/ag-ui", ag_ui.router.clone());
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await?;
    println!("POST http://{}/ag-ui", listener.local_addr()?);
    tokio::select! {
        served = axum::serve(listener, app) => served?,
        stopped = tokio::signal::ctrl_c() => stopped?,
    }
    // Agents that are at work would outlive the program otherwise.
    ag_ui.stop().await;
    Ok(())
}
