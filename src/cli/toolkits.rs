//! `fimble toolkits`: which there are, what the model sees of them, and one call by hand.

use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;

use clap::Subcommand;
use fimble_toolkit::{Answers, Declaration, ErrorKind, Operation, Person, SessionContext, ToolError};
use jiff::{SignedDuration, Timestamp};
use serde_json::{Map, Value};
use tokio::sync::mpsc::unbounded_channel;

use super::more_toolkits::MoreToolkits;
use super::new_toolkit::NewToolkit;
use super::output::write_data;
use super::show::{Format, Screen, milliseconds};
use super::toolkit_files::Named;
use super::{Failure, check_toolkit, more_toolkits, open, secrets, toolkit_files};
use crate::config::Config;
use crate::gate::Gate;
use crate::registry::Registry;
use crate::session::{RoundStatistics, call_statistics, round_statistics};

/// Show and call toolkits.
#[derive(Debug, Subcommand)]
pub(super) enum Toolkits {
    /// One line a toolkit.
    List,
    /// The operations of one, with signatures, risks and notes.
    Show {
        /// The toolkit's name, e.g. `git_toolkit`, or the path of a file or folder of toolkits.
        #[arg(value_name = "NAME|PATH")]
        name: String,
    },
    /// What the model sees of one.
    Stub {
        /// The toolkit's name, or a path.
        #[arg(value_name = "NAME|PATH")]
        name: String,
    },
    New(NewToolkit),
    /// Say what an author should look at: names, docs, types, risk, idempotency, timeouts, tokens. Exit code 1 for errors.
    Check {
        /// The toolkit's name, or a path. Default: all toolkits that are there.
        #[arg(value_name = "NAME|PATH")]
        name: Option<String>,
    },
    /// How often your programs called them, how long it took and how it failed, and how the programs themselves ended, from the
    /// journal of all sessions.
    Stats {
        /// Of one toolkit only.
        name: Option<String>,
        /// Only calls and rounds of the last N days.
        #[arg(long, value_name = "N")]
        days: Option<u32>,
        /// Print one JSON object an operation, and one with `rounds` unless a toolkit is named.
        #[arg(long)]
        json: bool,
    },
    /// Log in to an MCP server, in the browser.
    Login {
        /// The server's name, or the path of the file that names it.
        #[arg(value_name = "NAME|PATH")]
        server: String,
        /// Ask to be allowed this too; may be given several times. Default: what the server names.
        #[arg(long = "scope", value_name = "SCOPE")]
        scopes: Vec<String>,
        /// Forget the login instead.
        #[arg(long)]
        forget: bool,
    },
    /// Call one operation; the result is JSON on standard output.
    Call {
        /// The toolkit's name, or a path that holds one toolkit.
        #[arg(value_name = "NAME|PATH")]
        name: String,
        /// The operation's name.
        operation: String,
        /// Arguments as `name=value`; a value that is JSON is read as such.
        #[arg(value_name = "K=V")]
        arguments: Vec<String>,
        /// Approve what policy would ask for.
        #[arg(short, long)]
        yes: bool,
    },
}

