//! The words of a transcript: one table, also held against the page (`web/tests/labels.test.mjs`).

use std::collections::BTreeMap;

use model::{AskKind, Decision, Item, Outcome, RunEnded, Status};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use crate::writers::asks::decision_label;
use crate::writers::labels::{label_and_target, title};
use crate::writers::page_transcript::card::CardOutcome;
use crate::writers::summary::{
    compacted, count, dollars, duration, notice_text, outcome_label, plural, summary_line,
};

const TABLE: &str = include_str!("../../../../../fixtures/transcript/labels.json");

fn cell<T: DeserializeOwned>(row: &[Value], at: usize) -> T {
    serde_json::from_value(row[at].clone()).unwrap()
}

/// What the rule of this name makes of a row.
fn label(rule: &str, row: &[Value]) -> Value {
    let text = row[0].to_string();
    match rule {
        "durations" => json!(duration(cell(row, 0))),
        "counts" => json!(count(cell(row, 0))),
        "dollars" => json!(dollars(cell(row, 0))),
        "plurals" => json!(plural(cell(row, 0), row[1].as_str().unwrap())),
        "titles" => json!(title(row[0].as_str().unwrap())),
        "outcomes" => json!(outcome_label(cell::<Outcome>(row, 0), cell(row, 1))),
        "ends" => {
            let ended: RunEnded<'_> = serde_json::from_str(&text).unwrap();
            json!(summary_line(&ended, cell(row, 1)))
        }
        "notices" => json!(notice_text(
            &cell::<String>(row, 0),
            &cell::<String>(row, 1)
        )),
        "calls" => json!(CardOutcome::of(cell::<Status>(row, 0), cell(row, 1)).label()),
        "decisions" => json!(decision_label(
            cell::<AskKind>(row, 0),
            cell::<Decision>(row, 1)
        )),
        "compactions" | "tools" => match serde_json::from_str(&text).unwrap() {
            Item::Compaction(compaction) => json!(compacted(&compaction)),
            Item::Tool(tool) => json!(label_and_target(&tool)),
            other => panic!("{other:?}"),
        },
        other => panic!("no rule is called `{other}`"),
    }
}

#[test]
fn every_label_is_the_one_in_the_table() {
    let table: BTreeMap<String, Vec<Vec<Value>>> = serde_json::from_str(TABLE).unwrap();
    for (rule, rows) in &table {
        for row in rows {
            let (expected, cells) = row.split_last().unwrap();
            assert_eq!(label(rule, cells), *expected, "{rule} {cells:?}");
        }
    }
}
