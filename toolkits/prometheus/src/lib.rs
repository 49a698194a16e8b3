//! A Prometheus server: queries, series, alerts, rules and targets, read over its HTTP API.
//!
//! It changes nothing. Results are records with plain numbers and RFC 3339 times, each a bounded list with a `note` that
//! says what was left out. What it does not protect: whoever may query the server may see everything that is in it.
//!
//! It takes any server that speaks the same API (Thanos, Mimir, VictoriaMetrics): give the URL that `/api/v1` follows.

mod answer;
mod client;
mod moment;
mod record;

use std::fmt;

use fimble_toolkit::{Number, ToolError, toolkit};
use serde::{Deserialize, Serialize};

pub use record::{
    Alert, Alerts, Matrix, Names, Point, Rule, Rules, Sample, Series, SeriesLabels, Target, Targets, Vector,
};

use answer::Wire;
use client::Client;
use moment::{Moment, Step};

/// The toolkit `prometheus_toolkit`.
#[derive(Debug, Clone)]
pub struct Prometheus {
    client: Client,
    config: Config,
}

/// Where the server is and how much of it is believed, `[toolkits.prometheus]`.
#[derive(Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Config {
    /// The server's address, e.g. `http://127.0.0.1:9090`; a user and a password in it are sent as basic authentication.
    /// Empty (the default): there is no server.
    #[serde(skip_serializing)]
    pub url: String,
    /// The environment variable, or the host's secret, that holds a bearer token. Default none.
    pub token_env: Option<String>,
    /// Seconds that one request may take, above 0 and at most 600. Default 30.
    pub timeout_s: f64,
    /// Bytes of one answer, 1 to 1,073,741,824; a larger one fails its call. Default 16,777,216.
    pub answer_bytes: usize,
    /// The most that `limit` may be, 1 to 1,000,000: series, samples, rules and so on in one result. Default 5,000.
    pub most: u32,
    /// Points in one result of `query_range`, all series together, 1 to 10,000,000. Default 50,000.
    pub points: usize,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            url: String::new(),
            token_env: None,
            timeout_s: 30.0,
            answer_bytes: 16 * 1024 * 1024,
            most: 5_000,
            points: 50_000,
        }
    }
}

impl Config {
    /// The numbers in the settings, and what they may be.
    pub fn numbers(&self) -> Vec<Number> {
        vec![
            Number::above_zero("toolkits.prometheus.timeout_s", self.timeout_s, 600.0, "seconds"),
            Number::whole("toolkits.prometheus.answer_bytes", self.answer_bytes as u64, 1..=1 << 30, "bytes"),
            Number::whole("toolkits.prometheus.most", self.most.into(), 1..=1_000_000, "items"),
            Number::whole("toolkits.prometheus.points", self.points as u64, 1..=10_000_000, "points"),
        ]
    }

    /// What of the settings must not be shown: the password and the token.
    pub fn secrets(&self) -> Vec<String> {
        let password = reqwest::Url::parse(&self.url).ok().and_then(|url| url.password().map(str::to_owned));
        let token = self.token_env.as_ref().and_then(|name| fimble_toolkit::named_value(name));
        password.into_iter().chain(token.map(|token| token.trim().to_owned())).collect()
    }
}

/// Without the URL, which may hold a password.
impl fmt::Debug for Config {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("Config")
            .field("token_env", &self.token_env)
            .field("timeout_s", &self.timeout_s)
            .field("answer_bytes", &self.answer_bytes)
            .field("most", &self.most)
            .field("points", &self.points)
            .finish_non_exhaustive()
    }
}

impl Prometheus {
    /// The toolkit for a server, which is not asked yet. Reads the variable that `token_env` names.
    ///
    /// # Errors
    /// What is wrong with the settings, with a hint.
    pub fn new(config: Config) -> Result<Self, ToolError> {
        config.numbers().iter().try_for_each(Number::check)?;
        Ok(Self { client: Client::new(&config)?, config })
    }

    fn checked(&self, limit: u32) -> Result<usize, ToolError> {
        let most = self.config.most;
        if (1..=most).contains(&limit) {
            return Ok(limit as usize);
        }
        Err(ToolError::invalid_argument(format!("`limit` is from 1 to {most}, not {limit}")))
    }
}

/// Metrics and alerts of a Prometheus server. Times are RFC 3339, `now`, or how long ago: `15m`, `2h`, `7d`.
#[toolkit(name = "prometheus_toolkit")]
impl Prometheus {
    /// The value of a PromQL expression at one time, e.g. `sum by (job) (rate(http_requests_total[5m]))`.
    #[operation(risk = "read", timeout_s = 60)]
    async fn query(
        &self,
        /// PromQL.
        query: String,
        /// When. Default: now.
        time: Option<String>,
        /// Most samples to return.
        #[default(200)]
        limit: u32,
    ) -> Result<Vector, ToolError> {
        let limit = self.checked(limit)?;
        let mut fields = vec![("query", query)];
        if let Some(time) = time {
            fields.push(("time", Moment::parse("time", &time)?.to_string()));
        }
        let reply = self.client.post("query", &fields).await?;
        answer::vector(reply, limit)
    }