impl Toolkits {
    pub(super) async fn execute(self, mut config: Config, more: &MoreToolkits) -> Result<ExitCode, Failure> {
        match self {
            Toolkits::New(new) => new.execute(more),
            Toolkits::Stats { name, days, json } => statistics(&config, name.as_deref(), days, json).await,
            Toolkits::Login { server, scopes, forget } => login(&config, &server, scopes, forget).await,
            Toolkits::List => {
                let gate = open::gate(&config).await?;
                for declaration in gate.declarations_in(&gate.scope(open::TENANT)).iter() {
                    let summary = declaration.description.lines().next().unwrap_or_default().to_owned();
                    out!("{:<18} {:>3} operations  {summary}", declaration.name, declaration.operations.len());
                }
                Ok(ExitCode::SUCCESS)
            }
            Toolkits::Show { name } => {
                for declaration in Meant::by(&config, Some(&name)).await?.tell_warnings().declarations {
                    out!("{}: {}", declaration.name, declaration.description);
                    for operation in declaration.operations.iter().filter(|operation| operation.enabled) {
                        out!("\n{}  [{}]", fimble_toolkit::signature(operation), operation.risk);
                        out!("    {}", operation.description.replace('\n', "\n    "));
                    }
                }
                Ok(ExitCode::SUCCESS)
            }
            Toolkits::Stub { name } => {
                let meant = Meant::by(&config, Some(&name)).await?.tell_warnings();
                write_data(&format!("{}\n", crate::prompt::stubs(&meant.declarations, crate::prompt::Budget::ALL)));
                Ok(ExitCode::SUCCESS)
            }
            Toolkits::Check { name } => Ok(match Meant::by(&config, name.as_deref()).await {
                Ok(meant) => check_toolkit::tell(&meant.declarations, &meant.warnings, config.prompt.stub_tokens),
                // What is wrong within a file is what was asked for; a name that nothing has is wrong usage.
                Err(failure) if name.as_deref().and_then(toolkit_files::as_path).is_some_and(|path| path.exists()) => {
                    check_toolkit::tell_unusable(&failure)
                }
                Err(failure) => return Err(failure),
            }),
            Toolkits::Call { name, operation, arguments, yes } => {
                if yes {
                    config.gate.policy = config.gate.policy.approving();
                }
                call(&config, &name, &operation, &arguments).await
            }
        }
    }
}

/// The toolkits that an argument means.
struct Meant {
    gate: Arc<Gate>,
    declarations: Vec<Declaration>,
    warnings: Vec<String>,
}

impl Meant {
    /// By a name, or by the path of a file or folder; without either all that are there.
    async fn by(config: &Config, name: Option<&str>) -> Result<Self, Failure> {
        let Some(path) = name.and_then(toolkit_files::as_path) else {
            let gate = open::gate(config).await?;
            let scope = gate.scope(open::TENANT);
            let mut declarations = gate.registry().declarations_in(&scope).to_vec();
            if let Some(name) = name {
                declarations = gate.declarations_in(&scope).to_vec();
                let names: Vec<_> = declarations.iter().map(|declaration| declaration.name.clone()).collect();
                declarations.retain(|declaration| declaration.name == name);
                if declarations.is_empty() {
                    return Err(Failure::usage(format!("there is no toolkit `{name}`"))
                        .with_hint(format!("there are {}", names.join(", "))));
                }
            }
            return Ok(Self { gate, declarations, warnings: Vec::new() });
        };
        // First, because toolkits take theirs from them.
        let secrets = secrets::all(config).await?;
        let registry = Registry::new();
        let mut warnings = Vec::new();
        for loaded in toolkit_files::load(path, &more_toolkits::server_settings(config)).await? {
            registry
                .register(loaded.toolkit)
                .map_err(|error| Failure::usage(error.to_string()).with_hint(error.hint()))?;
            warnings.extend(loaded.warnings);
        }
        let declarations = registry.declarations();
        Ok(Self { gate: open::gate_before(config, Arc::new(registry), secrets)?, declarations, warnings })
    }

    fn tell_warnings(self) -> Self {
        self.warnings.iter().for_each(|warning| note!("warning: {warning}"));
        self
    }
}

