//! What the server says about itself: tables, columns, sessions.

use fimble_toolkit::ToolError;
use schemars::JsonSchema;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::reading::{Limits, Reading};

/// Tables and views.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Tables {
    /// The largest first.
    pub tables: Vec<Table>,
    /// What was left out.
    pub note: Option<String>,
}

/// A table or a view.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Table {
    /// The schema.
    pub schema: String,
    /// The name without the schema.
    pub name: String,
    /// `table`, `partitioned table`, `view`, `materialized view` or `foreign table`.
    pub kind: String,
    /// As of the last ANALYZE; none if there was none.
    pub estimated_rows: Option<i64>,
    /// With indexes and everything else that belongs to it.
    pub size_bytes: i64,
}

/// A table in full.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Described {
    /// The schema.
    pub schema: String,
    /// The name without the schema.
    pub name: String,
    /// In their order.
    pub columns: Vec<Column>,
    /// By name.
    pub indexes: Vec<Index>,
    /// As SQL, e.g. `PRIMARY KEY (id)`.
    pub constraints: Vec<String>,
}

/// A column.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Column {
    /// The name.
    pub name: String,
    /// As SQL, e.g. `numeric(10,2)`.
    #[serde(rename = "type")]
    pub kind: String,
    /// Whether it may be NULL.
    pub nullable: bool,
    /// As SQL.
    pub default: Option<String>,
}

/// An index.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Index {
    /// The name.
    pub name: String,
    /// As SQL.
    pub definition: String,
    /// Scans that used it since the statistics began.
    pub scans: i64,
    /// Bytes.
    pub size_bytes: i64,
}

/// Sessions.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct Activity {
    /// The one whose statement began first comes first.
    pub sessions: Vec<Session>,
    /// What was left out.
    pub note: Option<String>,
}

/// A session of a client.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Session {
    /// The process id at the server.
    pub pid: i64,
    /// The role.
    pub user: Option<String>,
    /// The database.
    pub database: Option<String>,
    /// What the client calls itself.
    pub application: String,
    /// Its address; none for a local socket.
    pub client: Option<String>,
    /// `active`, `idle`, `idle in transaction` and so on.
    pub state: Option<String>,
    /// What it waits for, e.g. `Lock: relation`.
    pub wait: Option<String>,
    /// Seconds since its statement began, or since the last one did.
    pub query_s: Option<f64>,
    /// Seconds since its transaction began.
    pub transaction_s: Option<f64>,
    /// The process ids that it waits for.
    pub blocked_by: Vec<i64>,
    /// The statement, the first 1000 characters.
    pub query: String,
}

const TABLES: &str = "\
SELECT n.nspname AS schema, c.relname AS name,
  CASE c.relkind WHEN 'r' THEN 'table' WHEN 'p' THEN 'partitioned table' WHEN 'v' THEN 'view'
    WHEN 'm' THEN 'materialized view' ELSE 'foreign table' END AS kind,
  CASE WHEN c.reltuples >= 0 AND c.relkind <> 'v' THEN c.reltuples::bigint END AS estimated_rows,
  CASE WHEN c.relkind IN ('r', 'm') THEN pg_total_relation_size(c.oid) ELSE 0 END AS size_bytes
FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
WHERE c.relkind IN ('r', 'p', 'v', 'm', 'f') AND n.nspname NOT LIKE 'pg\\_toast%' AND n.nspname NOT LIKE 'pg\\_temp%'
  AND CASE WHEN $1::text IS NULL THEN n.nspname NOT IN ('pg_catalog', 'information_schema') ELSE n.nspname = $1 END
  AND ($2::text IS NULL OR strpos(c.relname, $2) > 0)
ORDER BY size_bytes DESC, schema, name";

const RELATION: &str = "\
SELECT c.oid::bigint AS oid, n.nspname AS schema, c.relname AS name
FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
WHERE c.oid = to_regclass($1) AND c.relkind IN ('r', 'p', 'v', 'm', 'f')";

const COLUMNS: &str = "\
SELECT a.attname AS name, format_type(a.atttypid, a.atttypmod) AS type, NOT a.attnotnull AS nullable,
  pg_get_expr(d.adbin, d.adrelid) AS default
