//! `linkspan schema`: the JSON Schema of the events of a format.

use runner::did_you_mean;

use crate::cli::SchemaArgs;
use crate::exit::{self, Failure, printable};

/// The schemas by their formats. Tests of the crates that write them keep each as the code is.
const SCHEMAS: &[(&str, &str)] = &[
    (
        "linkspan",
        include_str!("../../schemas/linkspan.schema.json"),
    ),
    ("thread", include_str!("../../schemas/thread.schema.json")),
];

pub(crate) fn run(args: &SchemaArgs) -> Result<(), Failure> {
    match SCHEMAS.iter().find(|it| it.0 == args.format) {
        Some((_, schema)) => exit::print(schema.as_bytes()),
        None => {
            let names: Vec<&str> = SCHEMAS.iter().map(|it| it.0).collect();
            let all = format!("schemas: {}", names.join(", "));
            Err(Failure::usage(
                format!("there is no schema of `{}`", printable(&args.format)),
                did_you_mean(&args.format, names.iter().copied(), &all),
            ))
        }
    }
}
