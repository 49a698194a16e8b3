//! Another policy in the middle of a conversation.

use super::*;

#[test]
fn a_conversation_goes_on_under_another_policy() {
    let make = "await mark_toolkit.make(name='NAME')\nawait system_toolkit.send_message('NAME is there')";
    let programs = ["first", "second", "third"].map(|name| make.replace("NAME", name));
    let address = hot_plug::model(&programs.each_ref().map(String::as_str));
    let home = Home::new();
    let folder = home.folder.path().join("kits");
    std::fs::create_dir(&folder).unwrap();
    let manifest = format!(
        "name = 'mark_toolkit'\ndescription = 'Marks.'\n[[operation]]\nname = 'make'\ndescription = 'Makes one.'\n\
         command = ['touch', '{}/{{name}}']\nrisk = 'write'\nparams = {{ name = 'str' }}\n",
        home.folder.path().display()
    );
    std::fs::write(folder.join("mark.toml"), manifest).unwrap();
    let address = format!("llm.base_url={address}");
    let settings = ["-c", &address, "-c", "llm.model=m", "-c", "llm.fill=none", "-c", "agent.encoding=\"chat\""];
    let command = home.fimble(&[&settings[..], &["--toolkits", "kits", "chat"]].concat(), "");
    let mut terminal = Terminal::of(home, command, true);
    let made = |terminal: &Terminal, name: &str| terminal.home.folder.path().join(name).exists();

    hot_plug::say(&mut terminal, "/policy");
    terminal.wait_for("profile ask: read allow, write ask, destructive ask");
    hot_plug::say(&mut terminal, "/policy read-only");
    terminal.wait_for("profile read-only: read allow, write deny, destructive deny");
    hot_plug::say(&mut terminal, "make one");
    terminal.wait_for("policy denies write operations, so mark_toolkit.make was not called");
    hot_plug::say(&mut terminal, "/policy never");
    terminal.wait_for("there is no policy `never`; there are read-only, ask, auto, plan");
    hot_plug::say(&mut terminal, "/policy auto");
    terminal.wait_for("profile auto: read allow, write allow, destructive ask");
    hot_plug::say(&mut terminal, "make another");
    terminal.wait_for("→ mark_toolkit.make({\"name\":\"second\"})");
    assert!(!made(&terminal, "first") && made(&terminal, "second"));
    hot_plug::say(&mut terminal, "/policy ask");
    terminal.wait_for("profile ask");
    hot_plug::say(&mut terminal, "and a third");
    terminal.wait_for("[y/N/always/?] ");
    terminal.press("y\n");
    terminal.wait_for("→ mark_toolkit.make({\"name\":\"third\"})");
    assert!(made(&terminal, "third"));
    terminal.wait_for("\x1b[6n");
    terminal.press("\x1b[2;1R");
    terminal.wait_for("fimble");
    terminal.press("\u{4}");
    assert_eq!(terminal.end().0, Some(0));
}
