//! A PostgreSQL database: queries, tables, sessions and plans.
//!
//! Reads are kept from writing by the server, not by looking at their SQL: each is a cursor (which PostgreSQL's grammar
//! has for SELECT, VALUES and the like only) in a READ ONLY transaction that is rolled back, with a statement timeout. Each
//! call has a connection of its own; a call that nobody waits for is cancelled at the server. Rows, bytes and time are
//! bounded. Others who look at the server see `FETCH … FROM fimble_rows` run, for the application `fimble`.
//!
//! What it does not protect: a function that a SELECT calls may act outside of the transaction if the role may call it
//! (`pg_terminate_backend`, `lo_export`, `dblink`); give the toolkit a role with few rights. A superuser can do anything.

mod catalog;
mod cell;
mod connection;
mod parameter;
mod reading;
mod refusal;

use std::fmt;

use async_trait::async_trait;
use fimble_toolkit::{Call, Declaration, ErrorKind, Number, ToolError, Toolkit, toolkit};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

pub use catalog::{Activity, Column, Described, Index, Session, Table, Tables};

use connection::Server;
use reading::Limits;

/// The toolkit `postgres_toolkit`.
#[derive(Debug, Clone)]
pub struct Postgres {
    operations: Operations,
    may_execute: bool,
}

/// Where the database is and how much of it is shown, `[toolkits.postgres]`.
#[derive(Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Config {
    /// The database: `postgres://user:password@host:5432/name?sslmode=require`, or `host=/run/postgresql user=… dbname=…`.
    /// Empty (the default): there is none. On this machine the connection is plain; elsewhere it is by TLS with a checked
    /// certificate if the server has TLS (`sslmode=prefer`, the default), always (`require`), or never (`disable`).
    #[serde(skip_serializing)]
    pub url: String,
    /// Whether there is an operation `execute`, which may change anything. Default false.
    pub execute: bool,
    /// Seconds that a statement may take, above 0 and at most 600. Default 30.
    pub statement_timeout_s: f64,
    /// The most that `limit` may be, 1 to 1,000,000: rows of one result. Default 5,000.
    pub most: u32,
    /// Bytes of one result, as text, 1 to 1,073,741,824; the rows behind are left out. Default 4,194,304.
    pub result_bytes: usize,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            url: String::new(),
            execute: false,
            statement_timeout_s: 30.0,
            most: 5_000,
            result_bytes: 4 * 1024 * 1024,
        }
    }
}

impl Config {
    /// The numbers in the settings, and what they may be.
    pub fn numbers(&self) -> Vec<Number> {
        let seconds = self.statement_timeout_s;
        vec![
            Number::above_zero("toolkits.postgres.statement_timeout_s", seconds, 600.0, "seconds"),
            Number::whole("toolkits.postgres.most", self.most.into(), 1..=1_000_000, "rows"),
            Number::whole("toolkits.postgres.result_bytes", self.result_bytes as u64, 1..=1 << 30, "bytes"),
        ]
    }

    /// What of the settings must not be shown: the password.
    pub fn secrets(&self) -> Vec<String> {
        let parsed = self.url.parse::<tokio_postgres::Config>().ok();
        let password = parsed.and_then(|parsed| String::from_utf8(parsed.get_password()?.to_vec()).ok());
        password.into_iter().collect()
    }
}

/// Without the URL, which may hold a password.
impl fmt::Debug for Config {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("Config")
            .field("execute", &self.execute)
            .field("statement_timeout_s", &self.statement_timeout_s)
            .field("most", &self.most)
            .field("result_bytes", &self.result_bytes)
            .finish_non_exhaustive()
    }
}

/// Rows.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct Rows {
    /// By column. `numeric` of up to 15 digits and floats are numbers, longer ones texts; times are RFC 3339, intervals
    /// ISO 8601, `bytea` is hex, arrays are lists, `json` is its value, anything else text.
    pub rows: Vec<Map<String, Value>>,
    /// What was left out.
    pub note: Option<String>,
}

/// What a statement did.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Executed {
    /// Rows that it changed or found.
    pub rows_affected: u64,
}

impl Postgres {
    /// The toolkit for a database, which is not connected to yet.
    ///
    /// # Errors
    /// What is wrong with the settings, with a hint.
    pub fn new(config: Config) -> Result<Self, ToolError> {
        config.numbers().iter().try_for_each(Number::check)?;
        let may_execute = config.execute;
        Ok(Self { operations: Operations { server: Server::new(&config)?, config }, may_execute })
    }
}

