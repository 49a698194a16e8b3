//! Programs that are wrong, each with the whole message that the model gets.

use super::*;

/// Programs, parted by lines of `---`.
const PROGRAMS: &str = include_str!("corpus/wrong.py");

/// What the session carries, with what is known of it.
pub(super) fn known_shapes() -> BTreeMap<String, Value> {
    let row = json!({"type": "object", "properties": {"name": text(), "size": integer()}});
    let limits = json!({"type": "object", "properties": {"cpu": integer(), "memory": integer()}});
    let config = json!({"type": "object", "properties": {"limits": limits, "name": text()}});
    let rows = json!({"type": "array", "items": row});
    [("rows", rows), ("config", config), ("title", text())].map(|(name, shape)| (name.to_owned(), shape)).into()
}

/// With what is known of the variables.
fn typed(text: &str) -> Result<Program, Refusal> {
    let (declarations, mut carried, config) = (declarations(), carried(), Config::default());
    carried.push(variable("config", VariableKind::Value, "{}", &[]));
    carried.push(variable("title", VariableKind::Value, "''", &[]));
    let shapes = known_shapes();
    let known = Known {
        declarations: &declarations,
        carried: &carried,
        shapes: &shapes,
        not_kept: &NOTHING_LOST,
        finish_length: false,
        config: &config,
    };
    splice(&scaffold(), text, &known)
}

#[test]
fn every_wrong_program_is_refused_with_its_message() {
    let mut told = String::new();
    let programs: Vec<&str> = PROGRAMS.split("# ---\n").map(|program| program.trim_matches('\n')).collect();
    assert!(programs.len() >= 55, "{}", programs.len());
    for program in programs {
        let message = match typed(program) {
            Err(refusal) => refusal.to_string(),
            Ok(Program { hole, repairs, .. }) => format!("ACCEPTED {repairs:?} {hole}"),
        };
        told.push_str(&format!(
            "{program}\n{}\n\n",
            message.replace("The program was not run\n- ", "=> ").replace("\n- ", "\n=> ")
        ));
    }
    assert!(!told.contains("ACCEPTED"), "{told}");
    insta::assert_snapshot!("wrong", told);
}

#[test]
fn what_a_program_changes_itself_is_not_held_against_it() {
    let programs = [
        "def made():\n    return {'name': 'a', 'colour': 'red'}\nrows.append(made())\nprint(rows[-1]['colour'])",
        "import json\nconfig['limits'] = json.loads('{}')\nfor key in services:\n    config[key] = 1\nprint(config.extra)",
        "rows = [{'colour': 1} for row in rows]\nprint(rows[0].colour)",
        "for row in rows:\n    row.total = row.size * 2\nprint(rows[0].total, rows[0].name.upper())",
        "print(config.get('absent'), config.items(), 'gpu' in config.limits and config.limits.gpu)",
        "if isinstance(rows, dict):\n    print(rows.colour)",
        "try:\n    print(config.colour)\nexcept AttributeError:\n    print('none')",
        "def shown(rows):\n    return rows.colour\nprint(shown(services))",
        "rows += services\nprint(rows[0].colour, title.strip().title())",
    ];
    for program in programs {
        assert_eq!(typed(program).map(|program| program.hole), Ok(format!("{program}\n")), "{program}");
    }
}
