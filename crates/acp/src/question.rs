//! A question of the agent, put to the client: as a form where it has forms, else as a choice of
//! permissions, one question at a time.

use runner::{Answer, PendingAsk};
use serde_json::{Map, Value, json};

use crate::rpc;

/// The free text field of a form.
const OTHER: &str = "other";

#[derive(Debug)]
pub(crate) struct Question {
    id: String,
    call: String,
    title: String,
    input: Map<String, Value>,
    questions: Vec<FormField>,
    answers: Map<String, Value>,
    /// The one that is being asked, without forms.
    at: usize,
}

#[derive(Debug, PartialEq, Eq)]
struct FormField {
    question: String,
    labels: Vec<(String, String)>,
    is_many: bool,
}

impl Question {
    /// None where nothing can be chosen from.
    pub(crate) fn new(asked: &PendingAsk) -> Option<Self> {
        let ask = &asked.ask;
        let input = ask.input.as_ref()?.get();
        let input: Map<String, Value> = serde_json::from_str(input).ok()?;
        let text = |it: &Value, key: &str| it[key].as_str().unwrap_or_default().to_owned();
        let questions = input.get("questions")?.as_array()?;
        let one = |it: &Value| FormField {
            question: text(it, "question"),
            labels: it["options"]
                .as_array()
                .into_iter()
                .flatten()
                .map(|it| (text(it, "label"), text(it, "description")))
                .collect(),
            is_many: it["multiSelect"].as_bool().unwrap_or_default(),
        };
        let questions: Vec<FormField> = questions.iter().map(one).collect();
        // A request for permission has to name a tool call, even if the question has none.
        let call = ask.item.as_ref().map_or(ask.id.as_str(), |it| it.as_str());
        (!questions.is_empty()).then(|| Self {
            id: ask.id.to_string(),
            call: call.to_owned(),
            title: ask.title.to_string(),
            questions,
            input,
            answers: Map::new(),
            at: 0,
        })
    }

    pub(crate) fn ask(&self) -> &str {
        &self.id
    }

    /// The id of the current request; unique among the requests of an ask.
    pub(crate) fn name(&self) -> String {
        match self.at {
            0 => self.id.clone(),
            at => format!("{}/{at}", self.id),
        }
    }

    /// What to send to the client.
    pub(crate) fn request(&self, session: &str, has_forms: bool) -> Vec<u8> {
        let id = format!("{session}/{}", self.name());
        if has_forms {
            return rpc::request(&id, "elicitation/create", &self.form(session));
        }
        let one = &self.questions[self.at];
        let option = |(at, it): (usize, &(String, String))| json!({"optionId": at.to_string(), "name": it.0, "kind": "allow_once"});
        let mut options: Vec<Value> = one.labels.iter().enumerate().map(option).collect();
        options.push(json!({"optionId": "reject", "name": "Skip", "kind": "reject_once"}));
        let content = json!({"type": "text", "text": one.question});
        let call = json!({
            "toolCallId": self.call,
            "title": one.question,
            "status": "pending",
            "content": [{"type": "content", "content": content}],
        });
        let params = json!({"sessionId": session, "toolCall": call, "options": options});
        rpc::request(&id, "session/request_permission", &params)
    }

    fn form(&self, session: &str) -> Value {
        let mut properties = Map::new();
        let mut required = Vec::new();
        for (at, one) in self.questions.iter().enumerate() {
            let labels: Vec<&str> = one.labels.iter().map(|it| &*it.0).collect();
            let described = one.labels.iter().filter(|it| !it.1.is_empty());
            let described: Vec<String> =
                described.map(|it| format!("{}: {}", it.0, it.1)).collect();
            let mut field = match (labels.is_empty(), one.is_many) {
                (true, _) => json!({"type": "string"}),
                (false, true) => {
                    json!({"type": "array", "items": {"type": "string", "enum": labels}})
                }
                (false, false) => json!({"type": "string", "enum": labels}),
            };
            field["title"] = Value::from(&*one.question);
            if !described.is_empty() {
                field["description"] = Value::from(described.join("\n"));
            }
            properties.insert(format!("q{at}"), field);
            required.push(format!("q{at}"));
        }
        if let [one] = &*self.questions
            && !one.labels.is_empty()
        {
            let field = json!({"type": "string", "title": "Something else"});
            properties.insert(OTHER.to_owned(), field);
            // The free text is an answer without any choice.
            required.clear();
        }
        let message = match &*self.questions {
            [one] => &one.question,
            _ => &self.title,
        };
        json!({
            "sessionId": session,
            "toolCallId": self.call,
            "mode": "form",
            "message": message,
            "requestedSchema": {"type": "object", "properties": properties, "required": required},
        })
    }

    /// The complete answer; `None` when there are more questions.
    pub(crate) fn answered(&mut self, result: Option<&Value>) -> Option<Answer> {
        let skipped = || Answer::Deny {
            message: "the user did not answer".to_owned(),
        };
        let Some(result) = result else {
            return Some(skipped());
        };
        // A form is answered by an action, a request for permission by an outcome.
        if result["action"] == "accept" {
            return Some(self.filled_in(&result["content"]).unwrap_or_else(skipped));
        }
        let chosen = result["outcome"]["optionId"].as_str();
        let one = &self.questions[self.at];
        let label = chosen
            .and_then(|it| it.parse::<usize>().ok())
            .and_then(|it| one.labels.get(it));
        let Some((label, _)) = label else {
            return Some(skipped());
        };
        self.answers
            .insert(one.question.clone(), Value::from(&**label));
        self.at += 1;
        (self.at == self.questions.len()).then(|| self.answer())
    }

