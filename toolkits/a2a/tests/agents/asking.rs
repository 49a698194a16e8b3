//! What an agent on the official SDK tells and asks while it works.

use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use fimble_a2a::{Limits, connect};
use fimble_toolkit::{Answers, Person, Poll, Progress, SessionContext, Step, Watches};
use serde_json::{Value, json};

use crate::sdk::{start, told};
use crate::{agent, call, call_for, made, reached};

/// Gives the answers that it was told to give, and keeps what it was asked and told.
#[derive(Default)]
struct Script {
    answers: Mutex<Vec<&'static str>>,
    asked: Mutex<Vec<String>>,
    steps: Mutex<Vec<String>>,
}

#[async_trait]
impl Answers for Script {
    async fn answer(&self, question: &str, _choices: &[String]) -> Option<String> {
        self.asked.lock().unwrap().push(question.to_owned());
        let mut answers = self.answers.lock().unwrap();
        (!answers.is_empty()).then(|| answers.remove(0).to_owned())
    }
}

impl Watches for Script {
    fn watch(&self, _key: &str, step: Step) {
        self.steps.lock().unwrap().push(step.text);
    }
}

fn script(answers: &[&'static str]) -> (Arc<Script>, SessionContext) {
    let script = Arc::new(Script { answers: Mutex::new(answers.to_vec()), ..Script::default() });
    let context = SessionContext {
        person: Person::new(Arc::clone(&script) as Arc<dyn Answers>),
        progress: Progress::new(Arc::clone(&script) as Arc<dyn Watches>),
        ..SessionContext::default()
    };
    (script, context)
}

/// What `ask` comes to with these answers, and what was asked.
async fn asks(arguments: &[&str], answers: &[&'static str], limits: Limits) -> (Value, Vec<String>) {
    let (_running, url) = start(arguments);
    let toolkit = connect(agent(&url), limits).await.unwrap();
    let (script, context) = script(answers);
    let answer = call_for(context, &*toolkit, "send", json!({"message": "ask"})).await.unwrap();
    let asked = script.asked.lock().unwrap().clone();
    (told(answer).0, asked)
}

#[tokio::test]
async fn a_person_answers_what_an_agent_asks() {
    for arguments in [&[][..], &["plain"]] {
        let (answer, asked) = asks(arguments, &["again", "Bergen"], Limits::default()).await;
        assert_eq!((&answer["state"], &answer["text"]), (&json!("completed"), &json!("Rain in Bergen.")));
        assert_eq!(asked, ["Which city?", "Which city, then?"]);
    }
}

#[tokio::test]
async fn the_program_gets_what_nobody_answers_and_what_is_asked_too_often() {
    let (answer, asked) = asks(&[], &[], Limits::default()).await;
    assert_eq!((&answer["state"], &answer["question"]), (&json!("input_required"), &json!("Which city?")));
    assert_eq!(asked, ["Which city?"]);
    let few = Limits { questions: 2, ..Limits::default() };
    let (answer, asked) = asks(&[], &["again", "again", "again"], few).await;
    assert_eq!((&answer["state"], &answer["question"]), (&json!("input_required"), &json!("Which city, then?")));
    assert_eq!(asked.len(), 2);
}

#[tokio::test]
async fn what_an_agent_does_is_told_while_it_works() {
    let (_running, url) = start(&[]);
    let (script, context) = script(&[]);
    let answer = call_for(context, &*reached(&url).await, "send", json!({"message": "steps"})).await.unwrap();
    assert_eq!(answer["text"], "Baked.");
    let steps = script.steps.lock().unwrap().clone();
    assert_eq!(steps, ["working", "weighs", "mixes", "bakes"]);
}

#[tokio::test]
async fn a_task_is_gone_on_with_by_what_it_is_found_by_and_stopped() {
    let (_running, url) = start(&[]);
    let send = |message: &str| made(SessionContext::default(), "send", json!({"message": message}));
    let Poll::Pending(pending) = reached(&url).await.begin(send("slow")).await.unwrap() else {
        panic!("it is no task");
    };
    assert_eq!(pending.what, "the agent `cook` works at it");
    // As another process would.
    let other = reached(&url).await;
    let looked = other.poll(send("slow"), &pending.task).await.unwrap();
    assert!(matches!(&looked, Poll::Pending(again) if again.task == pending.task), "{looked:?}");
    other.abandon(send("slow"), &pending.task).await;
    let Poll::Ready(ended) = other.poll(send("slow"), &pending.task).await.unwrap() else { panic!("it goes on") };
    assert_eq!((&ended["state"], &ended["text"]), (&json!("canceled"), &json!("Stopped.")));
    assert_eq!(told(call(&*other, "send", json!({"message": "cancelled"})).await.unwrap()).0["text"], "1");
    let unknown = other.poll(send("slow"), &json!({"x": 1})).await.unwrap_err().to_string();
    assert!(unknown.contains("what a task was found by is unknown"), "{unknown}");
}
