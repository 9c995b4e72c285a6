//! What a turn has used: each call, the run by model, the session.

use expect_test::expect;

use super::*;

#[test]
fn a_call_reports_its_usage_once() {
    let block = |text: &str| {
        let mut line = super::text("m1", text);
        line["message"]["model"] = json!("m");
        line["message"]["usage"] =
            json!({"input_tokens": 3, "cache_read_input_tokens": 10, "output_tokens": 1});
        line
    };
    check(
        &[init(), block("a"), block("b"), result("b")],
        expect![[r#"
            session s1 init cwd=/w model=m
            run.started prompt
            usage call delta model=m tokens={cache_read=10 cache_write=0 input=3}
            + message m1.0 "" group=m1 role=assistant
            - ok message m1.0 a group=m1 role=assistant
            + message m1.1 "" group=m1 role=assistant
            - ok message m1.1 b group=m1 role=assistant
            run.ended completed answer=b
        "#]],
    );
}

#[test]
fn results_of_one_run_add_up_by_model() {
    let with = |answer: &str, so_far: Value, since: Value| {
        let mut line = result(answer);
        line["total_cost_usd"] = json!(0.5);
        line["usage"] = json!({"input_tokens": 1, "output_tokens": 2});
        line["modelUsage"] = so_far;
        line["model_usage_since_last_result"] = since;
        line
    };
    let count = |n: u64| json!({"inputTokens": n, "outputTokens": n, "costUSD": n, "contextWindow": 200000});
    let mut second = with(
        "2",
        json!({"big": count(5), "small": count(7)}),
        json!({"big": count(2), "small": count(7)}),
    );
    second["origin"] = json!({"kind": "task-notification"});
    check(
        &[
            init(),
            with("1", json!({"big": count(3)}), json!({"big": count(3)})),
            second,
        ],
        expect![[r#"
            session s1 init cwd=/w model=m
            run.started prompt
            usage session cumulative cost_usd=0.5 tokens={cache_read=0 cache_write=0 input=12 output=12}
            run.ended completed answer=2 models=[{context_window=200000 cost_usd=5.0 model=big tokens={cache_read=0 cache_write=0 input=5 output=5}} {context_window=200000 cost_usd=7.0 model=small tokens={cache_read=0 cache_write=0 input=7 output=7}}] session_cost_usd=0.5 usage={run delta tokens={cache_read=0 cache_write=0 input=1 output=2}}
        "#]],
    );
}
