//! The server's answers, read and made into records: cut to a limit, with a sentence on what was cut.

use fimble_toolkit::ToolError;
use serde::Deserialize;

use crate::moment::written;
use crate::record::{
    Alert, Alerts, Labels, Matrix, Names, Point, Rule, Rules, Sample, Series, SeriesLabels, Target, Targets, Vector,
};

/// What stands around every answer.
#[derive(Deserialize)]
pub(crate) struct Wire<T> {
    data: T,
    #[serde(default)]
    warnings: Vec<String>,
}

#[derive(Deserialize)]
#[serde(tag = "resultType", content = "result", rename_all = "lowercase")]
pub(crate) enum Queried {
    Vector(Vec<WireSeries>),
    Matrix(Vec<WireSeries>),
    Scalar(Pair),
    String(#[expect(dead_code, reason = "only that it is one matters")] (f64, String)),
}

#[derive(Deserialize)]
pub(crate) struct WireSeries {
    #[serde(default)]
    metric: Labels,
    value: Option<Pair>,
    #[serde(default)]
    values: Vec<Pair>,
    histogram: Option<(f64, serde::de::IgnoredAny)>,
    #[serde(default)]
    histograms: Vec<serde::de::IgnoredAny>,
}

/// A time in seconds, and a number as Go writes it.
#[derive(Deserialize)]
pub(crate) struct Pair(f64, String);

impl Pair {
    fn value(&self) -> Option<f64> {
        self.1.parse().ok().filter(|value: &f64| value.is_finite())
    }
}

const HISTOGRAM: &str = "native histograms have no one value: use histogram_quantile(…) or histogram_count(…)";

pub(crate) fn vector(reply: Wire<Queried>, limit: usize) -> Result<Vector, ToolError> {
    let series = match reply.data {
        Queried::Vector(series) => series,
        Queried::Scalar(pair) => {
            vec![WireSeries {
                metric: Labels::new(),
                value: Some(pair),
                values: Vec::new(),
                histogram: None,
                histograms: Vec::new(),
            }]
        }
        Queried::Matrix(_) => {
            return Err(ToolError::invalid_argument("the query is a range of values, not one value a series")
                .with_hint(
                    "put a function around the range, such as rate(…[5m]), or use query_range with the selector alone",
                ));
        }
        Queried::String(_) => return Err(ToolError::invalid_argument("the query is a string, not a number")),
    };
    let mut notes = Notes::new(reply.warnings);
    notes.add_if(series.iter().any(|series| series.histogram.is_some()), HISTOGRAM);
    notes.cut(series.len(), limit, "samples", "add labels to the query, aggregate with sum by (…), or use topk(…)");
    let samples = series.into_iter().take(limit).map(|series| {
        let histogram_time = series.histogram.map(|(time, _)| time);
        let time = series.value.as_ref().map(|pair| pair.0).or(histogram_time);
        Sample {
            metric: series.metric,
            value: series.value.as_ref().and_then(Pair::value),
            time: time.and_then(written).unwrap_or_default(),
        }
    });
    Ok(Vector { samples: samples.collect(), note: notes.text() })
}

pub(crate) fn matrix(reply: Wire<Queried>, limit: usize, points: usize) -> Result<Matrix, ToolError> {
    let Queried::Matrix(all) = reply.data else {
        return Err(ToolError::unavailable("the server answered a range query with something else"));
    };
    let mut notes = Notes::new(reply.warnings);
    notes.add_if(all.iter().any(|series| !series.histograms.is_empty()), HISTOGRAM);
    // Whole series only: half a series reads as one that ended.
    let mut room = points;
    let whole = all.iter().take_while(|series| {
        let fits = series.values.len() <= room;
        room = room.saturating_sub(series.values.len());
        fits
    });
    let limit = limit.min(whole.count());
    if limit == 0 && !all.is_empty() {
        return Err(ToolError::failed(format!("one series alone has more than {points} values"))
            .with_hint("use a longer `step` or a shorter time"));
    }
    notes.cut(all.len(), limit, "series", "add labels to the query, aggregate with sum by (…), or use a longer `step`");
    let series = all.into_iter().take(limit).map(|series| Series {
        metric: series.metric,
        values: series
            .values
            .iter()
            .filter_map(|pair| Some(Point { time: written(pair.0)?, value: pair.value() }))
            .collect(),
    });
    Ok(Matrix { series: series.collect(), note: notes.text() })
}

pub(crate) fn series(reply: Wire<Vec<Labels>>, limit: usize) -> Result<SeriesLabels, ToolError> {
    let mut notes = Notes::new(reply.warnings);
    let mut series = reply.data;
    notes.cut(series.len(), limit, "series", "add labels to the selector, or count with count by (…)");
    series.truncate(limit);
    Ok(SeriesLabels { series, note: notes.text() })
}

pub(crate) fn names(reply: Wire<Vec<String>>, contains: Option<&str>, limit: usize) -> Result<Names, ToolError> {
    let mut notes = Notes::new(reply.warnings);
    let mut names = reply.data;
    names.retain(|name| contains.is_none_or(|part| name.contains(part)));
    notes.cut(names.len(), limit, "names", "narrow it with `contains` or `selector`");
    names.truncate(limit);
    Ok(Names { names, note: notes.text() })
}

#[derive(Deserialize)]
pub(crate) struct WireAlerts {
    alerts: Vec<WireAlert>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct WireAlert {
    #[serde(default)]
    labels: Labels,
    #[serde(default)]
    annotations: Labels,
    state: String,
    active_at: Option<String>,
    value: Option<String>,
}

pub(crate) fn alerts(reply: Wire<WireAlerts>, state: Option<&str>, limit: usize) -> Result<Alerts, ToolError> {
    let mut notes = Notes::new(reply.warnings);
    let mut alerts = reply.data.alerts;
    alerts.retain(|alert| state.is_none_or(|state| alert.state == state));
    alerts.sort_by_key(|alert| alert.state != "firing");
    notes.cut(alerts.len(), limit, "alerts", "raise `limit`");
    let alerts = alerts.into_iter().take(limit).map(|mut alert| Alert {
        name: alert.labels.remove("alertname").unwrap_or_default(),
        state: alert.state,
        labels: alert.labels,
        annotations: alert.annotations,
        active_since: alert.active_at,
        value: alert.value.and_then(|value| value.parse().ok()).filter(|value: &f64| value.is_finite()),
    });
    Ok(Alerts { alerts: alerts.collect(), note: notes.text() })
}

#[derive(Deserialize)]
pub(crate) struct WireGroups {
    groups: Vec<WireGroup>,
}

#[derive(Deserialize)]
struct WireGroup {
    name: String,
    rules: Vec<WireRule>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct WireRule {
    name: String,
    #[serde(rename = "type")]
    kind: String,
    query: String,
    state: Option<String>,
    #[serde(default)]
    health: String,
    #[serde(default)]
    last_error: String,
}

pub(crate) fn rules(
    reply: Wire<WireGroups>,
    kind: Option<&str>,
    contains: Option<&str>,
    limit: usize,
) -> Result<Rules, ToolError> {
    let mut notes = Notes::new(reply.warnings);
    let groups = reply.data.groups.into_iter();
    let mut rules: Vec<Rule> = groups
        .flat_map(|WireGroup { name: group, rules }| {
            rules.into_iter().map(move |rule| Rule {
                group: group.clone(),
                name: rule.name,
                kind: rule.kind,
                query: rule.query,
                state: rule.state,
                health: rule.health,
                last_error: Some(rule.last_error).filter(|error| !error.is_empty()),
            })
        })
        .collect();
    rules.retain(|rule| {
        kind.is_none_or(|kind| rule.kind == kind) && contains.is_none_or(|part| rule.name.contains(part))
    });
    notes.cut(rules.len(), limit, "rules", "narrow it with `kind` or `contains`");
    rules.truncate(limit);
    Ok(Rules { rules, note: notes.text() })
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct WireTargets {
    active_targets: Vec<WireTarget>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct WireTarget {
    #[serde(default)]
    labels: Labels,
    scrape_url: String,
    health: String,
    #[serde(default)]
    last_error: String,
    #[serde(default)]
    last_scrape: String,
}

/// What Go writes for a time that never was.
const NEVER: &str = "0001-01-01T00:00:00Z";

pub(crate) fn targets(
    reply: Wire<WireTargets>,
    health: Option<&str>,
    job: Option<&str>,
    limit: usize,
) -> Result<Targets, ToolError> {
    let mut notes = Notes::new(reply.warnings);
    let mut targets = reply.data.active_targets;
    targets.retain(|target| {
        health.is_none_or(|health| target.health == health)
            && job.is_none_or(|job| target.labels.get("job").is_some_and(|own| own == job))
    });
    targets.sort_by_key(|target| target.health == "up");
    notes.cut(targets.len(), limit, "targets", "narrow it with `health` or `job`");
    let targets = targets.into_iter().take(limit).map(|mut target| Target {
        job: target.labels.remove("job").unwrap_or_default(),
        instance: target.labels.remove("instance").unwrap_or_default(),
        health: target.health,
        last_error: Some(target.last_error).filter(|error| !error.is_empty()),
        last_scrape: Some(target.last_scrape).filter(|time| !time.is_empty() && time != NEVER),
        url: target.scrape_url,
        labels: target.labels,
    });
    Ok(Targets { targets: targets.collect(), note: notes.text() })
}

/// What a result says about itself.
struct Notes(Vec<String>);

/// Warnings of the server that are passed on.
const WARNINGS: usize = 5;

impl Notes {
    fn new(warnings: Vec<String>) -> Self {
        Self(warnings.into_iter().take(WARNINGS).map(|warning| warning.chars().take(300).collect()).collect())
    }

    fn add_if(&mut self, is_so: bool, text: &str) {
        if is_so {
            self.0.push(text.to_owned());
        }
    }

    fn cut(&mut self, total: usize, limit: usize, what: &str, instead: &str) {
        self.add_if(total > limit, &format!("only the first {limit} of {total} {what}; {instead}"));
    }

    fn text(self) -> Option<String> {
        (!self.0.is_empty()).then(|| self.0.join("; "))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn queried(text: &str) -> Wire<Queried> {
        serde_json::from_str(text).unwrap()
    }

    #[test]
    fn a_matrix_is_cut_at_whole_series() {
        let series = r#"{"metric":{"a":"1"},"values":[[1,"2"],[2,"NaN"],[3,"+Inf"]]}"#;
        let text = format!(r#"{{"data":{{"resultType":"matrix","result":[{series},{series},{series}]}}}}"#);
        let found = matrix(queried(&text), 10, 7).unwrap();
        assert_eq!(found.series.len(), 2);
        assert!(found.note.unwrap().starts_with("only the first 2 of 3 series; add labels"));
        let values: Vec<_> = found.series[0].values.iter().map(|point| point.value).collect();
        assert_eq!(values, [Some(2.0), None, None]);
        assert!(matrix(queried(&text), 10, 2).unwrap_err().message.starts_with("one series alone has more than 2"));
    }

    #[test]
    fn a_histogram_has_a_time_a_note_and_no_value() {
        let text = r#"{"data":{"resultType":"vector","result":[{"metric":{},"histogram":[5,{"count":"1"}]}]},
                       "warnings":["a replica is away"]}"#;
        let found = vector(queried(text), 10).unwrap();
        assert_eq!((found.samples[0].value, found.samples[0].time.as_str()), (None, "1970-01-01T00:00:05Z"));
        assert!(found.note.unwrap().starts_with("a replica is away; native histograms"));
    }

    proptest::proptest! {
        #[test]
        fn any_answer_is_read_or_refused(text in "[\\[\\]{}\",:a-z0-9.]{0,80}") {
            for text in [text.clone(), format!(r#"{{"data":{text}}}"#)] {
                if let Ok(reply) = serde_json::from_str::<Wire<Queried>>(&text) {
                    let _ = vector(reply, 3);
                }
                let _ = serde_json::from_str::<Wire<WireTargets>>(&text).map(|reply| targets(reply, None, None, 3));
            }
        }
    }
}
