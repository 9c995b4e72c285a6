//! Who a client is: its token, the role of that, and what the role may do.
//!
//! A client that knows can leave out what would be refused. The answer is made from the tables that the
//! checks use, so that the two cannot differ.

use axum::Extension;
use axum::http::StatusCode;
use axum::response::Response;
use runner::permissions::MODES;
use serde::Serialize;

use crate::error::reply;
use crate::rights;
use crate::routes::{Access, ROUTES};
use crate::tokens::{Caller, Role};

#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(crate) struct Me {
    /// As `linkspan token --json` names it; null is the first token.
    id: Option<String>,
    role: Role,
    /// Every route that needs a token, by its name in the OpenAPI document.
    operations: Vec<Right>,
    /// Every permission mode that a prompt can name.
    permissions: Vec<Right>,
}

/// One thing that can be done, the lowest role that may do it, and whether this token may.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct Right {
    name: &'static str,
    role: Role,
    allowed: bool,
}

pub(crate) async fn show(Extension(caller): Extension<Caller>) -> Response {
    reply(StatusCode::OK, &me(caller))
}

fn me(caller: Caller) -> Me {
    let right = |name, role| Right {
        name,
        role,
        allowed: caller.role >= role,
    };
    let operations = ROUTES.iter().filter_map(|it| match it.access {
        Access::Public => None,
        Access::Role(role) => Some(right(it.id, role)),
    });
    let modes = MODES.iter();
    Me {
        operations: operations.collect(),
        permissions: modes
            .map(|it| right(it.name, rights::mode_role(it.mode)))
            .collect(),
        role: caller.role,
        id: caller.key,
    }
}
