//! A transaction that cannot write, and what is read in it.

use std::collections::BTreeMap;
use std::time::Duration;

use fimble_toolkit::{ErrorKind, ToolError};
use serde_json::{Map, Value};
use tokio_postgres::types::Type;
use tokio_postgres::{Client, Error, SimpleQueryMessage};

use crate::parameter::parameters;
use crate::{Rows, cell, refusal};

/// Rows that are fetched at once, so that few wide ones do not come with many more behind them.
const BATCH: usize = 100;

/// Most rows and most bytes of a result.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Limits {
    pub(crate) rows: usize,
    pub(crate) bytes: usize,
}

/// An open transaction.
pub(crate) struct Reading<'a> {
    client: &'a Client,
}

impl<'a> Reading<'a> {
    pub(crate) async fn begin(client: &'a Client, timeout: Duration) -> Result<Self, ToolError> {
        let milliseconds = timeout.as_millis();
        // The SELECT takes the transaction's first snapshot: from then on PostgreSQL refuses to make it writable.
        let settings = format!(
            "BEGIN TRANSACTION READ ONLY; SET LOCAL statement_timeout = {milliseconds}; SET LOCAL lock_timeout = \
             {milliseconds}; SET LOCAL idle_in_transaction_session_timeout = 60000; SET LOCAL timezone = 'UTC'; SET LOCAL \
             datestyle = 'ISO, YMD'; SET LOCAL intervalstyle = 'iso_8601'; SET LOCAL bytea_output = 'hex'; SET LOCAL \
             extra_float_digits = 1; SET LOCAL cursor_tuple_fraction = 1; SELECT 1"
        );
        client.batch_execute(&settings).await.map_err(|error| refusal::of_statement(&error))?;
        Ok(Self { client })
    }

    /// The rows of a query.
    pub(crate) async fn rows(&self, sql: &str, values: &[Value], limits: Limits) -> Result<Rows, ToolError> {
        let failed = |error: Error| refusal::of_statement(&error);
        let sql = sql.trim().trim_end_matches(';');
        // The grammar of a cursor has queries only, and a prepared statement is one statement only.
        let declared = self.client.prepare(&format!("DECLARE fimble_rows NO SCROLL CURSOR FOR {sql}")).await;
        let declared = declared.map_err(only_queries)?;
        self.client.execute_raw(&declared, parameters(&declared, values)?).await.map_err(failed)?;
        let fetch = self.client.prepare("FETCH 1 FROM fimble_rows").await.map_err(failed)?;
        let columns: Vec<(String, Type)> =
            fetch.columns().iter().map(|column| (column.name().to_owned(), column.type_().clone())).collect();
        let rows = self.fetched(told_apart(columns), limits).await?;
        // A call may read more than once, and the next cursor has the same name.
        self.client.batch_execute("CLOSE fimble_rows").await.map_err(failed)?;
        Ok(rows)
    }

    async fn fetched(&self, columns: Vec<(String, Type)>, limits: Limits) -> Result<Rows, ToolError> {
        let failed = |error: Error| refusal::of_statement(&error);
        let (mut rows, mut bytes) = (Vec::new(), 0);
        loop {
            let batch = BATCH.min(limits.rows + 1 - rows.len());
            let fetched = self.client.simple_query(&format!("FETCH {batch} FROM fimble_rows")).await.map_err(failed)?;
            let mut count = 0;
            for message in fetched {
                let SimpleQueryMessage::Row(row) = message else { continue };
                count += 1;
                let texts = (0..columns.len()).map(|index| row.try_get(index));
                let texts = texts.collect::<Result<Vec<_>, _>>().map_err(failed)?;
                bytes += texts.iter().flatten().map(|text| text.len()).sum::<usize>();
                if rows.len() == limits.rows || bytes > limits.bytes {
                    return cut(rows, limits);
                }
                let cells =
                    columns.iter().zip(texts).map(|((name, kind), text)| (name.clone(), cell::value(text, kind)));
                rows.push(cells.collect::<Map<String, Value>>());
            }
            if count < batch {
                let names: Vec<&str> = columns.iter().map(|(name, _)| name.as_str()).collect();
                let note = rows.is_empty().then(|| format!("no rows; the columns are {}", names.join(", ")));
                return Ok(Rows { rows, note });
            }
        }
    }

    /// The plan of a statement.
    pub(crate) async fn plan(
        &self,
        sql: &str,
        values: &[Value],
        analyze: bool,
        bytes: usize,
    ) -> Result<String, ToolError> {
        let failed = |error: Error| refusal::of_statement(&error);
        let options = if analyze { "ANALYZE, BUFFERS" } else { "COSTS" };
        let explained = self.client.prepare(&format!("EXPLAIN ({options}) {sql}")).await.map_err(failed)?;
        let values = parameters(&explained, values)?;
        let values: Vec<&(dyn tokio_postgres::types::ToSql + Sync)> =
            values.iter().map(|value| value as &(dyn tokio_postgres::types::ToSql + Sync)).collect();
        let mut plan = String::new();
        for row in self.client.query(&explained, &values).await.map_err(failed)? {
            let line: String = row.try_get(0).map_err(failed)?;
            if plan.len() + line.len() > bytes {
                plan.push_str("… the rest of the plan is left out\n");
                break;
            }
            plan.push_str(&line);
            plan.push('\n');
        }
        Ok(plan)
    }
}

/// A syntax error at something that is no query is not the caller's typing error.
fn only_queries(error: Error) -> ToolError {
    let is_syntax = error.code().is_some_and(|code| code.code() == "42601");
    let told = refusal::of_statement(&error);
    if !is_syntax {
        return told;
    }
    told.with_hint(
        "this operation takes one SELECT, VALUES or WITH … SELECT; a setting is `select current_setting('…')`",
    )
}

fn cut(rows: Vec<Map<String, Value>>, limits: Limits) -> Result<Rows, ToolError> {
    let count = rows.len();
    if count == 0 {
        let message = format!("the first row alone has more than {} bytes", limits.bytes);
        return Err(ToolError::new(ErrorKind::Failed, message).with_hint("select fewer columns, or left(column, 1000)"));
    }
    let why = if count == limits.rows { "`limit`" } else { "the bytes of a result" };
    let note =
        format!("only the first {count} rows, by {why}; there are more: use where, count(*) or limit … offset …");
    Ok(Rows { rows, note: Some(note) })
}

/// A record has each name once, where a query may have two columns of one name: the second `id` is `id_2`.
fn told_apart(columns: Vec<(String, Type)>) -> Vec<(String, Type)> {
    let mut seen: BTreeMap<String, usize> = BTreeMap::new();
    let names: Vec<String> = columns.iter().map(|(name, _)| name.clone()).collect();
    columns
        .into_iter()
        .map(|(name, kind)| {
            let count = seen.entry(name.clone()).or_insert(0);
            *count += 1;
            let mut own = if *count == 1 { name.clone() } else { format!("{name}_{count}") };
            while *count > 1 && names.contains(&own) {
                *count += 1;
                own = format!("{name}_{count}");
            }
            (own, kind)
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_of_one_name_are_told_apart() {
        let names = |names: &[&str]| -> Vec<String> {
            let columns = names.iter().map(|name| (name.to_string(), Type::TEXT)).collect();
            told_apart(columns).into_iter().map(|(name, _)| name).collect()
        };
        assert_eq!(names(&["a", "b"]), ["a", "b"]);
        assert_eq!(names(&["id", "id", "id"]), ["id", "id_2", "id_3"]);
        assert_eq!(names(&["id", "id_2", "id"]), ["id", "id_2", "id_3"]);
    }
}
