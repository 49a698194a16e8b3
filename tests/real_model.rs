//! One turn with the real local model on a real repository, judged by its effect and its journal, not by its wording.

#![expect(clippy::unwrap_used, reason = "a test may stop at the first surprise")]

use std::path::Path;
use std::process::Command;

use serde_json::Value;

/// The subject that the model can only know by asking the repository.
const SUBJECT: &str = "Replace the quince marmalade";

fn git(folder: &Path, arguments: &[&str]) {
    let identity = ["-c", "user.name=Ada", "-c", "user.email=ada@example.com"];
    let output = Command::new("git").args(identity).args(arguments).current_dir(folder).output().unwrap();
    assert!(output.status.success(), "git {arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
}

#[test]
fn a_question_about_a_repository_is_answered_by_a_program_that_asked_it() {
    let home = tempfile::tempdir().unwrap();
    let repository = home.path().join("repository");
    std::fs::create_dir(&repository).unwrap();
    git(&repository, &["init", "--quiet", "--initial-branch=main"]);
    for subject in ["Start a larder", SUBJECT] {
        std::fs::write(repository.join("larder.txt"), subject).unwrap();
        git(&repository, &["add", "."]);
        git(&repository, &["commit", "--quiet", "--message", subject]);
    }

    // The cache stays the user's own: the model is there.
    let fimble = |arguments: &[&str]| {
        Command::new(env!("CARGO_BIN_EXE_fimble"))
            .args(arguments)
            .current_dir(&repository)
            .env("XDG_DATA_HOME", home.path().join("data"))
            .env("XDG_CONFIG_HOME", home.path().join("config"))
            .env_remove("OPENAI_API_KEY")
            .env_remove("OPENAI_BASE_URL")
            .output()
            .unwrap()
    };
    let output = fimble(&["chat", "--json", "--ask", "What is the subject of the last commit in this repository?"]);
    let stdout = String::from_utf8(output.stdout).unwrap();
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(0), "{stdout}\n{stderr}");
    let events: Vec<Value> = stdout.lines().map(|line| serde_json::from_str(line).unwrap()).collect();

    // The effect: a call of the git toolkit that answered with the subject, and a reply that has it.
    let of_type = |kind: &'static str| events.iter().filter(move |event| event["type"] == kind);
    let asked = of_type("TOOL_CALL_CHUNK")
        .filter(|event| event["toolCallName"].as_str().unwrap().starts_with("git_toolkit."))
        .map(|event| event["toolCallId"].clone());
    let answered = |id: &Value| {
        of_type("TOOL_CALL_RESULT").any(|event| {
            event["toolCallId"] == *id
                && event["failed"] == false
                && event["content"].as_str().unwrap().contains(SUBJECT)
        })
    };
    assert!(asked.into_iter().any(|id| answered(&id)), "{stdout}");
    assert!(of_type("TEXT_MESSAGE_CHUNK").any(|event| event["delta"].as_str().unwrap().contains(SUBJECT)), "{stdout}");

    // The journal: another process finds the session, its rounds and what was said.
    let session = events[0]["session"].as_str().unwrap();
    let shown = String::from_utf8(fimble(&["sessions", "show", session]).stdout).unwrap();
    assert!(shown.contains("« ") && shown.contains(SUBJECT) && shown.contains("git_toolkit."), "{shown}");
}