    fn filled_in(&mut self, content: &Value) -> Option<Answer> {
        for (at, one) in self.questions.iter().enumerate() {
            let own = content[OTHER].as_str().filter(|it| !it.trim().is_empty());
            let answer = match &content[format!("q{at}")] {
                _ if own.is_some() => own.unwrap_or_default().to_owned(),
                Value::String(text) => text.clone(),
                Value::Array(many) => {
                    let many: Vec<&str> = many.iter().filter_map(Value::as_str).collect();
                    many.join(", ")
                }
                _ => continue,
            };
            self.answers
                .insert(one.question.clone(), Value::from(answer));
        }
        (!self.answers.is_empty()).then(|| self.answer())
    }

    /// The answers go back inside the input they were asked with.
    fn answer(&mut self) -> Answer {
        let mut input = std::mem::take(&mut self.input);
        let answers = std::mem::take(&mut self.answers);
        input.insert("answers".to_owned(), Value::Object(answers));
        Answer::Allow {
            input: Some(Value::Object(input).to_string()),
        }
    }
}

#[cfg(test)]
mod tests {
    use model::{Ask, AskId, AskKind, ItemId, Raw, Text, ToolKind};

    use super::*;

    fn question(questions: Value) -> Question {
        let input = json!({ "questions": questions }).to_string();
        let ask = Ask {
            id: AskId::new("a"),
            kind: AskKind::Question,
            item: Some(ItemId::new("t")),
            tool: "AskUserQuestion".into(),
            title: Text::new("Two things"),
            description: None,
            input: Some(Raw::parse(input)),
            suggestions: None,
            deadline: None,
        };
        let kind = ToolKind::Ask;
        let asked = PendingAsk {
            ask,
            kind,
            paths: Vec::new(),
            cwd: None,
        };
        Question::new(&asked).unwrap()
    }

    fn two() -> Question {
        question(json!([
            {"question": "Color?", "options": [{"label": "Red", "description": "r"}, {"label": "Blue"}]},
            {"question": "Sizes?", "multiSelect": true, "options": [{"label": "S"}, {"label": "M"}]}
        ]))
    }

    fn given(answer: Option<Answer>) -> Value {
        match answer {
            Some(Answer::Allow { input: Some(input) }) => {
                serde_json::from_str::<Value>(&input).unwrap()["answers"].take()
            }
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn without_forms_one_question_follows_the_other() {
        let mut asked = two();
        let first: Value = serde_json::from_slice(&asked.request("s", false)).unwrap();
        let expected = json!({"jsonrpc": "2.0", "id": "s/a", "method": "session/request_permission", "params": {
            "sessionId": "s",
            "toolCall": {"toolCallId": "t", "title": "Color?", "status": "pending",
                "content": [{"type": "content", "content": {"type": "text", "text": "Color?"}}]},
            "options": [
                {"optionId": "0", "name": "Red", "kind": "allow_once"},
                {"optionId": "1", "name": "Blue", "kind": "allow_once"},
                {"optionId": "reject", "name": "Skip", "kind": "reject_once"}
            ]
        }});
        assert_eq!(first, expected);
        let chosen = |at: &str| json!({"outcome": {"outcome": "selected", "optionId": at}});
        assert_eq!(
            (asked.name(), asked.answered(Some(&chosen("1")))),
            ("a".to_owned(), None)
        );
        assert_eq!(asked.name(), "a/1");
        let answers = given(asked.answered(Some(&chosen("0"))));
        assert_eq!(answers, json!({"Color?": "Blue", "Sizes?": "S"}));
    }

    #[test]
    fn a_form_has_all_choices_and_a_free_text_field() {
        let mut asked = two();
        let form: Value = serde_json::from_slice(&asked.request("s", true)).unwrap();
        let schema = &form["params"]["requestedSchema"];
        let expected = json!({"type": "object", "required": ["q0", "q1"], "properties": {
            "q0": {"type": "string", "enum": ["Red", "Blue"], "title": "Color?", "description": "Red: r"},
            "q1": {"type": "array", "items": {"type": "string", "enum": ["S", "M"]}, "title": "Sizes?"}
        }});
        assert_eq!(*schema, expected);
        let content = json!({"action": "accept", "content": {"q0": "Red", "q1": ["S", "M"]}});
        let answers = given(asked.answered(Some(&content)));
        assert_eq!(answers, json!({"Color?": "Red", "Sizes?": "S, M"}));

        let mut asked = question(json!([{"question": "Color?", "options": [{"label": "Red"}]}]));
        let content = json!({"action": "accept", "content": {"other": "green"}});
        let answers = given(asked.answered(Some(&content)));
        assert_eq!(answers, json!({"Color?": "green"}));
    }

    #[test]
    fn a_missing_answer_is_no_answer() {
        let skipped = Some(Answer::Deny {
            message: "the user did not answer".to_owned(),
        });
        let refusals = [
            None,
            Some(json!({"action": "decline"})),
            Some(json!({"action": "accept", "content": {}})),
            Some(json!({"outcome": {"outcome": "cancelled"}})),
            Some(json!({"outcome": {"outcome": "selected", "optionId": "9"}})),
        ];
        for refusal in refusals {
            assert_eq!(two().answered(refusal.as_ref()), skipped, "{refusal:?}");
        }
    }
}
