//! One turn with the real local model on a real repository, judged by its effect and its journal, not by its wording.

#![expect(clippy::unwrap_used, reason = "a test may stop at the first surprise")]

use std::path::PathBuf;
use std::process::{Command, Output};

use serde_json::Value;

/// What the model can only know by asking the repository, and questions for it. A model this small answers most of them,
/// and which ones differs between processors, so one answer of four is asked for; all of them must end in order.
const SUBJECT: &str = "Replace the quince marmalade";
const AUTHOR: &str = "Wilhelmina";
const BRANCH: &str = "autumn-larder";
const QUESTIONS: [(&str, &str); 4] = [
    ("What is the subject of the last commit?", SUBJECT),
    ("Who is the author of the last commit?", AUTHOR),
    ("Which branch is checked out?", BRANCH),
    ("What are the subjects of the last 2 commits?", SUBJECT),
];

struct Home {
    folder: tempfile::TempDir,
}

impl Home {
    fn repository(&self) -> PathBuf {
        self.folder.path().join("repository")
    }

    fn git(&self, arguments: &[&str]) {
        let identity = ["-c", &format!("user.name={AUTHOR}"), "-c", "user.email=w@example.com"];
        let output =
            Command::new("git").args(identity).args(arguments).current_dir(self.repository()).output().unwrap();
        assert!(output.status.success(), "git {arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
    }

    /// Runs the binary. The cache stays the user's own: the model is there.
    fn fimble(&self, arguments: &[&str]) -> Output {
        Command::new(env!("CARGO_BIN_EXE_fimble"))
            .args(arguments)
            .current_dir(self.repository())
            .env("XDG_DATA_HOME", self.folder.path().join("data"))
            .env("XDG_CONFIG_HOME", self.folder.path().join("config"))
            .env_remove("OPENAI_API_KEY")
            .env_remove("OPENAI_BASE_URL")
            .output()
            .unwrap()
    }

    /// The events of one turn, which ended in order: it replied, or said why it did not.
    fn ask(&self, question: &str) -> Vec<Value> {
        let output = self.fimble(&["chat", "--json", "--ask", question]);
        let stdout = String::from_utf8(output.stdout).unwrap();
        let stderr = String::from_utf8_lossy(&output.stderr);
        // Replied, gave up, ended by a limit, asked back: all of them ends of a turn.
        assert!(matches!(output.status.code(), Some(0 | 1 | 3 | 4)), "{:?}: {stdout}\n{stderr}", output.status);
        let events: Vec<Value> = stdout.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        let last = events.iter().rfind(|event| event["seq"] != 0).unwrap();
        assert_eq!(last["type"], "RUN_FINISHED", "{stdout}\n{stderr}");
        events
    }
}

/// True if a call of the git toolkit answered with `fact`, and a reply has it.
fn is_answered(events: &[Value], fact: &str) -> bool {
    let of_type = |kind: &'static str| events.iter().filter(move |event| event["type"] == kind);
    let mut asked = of_type("TOOL_CALL_CHUNK")
        .filter(|event| event["toolCallName"].as_str().unwrap().starts_with("git_toolkit."))
        .map(|event| &event["toolCallId"]);
    let told = asked.any(|id| {
        of_type("TOOL_CALL_RESULT").any(|event| {
            event["toolCallId"] == *id && event["failed"] == false && event["content"].as_str().unwrap().contains(fact)
        })
    });
    told && of_type("TEXT_MESSAGE_CHUNK").any(|event| event["delta"].as_str().unwrap().contains(fact))
}

#[test]
fn a_question_about_a_repository_is_answered_by_a_program_that_asked_it() {
    let home = Home { folder: tempfile::tempdir().unwrap() };
    std::fs::create_dir(home.repository()).unwrap();
    home.git(&["init", "--quiet", &format!("--initial-branch={BRANCH}")]);
    for subject in ["Start a larder", SUBJECT] {
        std::fs::write(home.repository().join("larder.txt"), subject).unwrap();
        home.git(&["add", "."]);
        home.git(&["commit", "--quiet", "--message", subject]);
    }

    let mut told = Vec::new();
    let answered = QUESTIONS.iter().find_map(|(question, fact)| {
        let events = home.ask(question);
        let session = events[0]["session"].as_str().unwrap().to_owned();
        let answered = is_answered(&events, fact).then_some((session, *fact));
        told.push(events);
        answered
    });
    let (session, fact) = answered.unwrap_or_else(|| panic!("no question was answered: {told:#?}"));

    // The journal: another process finds the session, its rounds and what was said.
    let shown = String::from_utf8(home.fimble(&["sessions", "show", &session]).stdout).unwrap();
    assert!(shown.contains("« ") && shown.contains(fact) && shown.contains("git_toolkit."), "{shown}");
}
