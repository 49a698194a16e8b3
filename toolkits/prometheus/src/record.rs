//! The records that programs get.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::Serialize;

/// Labels by name, as in `metric["instance"]`.
pub(crate) type Labels = BTreeMap<String, String>;

/// The samples of an instant query.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct Vector {
    /// In the server's order.
    pub samples: Vec<Sample>,
    /// What was left out or warned of.
    pub note: Option<String>,
}

/// One value of one series.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct Sample {
    /// The labels; the metric's name is `__name__`.
    pub metric: Labels,
    /// `None` where it is no finite number (NaN, infinity, a histogram).
    pub value: Option<f64>,
    /// RFC 3339.
    pub time: String,
}

/// The series of a range query.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct Matrix {
    /// In the server's order.
    pub series: Vec<Series>,
    /// What was left out or warned of.
    pub note: Option<String>,
}

/// The values of one label set.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct Series {
    /// The labels; the metric's name is `__name__`.
    pub metric: Labels,
    /// The oldest first.
    pub values: Vec<Point>,
}

/// One value of a series.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct Point {
    /// RFC 3339.
    pub time: String,
    /// `None` where it is no finite number.
    pub value: Option<f64>,
}

/// Label sets.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct SeriesLabels {
    /// One a series; the metric's name is `__name__`.
    pub series: Vec<Labels>,
    /// What was left out or warned of.
    pub note: Option<String>,
}

/// Names of labels, or values of one.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Names {
    /// In order.
    pub names: Vec<String>,
    /// What was left out or warned of.
    pub note: Option<String>,
}

/// Alerts.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct Alerts {
    /// The firing ones first.
    pub alerts: Vec<Alert>,
    /// What was left out or warned of.
    pub note: Option<String>,
}

/// One alert.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct Alert {
    /// The rule's name.
    pub name: String,
    /// `firing` or `pending`.
    pub state: String,
    /// The labels without the name.
    pub labels: Labels,
    /// What the rule says of it, such as `summary`.
    pub annotations: Labels,
    /// RFC 3339.
    pub active_since: Option<String>,
    /// The value of the rule's expression.
    pub value: Option<f64>,
}

/// Rules.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct Rules {
    /// In the order of their groups.
    pub rules: Vec<Rule>,
    /// What was left out or warned of.
    pub note: Option<String>,
}

/// One rule.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct Rule {
    /// The group's name.
    pub group: String,
    /// The alert's name, or that of the recorded metric.
    pub name: String,
    /// `alerting` or `recording`.
    pub kind: String,
    /// PromQL.
    pub query: String,
    /// `firing`, `pending` or `inactive`; none for recording rules.
    pub state: Option<String>,
    /// `ok`, `err` or `unknown`.
    pub health: String,
    /// Why it cannot be evaluated.
    pub last_error: Option<String>,
}

/// Scrape targets.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Targets {
    /// Those that are not up first.
    pub targets: Vec<Target>,
    /// What was left out or warned of.
    pub note: Option<String>,
}

/// One scrape target.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Target {
    /// The job.
    pub job: String,
    /// Host and port, as a rule.
    pub instance: String,
    /// `up`, `down` or `unknown`.
    pub health: String,
    /// Why it is down.
    pub last_error: Option<String>,
    /// RFC 3339; none if it was not scraped yet.
    pub last_scrape: Option<String>,
    /// What is scraped.
    pub url: String,
    /// The labels but job and instance.
    pub labels: Labels,
}
