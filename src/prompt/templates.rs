//! The texts of a prompt: our own, included at compile time, or the user's in their place.

use std::collections::BTreeMap;

use minijinja::syntax::SyntaxConfig;
use minijinja::{Environment, UndefinedBehavior, Value};

use super::stubs::LastStubs;

/// The names of the templates that a user may override, and our own texts.
const TEMPLATES: [(&str, &str); 5] = [
    ("system.md.j2", include_str!("../../prompts/system.md.j2")),
    ("head.py.j2", include_str!("../../prompts/head.py.j2")),
    ("example_question.md.j2", include_str!("../../prompts/example_question.md.j2")),
    ("example_program.py.j2", include_str!("../../prompts/example_program.py.j2")),
    ("request.md.j2", include_str!("../../prompts/request.md.j2")),
];

/// The names of the templates that a user may override.
pub const TEMPLATE_NAMES: [&str; TEMPLATES.len()] = {
    let mut names = [""; TEMPLATES.len()];
    let mut index = 0;
    while index < TEMPLATES.len() {
        names[index] = TEMPLATES[index].0;
        index += 1;
    }
    names
};

/// The texts of a prompt.
#[derive(Debug)]
pub struct Templates {
    environment: Environment<'static>,
    /// What most of a prompt is made of, and seldom changes.
    pub(super) stubs: LastStubs,
}

/// Why a template cannot be used.
#[derive(Debug, thiserror::Error)]
#[error("the prompt template `{name}` cannot be used: {reason}")]
pub struct TemplateError {
    /// The template's name.
    pub name: String,
    /// What was wrong with it, and where.
    pub reason: String,
}

impl TemplateError {
    /// What the user can do.
    pub fn hint(&self) -> String {
        if TEMPLATE_NAMES.contains(&self.name.as_str()) {
            "mend your copy of it, or remove it to use the one that comes with Fimble".to_owned()
        } else {
            format!("the templates are {}", TEMPLATE_NAMES.join(", "))
        }
    }
}

impl Templates {
    /// The templates, with the user's own texts by name.
    ///
    /// # Errors
    /// A name that is no template, or a text that is not valid.
    pub fn new(overrides: &BTreeMap<String, String>) -> Result<Self, TemplateError> {
        let mut environment = Environment::new();
        environment.set_undefined_behavior(UndefinedBehavior::Strict);
        let syntax = SyntaxConfig::builder().trim_blocks(true).lstrip_blocks(true).build();
        environment.set_syntax(syntax.map_err(|error| failed("", &error))?);
        for (name, text) in TEMPLATES {
            environment.add_template(name, text).map_err(|error| failed(name, &error))?;
        }
        for (name, text) in overrides {
            if !TEMPLATE_NAMES.contains(&name.as_str()) {
                return Err(TemplateError { name: name.clone(), reason: "there is no such template".to_owned() });
            }
            let added = environment.add_template_owned(name.clone(), text.clone());
            added.map_err(|error| failed(name, &error))?;
        }
        Ok(Self { environment, stubs: LastStubs::default() })
    }

    /// One template's text, without white space around it.
    pub(super) fn render(&self, name: &str, context: Value) -> Result<String, TemplateError> {
        let template = self.environment.get_template(name).map_err(|error| failed(name, &error))?;
        let text = template.render(context).map_err(|error| failed(name, &error))?;
        Ok(text.trim_matches('\n').trim_end().to_owned())
    }
}

fn failed(name: &str, error: &minijinja::Error) -> TemplateError {
    let line = error.line().map(|line| format!(" in line {line}")).unwrap_or_default();
    let reason = error.detail().map_or_else(|| error.kind().to_string(), str::to_owned);
    TemplateError { name: name.to_owned(), reason: format!("{reason}{line}") }
}

#[cfg(test)]
mod tests {
    use minijinja::context;

    use super::*;

    #[test]
    fn a_users_text_stands_in_place_of_ours() {
        let overrides = BTreeMap::from([("request.md.j2".to_owned(), "No: {{ message }}\n".to_owned())]);
        let templates = Templates::new(&overrides).unwrap();
        assert_eq!(templates.render("request.md.j2", context! { message => "why" }).unwrap(), "No: why");
    }

    #[test]
    fn broken_and_unknown_templates_are_named() {
        let error = |name: &str, text: &str| {
            let overrides = BTreeMap::from([(name.to_owned(), text.to_owned())]);
            let error = Templates::new(&overrides).unwrap_err();
            (error.to_string(), error.hint())
        };
        let (message, hint) = error("system.md.j2", "a\n{% if x %}");
        assert_eq!(
            message,
            "the prompt template `system.md.j2` cannot be used: unexpected end of input, expected end of block in line 2"
        );
        assert_eq!(hint, "mend your copy of it, or remove it to use the one that comes with Fimble");
        let (message, hint) = error("other.md", "");
        assert_eq!(message, "the prompt template `other.md` cannot be used: there is no such template");
        assert!(hint.starts_with("the templates are system.md.j2, "), "{hint}");
    }

    #[test]
    fn a_template_that_asks_for_what_is_not_there_fails() {
        let overrides = BTreeMap::from([("request.md.j2".to_owned(), "{{ nothing }}".to_owned())]);
        let error = Templates::new(&overrides).unwrap().render("request.md.j2", context! {}).unwrap_err();
        assert_eq!(
            error.to_string(),
            "the prompt template `request.md.j2` cannot be used: `nothing` is undefined in line 1"
        );
    }
}
