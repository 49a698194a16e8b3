//! What the numbers in the settings may be. A limit that is negative, no number or endless would switch itself off, or stop
//! everything; both are refused before anything starts. It does not know where a setting was written.

use fimble_toolkit::Number;

use super::{Config, ConfigError};
use crate::gate::HookEvent;

/// The most seconds that a setting can have: 31 days.
const MOST_SECONDS: u64 = 2_678_400;

/// The most seconds for which a session is kept. A hundred years.
const MOST_KEPT: u64 = 3_153_600_000;

/// The most KiB of anything that is held in memory: a TiB.
const MOST_KIB: u64 = 1 << 30;

/// The most tokens of anything.
const MOST_TOKENS: u64 = 1_000_000_000;

/// More of anything than there can be.
const MANY: u64 = 1_000_000_000;

impl Config {
    /// Refuses numbers that make no sense.
    pub(super) fn check_numbers(&self) -> Result<(), ConfigError> {
        match self.numbers().iter().find_map(|number| Some((number, number.problem()?))) {
            None => Ok(()),
            Some((number, problem)) => Err(ConfigError {
                origin: number.name().to_owned(),
                message: format!("{problem}\n\nhint: {}", number.hint()),
            }),
        }
    }

    /// All numbers, those of tables that are not there with their defaults.
    pub(super) fn numbers(&self) -> Vec<Number> {
        let toolkits = &self.toolkits;
        let shell = toolkits.shell.clone().unwrap_or_default().numbers();
        let http = toolkits.http.clone().unwrap_or_default().numbers();
        let mut all = self.kept();
        all.extend(self.of_models());
        all.extend(self.of_programs());
        all.extend(self.of_the_gate());
        all.extend([toolkits.prometheus.numbers(), toolkits.postgres.numbers(), toolkits.redis.numbers()].concat());
        all.extend(shell.into_iter().chain(http));
        all.extend([
            whole("toolkits.patience_s", toolkits.patience_s, 0, MOST_SECONDS, "seconds"),
            seconds("toolkits.retry_s", toolkits.retry_s),
            whole("toolkits.folder_files", toolkits.folder_files as u64, 1, MANY, "files"),
            whole("toolkits.file_kib", toolkits.file_kib, 1, MOST_KIB, "KiB"),
            seconds("toolkits.mcp_stop_s", toolkits.mcp_stop_s),
        ]);
        all
    }

    /// Those of what is kept, and where.
    fn kept(&self) -> Vec<Number> {
        let session = &self.session;
        vec![
            whole("store_keep_s", self.store_keep_s.unwrap_or(1), 1, MOST_KEPT, "seconds"),
            whole("store_replicas", self.store_replicas, 0, 1_000, "replicas"),
            whole("store_replicas_ms", self.store_replicas_ms.unwrap_or(1), 1, 60_000, "milliseconds"),
            whole("session.variable_kib", session.variable_kib, 0, MOST_KIB, "KiB"),
            whole("session.variables_kib", session.variables_kib, 0, MOST_KIB, "KiB"),
            whole("session.at_once", session.at_once, 1, MANY, "sessions"),
            whole("session.wait_s", session.wait_s, 0, MOST_SECONDS, "seconds"),
            seconds("secrets.command_s", self.secrets.command_s),
        ]
    }

    /// Those of models, of what they read, and of turns.
    fn of_models(&self) -> Vec<Number> {
        let (llm, local, prompt, agent) = (&self.llm, &self.llm.local, &self.prompt, &self.agent);
        let timeout = |name: &str, value: f64| Number::above_zero(name, value, 86_400.0, "seconds");
        vec![
            timeout("llm.timeouts.connect_s", llm.timeouts.connect_s),
            timeout("llm.timeouts.first_token_s", llm.timeouts.first_token_s),
            timeout("llm.timeouts.idle_s", llm.timeouts.idle_s),
            timeout("llm.timeouts.total_s", llm.timeouts.total_s),
            whole("llm.retries", llm.retries, 0, 100, "retries"),
            whole("llm.context_tokens", llm.context_tokens.unwrap_or(1), 1, MOST_TOKENS, "tokens"),
            whole("llm.response_kib", llm.response_kib, 1, MOST_KIB, "KiB"),
            whole("llm.local.threads", local.threads, 0, 1_024, "threads"),
            whole("llm.local.context_tokens", local.context_tokens, 1, MOST_TOKENS, "tokens"),
            whole("llm.local.port", local.port, 0, 65_535, ""),
            timeout("llm.local.idle_s", local.idle_s),
            Number::real("llm.local.linger_s", local.linger_s, 0.0..=86_400.0, "seconds"),
            timeout("llm.local.load_s", local.load_s),
            Number::real("llm.local.cache_mib", local.cache_mib.into(), 0.0..=f64::from(i32::MAX), "MiB"),
            whole("prompt.context_tokens", prompt.context_tokens, 1, MOST_TOKENS, "tokens"),
            whole("prompt.max_tokens", prompt.max_tokens, 1, MOST_TOKENS, "tokens"),
            Number::real("prompt.temperature", prompt.temperature.into(), 0.0..=2.0, ""),
            whole("prompt.stub_tokens", prompt.stub_tokens, 0, MOST_TOKENS, "tokens"),
            whole("prompt.name_tokens", prompt.name_tokens, 0, MOST_TOKENS, "tokens"),
            whole("prompt.likely_tokens", prompt.likely_tokens, 0, MOST_TOKENS, "tokens"),
            whole("prompt.output_tokens", prompt.output_tokens, 1, MOST_TOKENS, "tokens"),
            whole("agent.max_rounds", agent.max_rounds, 1, MANY, "rounds"),
            whole("agent.max_refusals", agent.max_refusals, 1, MANY, "refusals"),
            whole("agent.max_turn_tokens", agent.max_turn_tokens, 1, u32::MAX.into(), "tokens"),
        ]
    }

