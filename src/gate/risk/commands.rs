//! Commands that destroy much at once, in argument vectors and in lines for a shell.

use serde_json::Value;

use super::{Analyser, code_arguments};
use crate::gate::policy::Subject;

/// Programs that run what follows them.
const RUNNERS: [&str; 9] = ["sudo", "doas", "env", "nice", "nohup", "time", "timeout", "xargs", "exec"];
/// Shells, whose `-c` is a line.
const SHELLS: [&str; 6] = ["sh", "bash", "dash", "zsh", "ksh", "ash"];
/// Lines within lines that are looked into.
const DEPTH: usize = 4;
/// Words of one command that are looked at.
const WORDS: usize = 1_000;
/// Words after one that runs others, among which the program is looked for.
const RUN_WITHIN: usize = 20;

pub(super) struct Commands;

impl Analyser for Commands {
    fn analyse(&self, call: &Subject<'_>) -> Option<String> {
        code_arguments(call).find_map(|value| match value {
            Value::String(line) => in_line(line, DEPTH),
            Value::Array(items) if items.iter().all(Value::is_string) => {
                let words: Vec<&str> = items.iter().filter_map(Value::as_str).collect();
                // A program and its arguments, or several lines.
                in_words(&words, DEPTH).or_else(|| {
                    let lines = words.iter().filter(|word| word.contains(' '));
                    lines.into_iter().find_map(|line| in_line(line, DEPTH))
                })
            }
            _ => None,
        })
    }
}

fn in_line(line: &str, depth: usize) -> Option<String> {
    if line.replace(' ', "").contains(":(){:|:&};:") {
        return Some("would start processes without end".to_owned());
    }
    let commands = line.split(['\n', ';', '|', '&', '(', ')', '`', '{', '}']);
    commands.filter(|command| !command.trim().is_empty()).find_map(|command| {
        // Quotes may be open where it was cut.
        let words =
            shell_words::split(command).unwrap_or_else(|_| command.split_whitespace().map(str::to_owned).collect());
        in_words(&words.iter().map(String::as_str).collect::<Vec<_>>(), depth)
    })
}

fn in_words(words: &[&str], depth: usize) -> Option<String> {
    let words = &words[..words.len().min(WORDS)];
    let is_runner = |word: &&str| RUNNERS.contains(&name_of(word)) || word.contains('=');
    let places = if words.first().is_some_and(is_runner) { 0..words.len().min(RUN_WITHIN) } else { 0..1 };
    // The options of what runs others are passed over one by one: what is run is found all the same.
    places.into_iter().find_map(|from| run(&words[from..], depth))
}

fn name_of(program: &str) -> &str {
    program.rsplit('/').next().unwrap_or(program)
}

fn run(words: &[&str], depth: usize) -> Option<String> {
    let (program, arguments) = words.split_first()?;
    let program = name_of(program);
    let depth = depth.checked_sub(1)?;
    if SHELLS.contains(&program) {
        let is_line = |word: &&str| word.starts_with('-') && !word.starts_with("--") && word.ends_with('c');
        let at = arguments.iter().position(is_line)?;
        return in_line(arguments.get(at + 1)?, depth);
    }
    grave(program, arguments).map(str::to_owned)
}

fn grave(program: &str, arguments: &[&str]) -> Option<&'static str> {
    let has = |word: &str| arguments.contains(&word);
    let has_letter = |letters: &[char]| {
        arguments.iter().any(|word| word.starts_with('-') && !word.starts_with("--") && word.contains(letters))
    };
    let mut targets = arguments.iter().filter(|word| !word.starts_with('-'));
    match program {
        "rm" if (has_letter(&['r', 'R']) || has("--recursive")) && targets.clone().any(|word| is_large(word)) => {
            Some("would remove a whole tree of files")
        }
        "rm" | "unlink" | "shred" if targets.any(|word| word.contains(['*', '?'])) => {
            Some("would remove files by a wildcard")
        }
        "find" if has("-delete") || has("rm") => Some("would remove all files that are found"),
        "dd" if arguments.iter().any(|word| word.starts_with("of=/dev/")) => Some("would write over a device"),
        "wipefs" | "mkswap" | "fdisk" | "parted" | "sgdisk" => Some("would change a disk"),
        _ if program == "mkfs" || program.starts_with("mkfs.") => Some("would make a new file system on a disk"),
        "chmod" | "chown" if (has_letter(&['R']) || has("--recursive")) && targets.any(|word| is_large(word)) => {
            Some("would change the rights of a whole tree of files")
        }
        "git" => match arguments.iter().find(|word| !word.starts_with('-')).copied()? {
            "push" if has("--force") || has("--mirror") || has("--delete") || has_letter(&['f', 'd']) => {
                Some("would write over what is pushed")
            }
            "reset" if has("--hard") => Some("would throw away changes (`git reset --hard`)"),
            "clean" if has_letter(&['f']) || has("--force") => Some("would remove files that git does not know"),
            _ => None,
        },
        "shutdown" | "reboot" | "halt" | "poweroff" => Some("would stop the machine"),
        "kill" if arguments.len() > 1 && arguments.last() == Some(&"-1") => Some("would end all processes"),
        "kubectl" if has("delete") && (has("--all") || has("namespace") || has("ns")) => {
            Some("would delete many objects of the cluster")
        }
        "docker" | "podman" if has("prune") => Some("would delete all that is not in use"),
        "terraform" | "tofu" if has("destroy") => Some("would destroy all that it manages"),
        "redis-cli" if arguments.iter().any(|word| word.to_lowercase().starts_with("flush")) => {
            Some("would delete all keys")
        }
        "dropdb" => Some("would drop a database"),
        _ => None,
    }
}

/// A folder with much in it: the root, one right below it, a home, here, above, or a wildcard.
fn is_large(path: &str) -> bool {
    let trimmed = path.trim_end_matches('/');
    let parts = path.split('/').filter(|part| !part.is_empty() && *part != ".").count();
    (path.starts_with('/') && parts <= 1)
        || ["", ".", "..", "~", "$HOME", "${HOME}"].contains(&trimmed)
        || path.contains(['*', '?'])
        || path.split('/').any(|part| part == "..")
        || (path.starts_with("/home/") && parts <= 2)
}
