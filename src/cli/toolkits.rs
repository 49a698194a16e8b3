//! `fimble toolkits`: which there are, what the model sees of them, and one call by hand.

use std::process::ExitCode;

use clap::Subcommand;
use fimble_toolkit::{ErrorKind, Operation, SessionContext, ToolError};
use serde_json::{Map, Value};
use tokio::sync::mpsc::unbounded_channel;

use super::output::write_data;
use super::show::{Format, Screen};
use super::{Failure, open};
use crate::config::Config;

/// Show and call toolkits.
#[derive(Debug, Subcommand)]
pub(super) enum Toolkits {
    /// One line a toolkit.
    List,
    /// The operations of one, with signatures, risks and notes.
    Show {
        /// The toolkit's name, e.g. `git_toolkit`.
        name: String,
    },
    /// What the model sees of one.
    Stub {
        /// The toolkit's name.
        name: String,
    },
    /// Call one operation; the result is JSON on standard output.
    Call {
        /// The toolkit's name.
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
    pub(super) async fn execute(self, mut config: Config) -> Result<ExitCode, Failure> {
        if let Toolkits::Call { yes: true, .. } = self {
            config.gate.policy = config.gate.policy.approving();
        }
        let gate = open::gate(&config).await?;
        let declared = |name: &str| {
            let declarations = gate.declarations();
            let names: Vec<_> = declarations.iter().map(|declaration| declaration.name.clone()).collect();
            declarations.into_iter().find(|declaration| declaration.name == name).ok_or_else(|| {
                Failure::usage(format!("there is no toolkit `{name}`"))
                    .with_hint(format!("there are {}", names.join(", ")))
            })
        };
        match self {
            Toolkits::List => {
                for declaration in gate.declarations() {
                    let summary = declaration.description.lines().next().unwrap_or_default().to_owned();
                    out!("{:<18} {:>3} operations  {summary}", declaration.name, declaration.operations.len());
                }
            }
            Toolkits::Show { name } => {
                let declaration = declared(&name)?;
                out!("{}: {}", declaration.name, declaration.description);
                for operation in declaration.operations.iter().filter(|operation| operation.enabled) {
                    out!("\n{}  [{}]", fimble_toolkit::signature(operation), operation.risk);
                    out!("    {}", operation.description.replace('\n', "\n    "));
                }
            }
            Toolkits::Stub { name } => write_data(&crate::prompt::stubs(&[declared(&name)?], u32::MAX)),
            Toolkits::Call { name, operation, arguments, .. } => {
                let failed = |error: ToolError| Failure {
                    code: if error.kind == ErrorKind::Denied { 4 } else { 1 },
                    message: error.message.clone(),
                    hint: error.hint,
                };
                // Listed, but not in the registry: a toolkit that each round makes for itself.
                let is_registered = gate.registry().declarations().iter().any(|declaration| declaration.name == name);
                if !is_registered && declared(&name).is_ok() {
                    return Err(Failure::usage(format!("`{name}` belongs to a running program"))
                        .with_hint(format!("write `await {name}.{operation}(…)` in a program and use `fimble run`")));
                }
                let (_, found) = gate.registry().find(&name, &operation).map_err(failed)?;
                let context =
                    SessionContext { user: open::user(), tenant: open::TENANT.to_owned(), ..SessionContext::default() };
                let keyword = keyword(&found, &arguments)?;
                let mut screen = Screen::of_script(Format::Text);
                let person = screen.person();
                let call = gate.call_by_hand(&name, &operation, keyword, context, &person);
                // No session, no events: the screen is here for the approval.
                let result = screen.watch(&mut unbounded_channel().1, call).await.map_err(failed)?;
                write_data(&format!("{}\n", serde_json::to_string_pretty(&result).unwrap_or_default()));
            }
        }
        Ok(ExitCode::SUCCESS)
    }
}

/// `name=value` pairs as keyword arguments. A value is read as JSON where the parameter is no plain string.
fn keyword(operation: &Operation, pairs: &[String]) -> Result<Map<String, Value>, Failure> {
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
