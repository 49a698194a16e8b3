//! One operation: checked once when its manifest is read, then run with a call's arguments.

use std::ffi::OsString;
use std::path::Path;
use std::time::Duration;

use fimble_toolkit::{Call, Operation as Declared, Preview, Risk, ToolError, is_python_name};
use serde_json::Value;

use crate::command::Command;
use crate::output::Output;
use crate::paging::paging;
use crate::parameter::{Argument, Parameter};
use crate::problem::Mistake;
use crate::request::Request;
use crate::running::Running;
use crate::written;

/// What a command may write or a server answer, in KiB, unless its manifest's `output_kib` says otherwise.
pub const DEFAULT_OUTPUT_KIB: u64 = 1_024;
/// The most that `output_kib` can say: 64 MiB.
pub const MOST_OUTPUT_KIB: u64 = 64 * 1_024;
/// The most that `timeout_s` can say: a day.
pub const MOST_TIMEOUT_S: f64 = 86_400.0;

#[derive(Debug)]
pub(crate) struct Operation {
    pub(crate) declared: Declared,
    parameters: Vec<Parameter>,
    action: Action,
}

#[derive(Debug)]
enum Action {
    Command(Running),
    Request(Box<Request>),
}

impl Operation {
    /// `home` is the manifest's folder; relative paths in it start there. `environment` are the names that the manifest declares.
    ///
    /// # Errors
    /// The first thing that makes no sense.
    pub(crate) fn new(written: written::Operation, home: &Path, environment: &[String]) -> Result<Self, Mistake> {
        let name = written.name.get_ref();
        let place = written.name.span();
        if !is_python_name(name) {
            let reason = format!("`{name}`, the name of an operation, is no Python name");
            return Err(Mistake::at(place, reason));
        }
        let timeout = match &written.timeout_s {
            None => None,
            Some(seconds) if *seconds.get_ref() > 0.0 && *seconds.get_ref() <= MOST_TIMEOUT_S => {
                Some(Duration::from_secs_f64(*seconds.get_ref()))
            }
            Some(seconds) => {
                let reason = format!("`timeout_s` is above 0 and at most {MOST_TIMEOUT_S}, not {}", seconds.get_ref());
                return Err(Mistake::at(seconds.span(), reason));
            }
        };
        let output_kib = match &written.output_kib {
            None => DEFAULT_OUTPUT_KIB,
            Some(kib) if (1..=MOST_OUTPUT_KIB).contains(kib.get_ref()) => *kib.get_ref(),
            Some(kib) => {
                let reason = format!("`output_kib` is from 1 to {MOST_OUTPUT_KIB}, not {}", kib.get_ref());
                return Err(Mistake::at(kib.span(), reason));
            }
        };
        let places: Vec<_> = written.params.0.iter().map(|(name, _)| name.span()).collect();
        let parameters = written.params.0.into_iter().map(|(name, parameter)| Parameter::new(&name, parameter));
        let parameters = parameters.collect::<Result<Vec<_>, _>>()?;
        let paging =
            written.paging.map(|written_paging| paging(&written_paging, &written.result, &parameters)).transpose()?;
        let output = Output::new(written.result, written.pattern)?;
        let declared = Declared {
            name: name.clone(),
            description: written.description,
            parameters: parameters.iter().map(|parameter| parameter.declared.clone()).collect(),
            returns: output.schema(),
            risk: written.risk,
            idempotent: written.idempotent.unwrap_or(written.risk == Risk::Read),
            timeout,
            enabled: true,
            paging,
        };
        let action = match (written.command, written.request) {
            (Some(command), None) => {
                let command = Command::new(name, &command, &parameters, &places)?;
                let (home, folder) = (home.to_owned(), written.cwd.map(|folder| home.join(folder.into_inner())));
                let is_read = declared.risk == Risk::Read;
                Action::Command(Running { command, output, output_kib, home, folder, timeout, is_read })
            }
            (None, Some(request)) => {
                if let Some(folder) = written.cwd {
                    return Err(Mistake::at(folder.span(), format!("`{name}` is a request and has a `cwd`"))
                        .with_hint("leave it out: only a command runs in a folder"));
                }
                let request = Request::new(name, request, &parameters, &places, environment, output, output_kib)?;
                Action::Request(Box::new(request))
            }
            (None, None) => {
                return Err(Mistake::at(place, format!("`{name}` does nothing"))
                    .with_hint("give it a `command`, or a `[operation.request]` with a `url`"));
            }
            (Some(command), Some(_)) => {
                return Err(Mistake::at(command.span(), format!("`{name}` has a command and a request"))
                    .with_hint("make two operations of them"));
            }
        };
        Ok(Self { declared, parameters, action })
    }

    /// Runs the command, with `variables` as its environment, or sends the request. Dropping the future ends it.
    ///
    /// # Errors
    /// `InvalidArgument`, `Unavailable`, `Timeout`, or what the command or the server said.
    pub(crate) async fn call(&self, call: &Call, variables: Vec<(String, OsString)>) -> Result<Value, ToolError> {
        let arguments = self.arguments(call)?;
        match &self.action {
            Action::Command(running) => running.run(call, &self.parameters, &arguments, variables).await,
            Action::Request(request) => request.send(call, &self.declared, &self.parameters, &arguments).await,
        }
    }

    /// The command that a call would run, or the request that it would send.
    ///
    /// # Errors
    /// `InvalidArgument`.
    pub(crate) fn preview(&self, call: &Call) -> Result<Preview, ToolError> {
        let arguments = self.arguments(call)?;
        match &self.action {
            Action::Command(running) => running.preview(&self.parameters, &arguments),
            Action::Request(request) => request.preview(&self.parameters, &arguments),
        }
    }

    fn arguments(&self, call: &Call) -> Result<Vec<Option<Argument>>, ToolError> {
        self.parameters.iter().map(|parameter| parameter.argument(call)).collect()
    }
}
