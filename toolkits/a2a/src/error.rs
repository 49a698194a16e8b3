//! Why an agent is no toolkit. It is read by the user.

/// Why there is no toolkit. One sentence; [`hint`](Error::hint) says what to do.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The address or a header cannot be used.
    #[error("the A2A agent `{agent}` has {problem}")]
    Setting {
        /// The agent.
        agent: String,
        /// What is wrong, e.g. `a url that is no URL`.
        problem: String,
    },
    /// The card cannot be fetched.
    #[error("the A2A agent `{agent}` cannot be reached: {problem}")]
    Unreachable {
        /// The agent.
        agent: String,
        /// What happened.
        problem: String,
    },
    /// What is there is no card, or the agent speaks another version or binding.
    #[error("the A2A agent `{agent}` {problem}")]
    Card {
        /// The agent.
        agent: String,
        /// What is wrong, e.g. `has no agent card`.
        problem: String,
    },
}

impl Error {
    /// The step on the way to a toolkit that failed: `reach`, `card` or `version`.
    pub fn step(&self) -> &'static str {
        match self {
            Self::Unreachable { problem, .. } if problem.starts_with("it answered") => "card",
            Self::Unreachable { problem, .. } if problem.starts_with("its card") => "card",
            Self::Setting { .. } | Self::Unreachable { .. } => "reach",
            Self::Card { problem, .. } if problem.starts_with("has a card") => "card",
            Self::Card { .. } => "version",
        }
    }

    /// What the user can do.
    pub fn hint(&self) -> &'static str {
        match self {
            Self::Setting { .. } => {
                "give the agent's address, e.g. https://agent.example.org, and headers without line breaks"
            }
            Self::Unreachable { .. } => {
                "look whether the agent runs at that `url` and has /.well-known/agent-card.json there, and whether it takes the token"
            }
            Self::Card { .. } => "A2A 1.0 over JSON-RPC is spoken; look whether the agent offers it",
        }
    }
}
