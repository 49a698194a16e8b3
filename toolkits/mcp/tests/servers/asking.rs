//! What a server does in the middle of a call: it asks the person, and shows progress.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use fimble_mcp::{Limits, Transport, connect};
use fimble_toolkit::{Answers, Person, Progress, SessionContext, Step, Watches};
use serde_json::json;

use crate::{address, call, call_for, fixture, node, program, scripted::scripted, until};

/// Gives the answers that it was told to give, and keeps the questions.
#[derive(Default)]
struct Script {
    answers: Mutex<Vec<&'static str>>,
    asked: Mutex<Vec<(String, Vec<String>)>>,
}

#[async_trait]
impl Answers for Script {
    async fn answer(&self, question: &str, choices: &[String]) -> Option<String> {
        self.asked.lock().unwrap().push((question.to_owned(), choices.to_vec()));
        let mut answers = self.answers.lock().unwrap();
        (!answers.is_empty()).then(|| answers.remove(0).to_owned())
    }
}

fn person(answers: &[&'static str]) -> (Arc<Script>, SessionContext) {
    let script = Arc::new(Script { answers: Mutex::new(answers.to_vec()), ..Script::default() });
    let person = Person::new(Arc::clone(&script) as Arc<dyn Answers>);
    (script, SessionContext { person, ..SessionContext::default() })
}

#[tokio::test]
async fn a_servers_question_is_put_to_the_person_field_by_field() {
    let toolkit = connect(scripted(&[]), Limits::default()).await.unwrap();
    let (script, context) = person(&["", "Ada", "seven", "7", "yes"]);
    let answer = call_for(context, &*toolkit, "ask", json!({})).await.unwrap();
    assert_eq!(answer, json!({"action": "accept", "content": {"name": "Ada", "count": 7, "sure": true}}));
    let asked: Vec<String> = script.asked.lock().unwrap().iter().map(|(question, _)| question.clone()).collect();
    let name = "The MCP server `my server-1` asks: What now?\nname (Whose?) [`decline` to refuse]";
    let count =
        "The MCP server `my server-1` asks: What now?\ncount, integer [nothing to leave it out, `decline` to refuse]";
    let sure = "The MCP server `my server-1` asks: What now?\nsure, boolean [`decline` to refuse]";
    let again = |question: &str, problem: &str| format!("{question}\n{problem}");
    let expected = [
        name.to_owned(),
        again(name, "It must be given."),
        count.to_owned(),
        again(count, "It must be a whole number."),
        sure.to_owned(),
    ];
    assert_eq!(asked, expected);

    let (_, context) = person(&["Ada", "decline"]);
    let answer = call_for(context, &*toolkit, "ask", json!({})).await.unwrap();
    assert_eq!(answer, json!({"action": "decline"}));
}

#[tokio::test]
async fn a_question_that_nobody_answers_is_told_to_the_program() {
    let toolkit = connect(scripted(&[]), Limits::default()).await.unwrap();
    let error = call(&*toolkit, "ask", json!({})).await.unwrap_err();
    let expected = "my_server_1_toolkit.ask() asked and nobody was there to answer: The MCP server `my server-1` asks: \
                    What now?\nname (Whose?) [`decline` to refuse]; it was declined, and the tool said: \
                    {\"action\": \"decline\"}";
    assert_eq!(error.message, expected);
    assert!(error.hint.unwrap().contains("system_toolkit.ask_user()"));
}

#[tokio::test]
async fn another_sessions_person_is_not_asked() {
    let toolkit = connect(scripted(&[]), Limits::default()).await.unwrap();
    let (script, context) = person(&["Ada", "1", "yes"]);
    let other = SessionContext { session: "other".to_owned(), ..SessionContext::default() };
    // Which of the two the question belongs to cannot be known.
    let hanging = call_for(other, &*toolkit, "hang", json!({}));
    let asking = async {
        let answer = call_for(context, &*toolkit, "ask", json!({})).await.unwrap();
        assert_eq!(answer, json!({"action": "decline"}));
    };
    tokio::select! {
        biased;
        result = hanging => panic!("{result:?}"),
        () = asking => {}
    }
    assert!(script.asked.lock().unwrap().is_empty());
}

#[tokio::test]
async fn the_reference_servers_form_is_filled_in() {
    let server = program("everything", node("mcp-server-everything"), &["stdio"]);
    let toolkit = connect(server, Limits::default()).await.unwrap();
    until(|| toolkit.declaration().operation("trigger_elicitation_request").is_some()).await;
    let (script, context) = person(&["Ada"]);
    let answer = call_for(context, &*toolkit, "trigger_elicitation_request", json!({})).await;
    let (question, _) = script.asked.lock().unwrap().first().cloned().unwrap();
    assert!(question.starts_with("The MCP server `everything` asks: "), "{question}");
    // The script has one answer and the form more fields: the rest is nobody's, and the server is told so.
    let error = answer.unwrap_err();
    assert!(error.message.contains("nobody was there"), "{error}");
}

#[tokio::test]
async fn a_server_of_the_newer_protocol_asks_by_its_answer() {
    let (_process, url) = fixture("http_server.py", &[]);
    let mut server = address(&url, Transport::Streamable);
    let fimble_mcp::Endpoint::Url { headers, .. } = &mut server.endpoint else { panic!("{server:?}") };
    headers.insert("X-Key".to_owned(), "open".to_owned());
    let toolkit = connect(server, Limits::default()).await.unwrap();
    let (script, context) = person(&["Ada"]);
    assert_eq!(call_for(context, &*toolkit, "greet", json!({})).await, Ok(json!("Hello, Ada!")));
    assert_eq!(script.asked.lock().unwrap().len(), 1);
    let error = call(&*toolkit, "greet", json!({})).await.unwrap_err();
    assert!(error.message.contains("nobody was there to answer"), "{error}");
}

#[tokio::test]
async fn progress_keeps_a_call_alive_up_to_a_limit() {
    // The call takes four seconds and shows progress every half.
    let limits = Limits { call: Duration::from_secs(3), ..Limits::default() };
    let toolkit = connect(scripted(&[]), limits).await.unwrap();
    assert_eq!(call(&*toolkit, "progress", json!({})).await, Ok(json!("done")));
    let limits = Limits { call_most: Duration::from_millis(1_200), ..limits };
    let toolkit = connect(scripted(&[]), limits).await.unwrap();
    let error = call(&*toolkit, "progress", json!({})).await.unwrap_err();
    assert_eq!(error.kind, fimble_toolkit::ErrorKind::Timeout);
}

/// Keeps the steps that it is told.
#[derive(Default)]
struct Steps(Mutex<Vec<Step>>);

impl Watches for Steps {
    fn watch(&self, _key: &str, step: Step) {
        self.0.lock().unwrap().push(step);
    }
}

#[tokio::test]
async fn what_a_server_says_of_its_progress_is_told() {
    let toolkit = connect(program("everything", node("mcp-server-everything"), &["stdio"]), Limits::default()).await;
    let steps = Arc::new(Steps::default());
    let progress = Progress::new(Arc::clone(&steps) as Arc<dyn Watches>);
    let context = SessionContext { progress, ..SessionContext::default() };
    let arguments = json!({"duration": 0.6, "steps": 3});
    call_for(context, &*toolkit.unwrap(), "trigger_long_running_operation", arguments).await.unwrap();
    let told: Vec<_> = steps.0.lock().unwrap().iter().map(|step| (step.done, step.total)).collect();
    assert_eq!(told, [1.0, 2.0, 3.0].map(|done| (Some(done), Some(3.0))));
}