/// Hides `execute` unless the configuration has it.
#[async_trait]
impl Toolkit for Postgres {
    fn declaration(&self) -> Declaration {
        let mut declaration = self.operations.declaration();
        let execute = declaration.operations.iter_mut().find(|operation| operation.name == "execute");
        if let Some(execute) = execute {
            execute.enabled = self.may_execute;
        }
        declaration
    }

    async fn call(&self, call: Call) -> Result<Value, ToolError> {
        if call.operation == "execute" && !self.may_execute {
            let message = "postgres_toolkit.execute is switched off: this database is only read";
            return Err(ToolError::new(ErrorKind::Forbidden, message)
                .with_hint("tell the user: `toolkits.postgres.execute = true` switches it on"));
        }
        self.operations.call(call).await
    }
}

#[derive(Debug, Clone)]
struct Operations {
    server: Server,
    config: Config,
}

impl Operations {
    fn limits(&self, rows: u32) -> Result<Limits, ToolError> {
        let most = self.config.most;
        if (1..=most).contains(&rows) {
            return Ok(Limits { rows: rows as usize, bytes: self.config.result_bytes });
        }
        Err(ToolError::invalid_argument(format!("`limit` is from 1 to {most}, not {rows}")))
    }
}

/// A PostgreSQL database. Values are passed as `params` for `$1`, `$2`, never written into the SQL.
#[toolkit(name = "postgres_toolkit")]
impl Operations {
    /// The rows of a SELECT, e.g. `query("select * from users where id = $1", [7])`.
    #[operation(risk = "read", timeout_s = 660)]
    async fn query(
        &self,
        /// One SELECT, VALUES or WITH … SELECT.
        sql: String,
        /// The values of `$1`, `$2`, …; a list for an array, as in `= any($1)`.
        params: Option<Vec<Value>>,
        /// Most rows to return.
        #[default(200)]
        limit: u32,
    ) -> Result<Rows, ToolError> {
        let limits = self.limits(limit)?;
        self.server.read(async |read| read.rows(&sql, params.as_deref().unwrap_or_default(), limits).await).await
    }

    /// The tables and views, with their estimated rows and size; the largest first.
    #[operation(risk = "read", timeout_s = 660)]
    async fn tables(
        &self,
        /// Only in this schema.
        schema: Option<String>,
        /// Only with this text in their name.
        contains: Option<String>,
        /// Most tables to return.
        #[default(200)]
        limit: u32,
    ) -> Result<Tables, ToolError> {
        let limits = self.limits(limit)?;
        self.server.read(async |read| catalog::tables(read, schema.as_deref(), contains.as_deref(), limits).await).await
    }

    /// The columns, indexes and constraints of a table.
    #[operation(risk = "read", timeout_s = 660)]
    async fn describe(
        &self,
        /// `name` or `schema.name`.
        table: String,
    ) -> Result<Described, ToolError> {
        let limits = Limits { rows: self.config.most as usize, bytes: self.config.result_bytes };
        self.server.read(async |read| catalog::describe(read, &table, limits).await).await
    }

    /// Who is connected and runs what, the longest running first; `blocked_by` are the process ids that it waits for.
    #[operation(risk = "read", timeout_s = 660)]
    async fn activity(
        &self,
        /// Only in this state, e.g. `active`, `idle` or `idle in transaction`.
        state: Option<String>,
        /// Most sessions to return.
        #[default(100)]
        limit: u32,
    ) -> Result<Activity, ToolError> {
        let limits = self.limits(limit)?;
        self.server.read(async |read| catalog::activity(read, state.as_deref(), limits).await).await
    }

    /// The plan of a statement as text. It runs only with `analyze`, and even then cannot write.
    #[operation(risk = "read", timeout_s = 660)]
    async fn explain(
        &self,
        /// One statement.
        sql: String,
        /// The values of `$1`, `$2`, ….
        params: Option<Vec<Value>>,
        /// Run it and show real times and buffers.
        #[default(false)]
        analyze: bool,
    ) -> Result<String, ToolError> {
        let bytes = self.config.result_bytes;
        self.server
            .read(async |read| read.plan(&sql, params.as_deref().unwrap_or_default(), analyze, bytes).await)
            .await
    }

    /// Runs one statement that changes something, and commits it.
    #[operation(risk = "destructive", timeout_s = 660)]
    async fn execute(
        &self,
        /// One statement.
        sql: String,
        /// The values of `$1`, `$2`, ….
        params: Option<Vec<Value>>,
    ) -> Result<Executed, ToolError> {
        self.server.execute(&sql, params.as_deref().unwrap_or_default()).await
    }
}