    /// The values of a PromQL expression over a time, one series a label set, e.g. of the last `1h`.
    #[operation(risk = "read", timeout_s = 60)]
    async fn query_range(
        &self,
        /// PromQL.
        query: String,
        /// From when.
        #[default("1h".to_owned())]
        start: String,
        /// Until when.
        #[default("now".to_owned())]
        end: String,
        /// Time between two values, e.g. `30s` or seconds. Default: a 60th of the time.
        step: Option<String>,
        /// Most series to return.
        #[default(50)]
        limit: u32,
    ) -> Result<Matrix, ToolError> {
        let limit = self.checked(limit)?;
        let (start, end) = (Moment::parse("start", &start)?, Moment::parse("end", &end)?);
        let step = Step::choose(step.as_deref(), start, end)?;
        let fields =
            [("query", query), ("start", start.to_string()), ("end", end.to_string()), ("step", step.to_string())];
        let reply = self.client.post("query_range", &fields).await?;
        answer::matrix(reply, limit, self.config.points)
    }

    /// The label sets of the series that a selector matches, e.g. `up{job="node"}`.
    #[operation(risk = "read", timeout_s = 60)]
    async fn series(
        &self,
        /// A series selector.
        selector: String,
        /// From when.
        #[default("1h".to_owned())]
        start: String,
        /// Until when.
        #[default("now".to_owned())]
        end: String,
        /// Most series to return.
        #[default(200)]
        limit: u32,
    ) -> Result<SeriesLabels, ToolError> {
        let limit = self.checked(limit)?;
        let (start, end) = (Moment::parse("start", &start)?, Moment::parse("end", &end)?);
        let fields = [("match[]", selector), ("start", start.to_string()), ("end", end.to_string())];
        let reply = self.client.post("series", &fields).await?;
        answer::series(reply, limit)
    }

    /// The names of all labels, or of those on the series that a selector matches.
    #[operation(risk = "read", timeout_s = 60)]
    async fn labels(
        &self,
        /// A series selector.
        selector: Option<String>,
        /// Most names to return.
        #[default(500)]
        limit: u32,
    ) -> Result<Names, ToolError> {
        let limit = self.checked(limit)?;
        let fields: Vec<_> = selector.map(|selector| ("match[]", selector)).into_iter().collect();
        answer::names(self.client.post("labels", &fields).await?, None, limit)
    }

    /// The values of a label, e.g. of `job`; those of `__name__` are the metrics there are.
    #[operation(risk = "read", timeout_s = 60)]
    async fn label_values(
        &self,
        /// The label.
        #[default("__name__".to_owned())]
        label: String,
        /// Only values with this text in them.
        contains: Option<String>,
        /// Only on series that this selector matches.
        selector: Option<String>,
        /// Most values to return.
        #[default(500)]
        limit: u32,
    ) -> Result<Names, ToolError> {
        let limit = self.checked(limit)?;
        let fields: Vec<_> = selector.map(|selector| ("match[]", selector)).into_iter().collect();
        let reply = self.client.get(&["label", &label, "values"], &fields).await?;
        answer::names(reply, contains.as_deref(), limit)
    }

    /// The alerts that are firing or pending.
    #[operation(risk = "read", timeout_s = 60)]
    async fn alerts(
        &self,
        /// Only those in this state: `firing` or `pending`.
        state: Option<String>,
        /// Most alerts to return.
        #[default(200)]
        limit: u32,
    ) -> Result<Alerts, ToolError> {
        let limit = self.checked(limit)?;
        one_of("state", state.as_deref(), &["firing", "pending"])?;
        answer::alerts(self.client.get(&["alerts"], &[]).await?, state.as_deref(), limit)
    }

    /// The alerting and recording rules, with their state and health.
    #[operation(risk = "read", timeout_s = 60)]
    async fn rules(
        &self,
        /// Only `alerting` or only `recording` ones.
        kind: Option<String>,
        /// Only rules with this text in their name.
        contains: Option<String>,
        /// Most rules to return.
        #[default(200)]
        limit: u32,
    ) -> Result<Rules, ToolError> {
        let limit = self.checked(limit)?;
        one_of("kind", kind.as_deref(), &["alerting", "recording"])?;
        answer::rules(self.client.get(&["rules"], &[]).await?, kind.as_deref(), contains.as_deref(), limit)
    }

    /// What the server scrapes, and whether it can.
    #[operation(risk = "read", timeout_s = 60)]
    async fn targets(
        &self,
        /// Only those of this health: `up`, `down` or `unknown`.
        health: Option<String>,
        /// Only those of this job.
        job: Option<String>,
        /// Most targets to return.
        #[default(200)]
        limit: u32,
    ) -> Result<Targets, ToolError> {
        let limit = self.checked(limit)?;
        one_of("health", health.as_deref(), &["up", "down", "unknown"])?;
        let reply: Wire<_> = self.client.get(&["targets"], &[("state", "active".to_owned())]).await?;
        answer::targets(reply, health.as_deref(), job.as_deref(), limit)
    }
}

fn one_of(name: &str, value: Option<&str>, choices: &[&str]) -> Result<(), ToolError> {
    match value {
        Some(value) if !choices.contains(&value) => {
            Err(ToolError::invalid_argument(format!("`{name}` is one of {}, not `{value}`", choices.join(", "))))
        }
        _ => Ok(()),
    }
}