/// Makes one call and prints its result.
async fn call(config: &Config, meant: &str, operation: &str, arguments: &[String]) -> Result<ExitCode, Failure> {
    let failed = |error: ToolError| Failure {
        code: if error.kind == ErrorKind::Denied { 4 } else { 1 },
        message: error.message.clone(),
        hint: error.hint,
    };
    let (gate, name) = match toolkit_files::as_path(meant) {
        None => (open::gate(config).await?, meant.to_owned()),
        Some(_) => {
            let meant_by = Meant::by(config, Some(meant)).await?.tell_warnings();
            let names: Vec<_> = meant_by.declarations.into_iter().map(|declaration| declaration.name).collect();
            let [name] = &names[..] else {
                return Err(Failure::usage(format!("`{meant}` holds {} toolkits", names.len())).with_hint(format!(
                    "name one of their files, or add the folder: fimble --toolkits {meant} toolkits call {} …",
                    names[0]
                )));
            };
            (meant_by.gate, name.clone())
        }
    };
    // Listed, but not in the registry: a toolkit that each round makes for itself.
    let is_registered = gate.registry().declarations().iter().any(|declaration| declaration.name == name);
    let scope = gate.scope(open::TENANT);
    if !is_registered && gate.declarations_in(&scope).iter().any(|declaration| declaration.name == name) {
        return Err(Failure::usage(format!("`{name}` belongs to a running program"))
            .with_hint(format!("write `await {name}.{operation}(…)` in a program and use `fimble run`")));
    }
    let (_, found) = gate.registry().find_in(&scope, &name, operation).map_err(failed)?;
    let keyword = keyword(&found, arguments)?;
    let mut screen = Screen::of_script(Format::Text);
    let person = Arc::new(screen.person());
    let context = SessionContext {
        user: open::user(),
        tenant: open::TENANT.to_owned(),
        person: Person::new(Arc::clone(&person) as Arc<dyn Answers>),
        ..SessionContext::default()
    };
    let call = gate.call_by_hand(&name, operation, keyword, context, person.as_ref());
    // No session, no events: the screen is here for the approval.
    let result = screen.watch(&mut unbounded_channel().1, call).await.map_err(failed)?;
    write_data(&format!("{}\n", serde_json::to_string_pretty(&result).unwrap_or_default()));
    Ok(ExitCode::SUCCESS)
}

/// Shows the address to visit, and waits for the browser to come back.
async fn login(config: &Config, name: &str, scopes: Vec<String>, forget: bool) -> Result<ExitCode, Failure> {
    let settings = more_toolkits::server_settings(config);
    let Named { server, file } = &mut meant_server(config, name)?;
    if forget {
        let forgot = fimble_mcp::logout(server, &settings);
        note!("{}", if forgot { "forgotten" } else { "there was no login" });
        return Ok(ExitCode::SUCCESS);
    }
    if let fimble_mcp::Endpoint::Url { client, .. } = &mut server.endpoint {
        client.scopes.extend(scopes);
    }
    let told = fimble_mcp::login(server, &settings, |address| note!("visit {address}"));
    told.await.map_err(|error| Failure::new(5, error.to_string()).with_hint(error.hint()))?;
    note!("logged in to `{}` of {}", server.name, file.display());
    Ok(ExitCode::SUCCESS)
}

/// The one MCP server that a name or a path means.
fn meant_server(config: &Config, meant: &str) -> Result<Named, Failure> {
    let all = toolkit_files::servers(config, &[])?;
    let there: Vec<String> = all.iter().map(|named| named.server.name.clone()).collect();
    let is_meant = |named: &Named| named.server.name == meant || named.server.toolkit_name() == meant;
    let mut servers: Vec<Named> = all.into_iter().filter(is_meant).collect();
    if servers.is_empty() && Path::new(meant).exists() {
        servers = toolkit_files::servers_at(Path::new(meant))?;
    }
    match servers.len() {
        0 => Err(Failure::usage(format!("there is no MCP server `{meant}`")).with_hint(match there.is_empty() {
            true => "name its file, or the file by `--mcp` or `toolkits.mcp`".to_owned(),
            false => format!("there are {}; or name its file", there.join(", ")),
        })),
        1 => Ok(servers.remove(0)),
        count => {
            let commands: Vec<String> = servers.into_iter().filter_map(|named| named.server.login).collect();
            Err(Failure::usage(format!("`{meant}` means {count} MCP servers"))
                .with_hint(format!("write one of these: {}", commands.join(", "))))
        }
    }
}