    /// Those of programs and of the processes that run them.
    fn of_programs(&self) -> Vec<Number> {
        let (interpreter, limits, program) = (&self.interpreter, &self.interpreter.limits, &self.program);
        let cpus = interpreter.zygote_cpus.unwrap_or(1.0);
        vec![
            whole("program.max_variables_shown", program.max_variables_shown as u64, 0, MANY, "variables"),
            whole("program.max_source_kib", program.max_source_kib as u64, 1, MOST_KIB, "KiB"),
            seconds("interpreter.start_s", interpreter.start_s),
            whole("interpreter.rounds_per_zygote", interpreter.rounds_per_zygote, 1, MANY, "rounds"),
            whole("interpreter.zygote_memory_mib", interpreter.zygote_memory_mib, 1, MOST_KIB, "MiB"),
            whole("interpreter.zygote_tasks", interpreter.zygote_tasks, 1, MANY, "tasks"),
            Number::above_zero("interpreter.zygote_cpus", cpus, 65_536.0, "processors"),
            whole("interpreter.spin_us", interpreter.spin_us, 0, 1_000, "microseconds"),
            whole("interpreter.uid", interpreter.uid, 1, u64::from(u32::MAX) - 1, ""),
            seconds("interpreter.limits.wall_s", limits.wall_s),
            whole("interpreter.limits.cpu_s", limits.cpu_s, 1, MOST_SECONDS, "seconds"),
            whole("interpreter.limits.memory_mib", limits.memory_mib, 1, MOST_KIB, "MiB"),
            whole("interpreter.limits.output_kib", limits.output_kib, 0, MOST_KIB, "KiB"),
            whole("interpreter.limits.calls", limits.calls, 0, MANY, "calls"),
            whole("interpreter.limits.concurrent_calls", limits.concurrent_calls, 1, MANY, "calls"),
            // A folder in memory of no size has no limit.
            whole("interpreter.limits.scratch_mib", limits.scratch_mib, 1, MOST_KIB, "MiB"),
            whole("interpreter.limits.variables_kib", limits.variables_kib, 0, MOST_KIB, "KiB"),
            whole("interpreter.limits.variable_kib", limits.variable_kib, 0, MOST_KIB, "KiB"),
            whole("interpreter.limits.frame_kib", limits.frame_kib, 1, MOST_KIB, "KiB"),
        ]
    }

    /// Those of calls.
    fn of_the_gate(&self) -> Vec<Number> {
        let gate = &self.gate;
        let mut all = vec![
            seconds("gate.call_timeout_s", gate.call_timeout_s),
            seconds("gate.turn_s", gate.turn_s),
            seconds("gate.sleep_s", gate.sleep_s),
            seconds("gate.task_s", gate.task_s),
            whole("gate.task_look_ms", gate.task_look_ms, 1, MOST_SECONDS * 1_000, "milliseconds"),
            whole("gate.task_suspended_ms", gate.task_suspended_ms, 1, MOST_SECONDS * 1_000, "milliseconds"),
            seconds("gate.task_stop_s", gate.task_stop_s),
            seconds("gate.grace_s", gate.grace_s),
            whole("gate.arguments_kib", gate.arguments_kib, 1, MOST_KIB, "KiB"),
            whole("gate.result_kib", gate.result_kib, 1, MOST_KIB, "KiB"),
            whole("gate.event_result_kib", gate.event_result_kib, 0, MOST_KIB, "KiB"),
            whole("gate.plan_effects", gate.plan_effects, 1, MANY, "effects"),
            whole("gate.plan_kib", gate.plan_kib, 1, MOST_KIB, "KiB"),
            whole("gate.flush_ms", gate.flush_ms, 1, MOST_SECONDS * 1_000, "milliseconds"),
            whole("gate.progress_ms", gate.progress_ms, 0, MOST_SECONDS * 1_000, "milliseconds"),
            whole("gate.progress_events", gate.progress_events, 0, MANY, "events"),
            whole("gate.progress_characters", gate.progress_characters, 1, MANY, "characters"),
            whole("gate.describe_tokens", gate.describe_tokens, 1, MOST_TOKENS, "tokens"),
        ];
        for event in HookEvent::ALL {
            let name = format!("gate.hooks.{}", event.as_str());
            // Where there is none the name must still be known.
            let default = [crate::gate::Hook::default()];
            let hooks = Some(gate.hooks.of(event)).filter(|hooks| !hooks.is_empty()).unwrap_or(&default);
            for hook in hooks {
                all.push(seconds(&format!("{name}.timeout_s"), hook.timeout_s));
                all.push(whole(&format!("{name}.output_kib"), hook.output_kib, 1, MOST_KIB, "KiB"));
            }
        }
        // Their type lets no 0 in.
        let calls = [("per_minute", "calls a minute"), ("burst", "calls"), ("at_once", "calls")];
        all.extend(calls.map(|(name, unit)| whole(&format!("gate.limits.{name}"), 1_u32, 1, u32::MAX.into(), unit)));
        all
    }
}

