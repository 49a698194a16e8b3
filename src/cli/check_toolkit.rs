//! `fimble toolkits check`: what an author should look at before a model does.

use std::process::ExitCode;

use fimble_toolkit::{Declaration, Severity, check};

use super::Failure;
use crate::prompt::{Budget, stubs};
use crate::segment::estimate_tokens;

/// Prints what is to be looked at in each toolkit, and what it costs; exit code 1 if one of them cannot be used as it is.
/// `budget` is what all stubs together may take, in tokens.
pub(super) fn tell(declarations: &[Declaration], warnings: &[String], budget: u32) -> ExitCode {
    let mut broken = false;
    for warning in warnings {
        out!("warning: {warning}");
    }
    for declaration in declarations {
        let findings = check(declaration);
        for finding in &findings {
            out!("{}: {}: {}\n         hint: {}", finding.severity, finding.place, finding.message, finding.hint);
        }
        let mut warned = findings.iter().filter(|finding| finding.severity == Severity::Warning).count();
        let errors = findings.len() - warned;
        let tokens = estimate_tokens(&stubs(std::slice::from_ref(declaration), Budget::ALL));
        if tokens > budget / 2 {
            warned += 1;
            out!(
                "warning: {}: the model reads about {tokens} tokens of it, and all toolkits together may have {budget} \
                 (`prompt.stub_tokens`)\n         hint: leave operations out, or cut it in two; beyond the budget only names are shown",
                declaration.name
            );
        }
        let on = declaration.operations.iter().filter(|operation| operation.enabled).count();
        out!(
            "{}: {}, about {tokens} tokens of each prompt; {}, {}",
            declaration.name,
            counted(on, "operation"),
            counted(errors, "error"),
            counted(warned, "warning")
        );
        broken |= errors > 0;
    }
    if broken { ExitCode::from(1) } else { ExitCode::SUCCESS }
}

/// Prints why a toolkit cannot even be read.
pub(super) fn tell_unusable(failure: &Failure) -> ExitCode {
    out!("error: {}", failure.message);
    if let Some(hint) = &failure.hint {
        out!("         hint: {hint}");
    }
    ExitCode::from(1)
}

fn counted(count: usize, what: &str) -> String {
    if count == 1 { format!("1 {what}") } else { format!("{count} {what}s") }
}