/// One line an operation, the errors by kind at its end.
async fn statistics(config: &Config, name: Option<&str>, days: Option<u32>, json: bool) -> Result<ExitCode, Failure> {
    let since = days.map_or(Timestamp::UNIX_EPOCH, |days| {
        Timestamp::now()
            .saturating_sub(SignedDuration::from_hours(24 * i64::from(days)))
            .unwrap_or(Timestamp::UNIX_EPOCH)
    });
    let store = open::store(config).await?;
    let found = call_statistics(store.as_ref(), open::TENANT, &open::user(), since).await?;
    let found: Vec<_> = found.iter().filter(|one| name.is_none_or(|name| one.toolkit == name)).collect();
    if found.is_empty() {
        let of = name.map_or(String::new(), |name| format!(" of `{name}`"));
        let within = days.map_or(String::new(), |days| format!(" in the last {days} days"));
        note!("the journal has no calls{of}{within}\n\nhint: `fimble toolkits list` shows the toolkits' names");
    }
    for (number, one) in found.into_iter().enumerate() {
        if json {
            write_data(&format!("{}\n", serde_json::to_string(one).unwrap_or_default()));
            continue;
        }
        if number == 0 {
            out!(
                "{:<40} {:>7} {:>7} {:>10} {:>10} {:>10}  ERRORS",
                "OPERATION",
                "CALLS",
                "FAILED",
                "MEDIAN",
                "P95",
                "LONGEST"
            );
        }
        let failed: u64 = one.errors.values().sum();
        let errors: Vec<String> = one.errors.iter().map(|(kind, count)| format!("{kind} {count}")).collect();
        let open = if one.open == 0 { String::new() } else { format!("  ({} without an end)", one.open) };
        out!(
            "{:<40} {:>7} {:>7} {:>10} {:>10} {:>10}  {}{open}",
            format!("{}.{}", one.toolkit, one.operation),
            one.calls,
            failed,
            milliseconds(one.median_ms),
            milliseconds(one.p95_ms),
            milliseconds(one.longest_ms),
            if errors.is_empty() { "-".to_owned() } else { errors.join(", ") }
        );
    }
    if name.is_none() {
        let rounds = round_statistics(store.as_ref(), open::TENANT, &open::user(), since).await?;
        if json {
            write_data(&format!("{}\n", serde_json::to_string(&rounds).unwrap_or_default()));
        } else if rounds.rounds > 0 {
            print_rounds(&rounds);
        }
    }
    Ok(ExitCode::SUCCESS)
}

/// How the programs ended, in one line.
fn print_rounds(counted: &RoundStatistics) {
    let RoundStatistics { rounds, finished, errors, open, .. } = counted;
    let ended = rounds - open;
    let failed: Vec<String> = errors.iter().map(|(kind, count)| format!("{kind} {count}")).collect();
    let failed = if failed.is_empty() { String::new() } else { format!(": {}", failed.join(", ")) };
    let open = if *open == 0 { String::new() } else { format!("  ({open} without an end)") };
    out!(
        "rounds: {rounds}, {:.0} % of those that ended ran to their end, {} did not{failed}{open}; median {}, p95 {}",
        100.0 * counted.success_rate,
        ended - finished,
        milliseconds(counted.median_ms),
        milliseconds(counted.p95_ms)
    );
}

/// `name=value` pairs as keyword arguments. A value is read as JSON where the parameter is no plain string.
pub(super) fn keyword(operation: &Operation, pairs: &[String]) -> Result<Map<String, Value>, Failure> {
    let mut arguments = Map::new();
    for pair in pairs {
        let (name, text) = pair.split_once('=').ok_or_else(|| {
            Failure::usage(format!("`{pair}` has no `=`")).with_hint("write arguments as `name=value`")
        })?;
        let parameter = operation.parameters.iter().find(|parameter| parameter.name == name);
        let takes_text = parameter.is_some_and(|parameter| accepts_text(&parameter.schema));
        let value = if takes_text { None } else { serde_json::from_str(text).ok() };
        arguments.insert(name.to_owned(), value.unwrap_or_else(|| Value::String(text.to_owned())));
    }
    Ok(arguments)
}

/// True if a JSON Schema's `type` is or contains `string`.
fn accepts_text(schema: &Value) -> bool {
    match schema.get("type") {
        Some(Value::String(name)) => name == "string",
        Some(Value::Array(names)) => names.iter().any(|name| name == "string"),
        _ => false,
    }
}