/// What a value's type is wrong with, as `said` by its reader, with what the `setting` may be as a hint.
pub(super) fn explained(setting: &str, said: &str) -> String {
    let Some((wrong, expected)) = said.split_once(", expected ") else { return said.to_owned() };
    // Those of a list's items have one name.
    let mut name = String::new();
    for part in setting.split('[') {
        name.push_str(part.split_once(']').map_or(part, |(_, behind)| behind));
    }
    let number = Config::default().numbers().into_iter().find(|number| number.name() == name);
    let hint = match (number, expected) {
        (Some(number), _) => number.hint().to_owned(),
        (None, "a boolean") => "give true or false".to_owned(),
        (None, "a string") => "give a text in quotes".to_owned(),
        (None, "a sequence") => "give a list, e.g. `[\"one\", \"two\"]`".to_owned(),
        (None, _) => return said.to_owned(),
    };
    format!("{wrong}\n\nhint: {hint}")
}

fn seconds(name: &str, value: f64) -> Number {
    Number::above_zero(name, value, MOST_SECONDS as f64, "seconds")
}

fn whole(name: &str, value: impl Into<u64>, least: u64, most: u64, unit: &str) -> Number {
    Number::whole(name, value.into(), least..=most, unit)
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::super::Sources;
    use super::*;

    /// Settings that are not written where they have no value, and of tables that are not there.
    const OPTIONAL: [&str; 4] = ["store_keep_s", "store_replicas_ms", "llm.context_tokens", "interpreter.zygote_cpus"];

    fn read(flags: &[String]) -> Result<Config, ConfigError> {
        Config::read(&Sources { flags: flags.to_vec(), ..Sources::default() })
    }

    /// The names of all numbers below.
    fn names(prefix: &str, value: &Value, into: &mut Vec<String>) {
        match value {
            Value::Number(_) => into.push(prefix.to_owned()),
            Value::Object(fields) => fields.iter().for_each(|(name, value)| {
                names(&if prefix.is_empty() { name.clone() } else { format!("{prefix}.{name}") }, value, into);
            }),
            _ => {}
        }
    }

    #[test]
    fn every_number_of_the_settings_refuses_nonsense_with_its_name_its_value_and_its_range() {
        let tables = ["toolkits.shell={}", "toolkits.http={}"].map(str::to_owned);
        let written = serde_json::to_value(read(&tables).unwrap()).unwrap();
        let mut all = OPTIONAL.map(str::to_owned).to_vec();
        names("", &written, &mut all);
        assert!(all.len() > 75, "{}", all.len());
        for name in all {
            for value in ["-1", "-0.5", "nan", "inf", "9223372036854775807", "x"] {
                let error = read(&[&tables[..], &[format!("{name}={value}")]].concat()).unwrap_err();
                let told = error.to_string();
                let is_named = error.origin == name || error.origin == format!("the setting `{name}`");
                assert!(is_named && told.contains("\n\nhint: give a "), "{name}={value}: {told}");
                // A fraction has no more digits than that.
                let shown = value.get(..15).unwrap_or(value);
                assert!(told.to_lowercase().contains(shown), "{name}={value}: {told}");
            }
        }
    }

    #[test]
    fn nothing_is_refused_that_is_the_default() {
        assert_eq!(Config::default().check_numbers().map_err(|error| error.to_string()), Ok(()));
    }

    #[test]
    fn numbers_within_lists_are_told_by_their_list() {
        for (list, name) in [
            ("gate.limits=[{per_minute=0}]", "gate.limits"),
            ("gate.hooks.PreToolUse=[{command=['x'], timeout_s=0}]", "gate.hooks.PreToolUse.timeout_s"),
            ("gate.hooks.Stop=[{command=['x'], output_kib=-1}]", "gate.hooks.Stop"),
        ] {
            let told = read(&[list.to_owned()]).unwrap_err().to_string();
            assert!(told.contains(name) && told.contains("hint: give a "), "{list}: {told}");
        }
    }
}