FROM pg_attribute a LEFT JOIN pg_attrdef d ON d.adrelid = a.attrelid AND d.adnum = a.attnum
WHERE a.attrelid = $1::bigint::oid AND a.attnum > 0 AND NOT a.attisdropped ORDER BY a.attnum";

const INDEXES: &str = "\
SELECT c.relname AS name, pg_get_indexdef(i.indexrelid) AS definition, coalesce(s.idx_scan, 0) AS scans,
  pg_relation_size(i.indexrelid) AS size_bytes
FROM pg_index i JOIN pg_class c ON c.oid = i.indexrelid LEFT JOIN pg_stat_all_indexes s ON s.indexrelid = i.indexrelid
WHERE i.indrelid = $1::bigint::oid ORDER BY c.relname";

const CONSTRAINTS: &str = "\
SELECT conname AS name, pg_get_constraintdef(oid) AS definition
FROM pg_constraint WHERE conrelid = $1::bigint::oid ORDER BY contype DESC, conname";

const ACTIVITY: &str = "\
SELECT pid, usename AS user, datname AS database, application_name AS application, host(client_addr) AS client, state,
  wait_event_type || ': ' || wait_event AS wait,
  round(extract(epoch FROM clock_timestamp() - query_start)::numeric, 3) AS query_s,
  round(extract(epoch FROM clock_timestamp() - xact_start)::numeric, 3) AS transaction_s,
  pg_blocking_pids(pid) AS blocked_by, left(query, 1000) AS query
FROM pg_stat_activity
WHERE backend_type = 'client backend' AND pid <> pg_backend_pid() AND ($1::text IS NULL OR state = $1)
ORDER BY query_start NULLS LAST, pid";

pub(crate) async fn tables(
    read: &Reading<'_>,
    schema: Option<&str>,
    contains: Option<&str>,
    limits: Limits,
) -> Result<Tables, ToolError> {
    let (tables, note) = typed(read, TABLES, &[json!(schema), json!(contains)], limits).await?;
    Ok(Tables { tables, note })
}

pub(crate) async fn describe(read: &Reading<'_>, table: &str, limits: Limits) -> Result<Described, ToolError> {
    #[derive(Deserialize)]
    struct Relation {
        oid: i64,
        schema: String,
        name: String,
    }
    #[derive(Deserialize)]
    struct Constraint {
        definition: String,
    }
    let (found, _) = typed(read, RELATION, &[json!(table)], limits).await?;
    let Some(Relation { oid, schema, name }) = found.into_iter().next() else {
        return Err(ToolError::not_found(format!("there is no table `{table}`")).with_hint(
            "tables() lists them; write the schema too if it is not in the search path, as in `schema.name`",
        ));
    };
    let oid = [json!(oid)];
    let (columns, _) = typed(read, COLUMNS, &oid, limits).await?;
    let (indexes, _) = typed(read, INDEXES, &oid, limits).await?;
    let (constraints, _) = typed::<Constraint>(read, CONSTRAINTS, &oid, limits).await?;
    let constraints = constraints.into_iter().map(|constraint| constraint.definition).collect();
    Ok(Described { schema, name, columns, indexes, constraints })
}

pub(crate) async fn activity(read: &Reading<'_>, state: Option<&str>, limits: Limits) -> Result<Activity, ToolError> {
    let (sessions, note) = typed(read, ACTIVITY, &[json!(state)], limits).await?;
    Ok(Activity { sessions, note })
}

/// The rows as records, and what was left out of them.
async fn typed<T: DeserializeOwned>(
    read: &Reading<'_>,
    sql: &str,
    values: &[Value],
    limits: Limits,
) -> Result<(Vec<T>, Option<String>), ToolError> {
    let found = read.rows(sql, values, limits).await?;
    let note = found.note.filter(|_| !found.rows.is_empty());
    let rows = found.rows.into_iter().map(|row| serde_json::from_value(Value::Object(row)));
    let rows = rows.collect::<Result<_, _>>();
    Ok((rows.map_err(|error| ToolError::failed(format!("the server's catalog is of another form: {error}")))?, note))
}
