//! Failures of the interpreter itself. What a program did wrong is an [`Ending`](super::Ending).

/// Why a program could not be run. Each is one sentence and a hint for the user.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// The process that programs are forked from could not be started.
    #[error("the interpreter could not be started: {reason}\n\nhint: {hint}")]
    Spawn {
        /// What the system said.
        reason: String,
        /// What to do.
        hint: String,
    },
    /// A layer of the jail is missing on this machine; nothing ran.
    #[error("the interpreter's jail is not complete: layer `{layer}`: {reason}\n\nhint: {hint}")]
    Isolation {
        /// The layer, e.g. `namespaces`.
        layer: String,
        /// What the system said.
        reason: String,
        /// What to do.
        hint: String,
    },
    /// The two halves of Fimble do not understand each other, which is never the program's fault.
    #[error("the interpreter gave an unexpected answer: {reason}\n\nhint: {hint}")]
    Protocol {
        /// What was unexpected.
        reason: String,
        /// What to do.
        hint: String,
    },
    /// The packages of the configuration are not there, or not whole; nothing ran.
    #[error("{reason}\n\nhint: {hint}")]
    Packages {
        /// What is missing.
        reason: String,
        /// What to do.
        hint: String,
    },
    /// The list of packages in the configuration names something that is no package; nothing ran.
    #[error("{reason}\n\nhint: {hint}")]
    Requirement {
        /// What is wrong with it.
        reason: String,
        /// What to write.
        hint: String,
    },
    /// A program with its variables is larger than a frame may be; nothing ran.
    #[error(
        "the program and its variables are too large: {size_kib} KiB\n\nhint: carry less, or raise `interpreter.limits.frame_kib`: {limit_kib}"
    )]
    Oversize {
        /// Their size.
        size_kib: u64,
        /// The limit.
        limit_kib: u64,
    },
}

impl Error {
    pub(super) fn spawn(reason: impl std::fmt::Display) -> Self {
        Self::Spawn {
            reason: reason.to_string(),
            hint: "run `fimble doctor`; a program that embeds the crate must call `fimble::interpreter::init()` first in `main`"
                .to_owned(),
        }
    }

    pub(super) fn packages(reason: impl std::fmt::Display, hint: impl Into<String>) -> Self {
        Self::Packages { reason: reason.to_string(), hint: hint.into() }
    }

    pub(super) fn protocol(reason: impl std::fmt::Display) -> Self {
        Self::Protocol {
            reason: reason.to_string(),
            hint: "the zygote must be the same build as this program; see `interpreter.executable`".to_owned(),
        }
    }
}
