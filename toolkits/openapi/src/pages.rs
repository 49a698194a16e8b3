//! Pages that follow one another, put together. It sends nothing.

use serde_json::Value;

/// What asks for the page after this one: the field at that path, if it is there and not empty.
pub(crate) fn next<'a>(page: &'a Value, path: &[&str]) -> Option<&'a Value> {
    let found = path.iter().try_fold(page, |value, name| value.get(*name))?;
    let is_there = !found.is_null() && found.as_str() != Some("");
    (is_there && !path.is_empty()).then_some(found)
}

/// The name of the list of a page: its one field that is a list. A page with several, or none, is left as it is.
pub(crate) fn list(page: &Value) -> Option<String> {
    let fields = page.as_object()?;
    let mut lists = fields.iter().filter(|(_, value)| value.is_array());
    let (name, _) = lists.next()?;
    lists.next().is_none().then(|| name.clone())
}

/// Adds the items of the next page, and takes from it what leads to the page after.
pub(crate) fn append(pages: &mut Value, mut page: Value, list: &str, path: &[&str]) {
    let Value::Object(fields) = pages else { return };
    let items = page.get_mut(list).map(Value::take);
    if let (Some(Value::Array(all)), Some(Value::Array(items))) = (fields.get_mut(list), items) {
        all.extend(items);
    }
    if let Some(first) = path.first() {
        fields.insert((*first).to_owned(), page.get_mut(*first).map(Value::take).unwrap_or_default());
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn pages_are_put_together() {
        let path = ["metadata", "continue"];
        let mut pages = json!({"kind": "List", "metadata": {"continue": "a", "left": 2}, "items": [1, 2]});
        assert_eq!((next(&pages, &path), list(&pages)), (Some(&json!("a")), Some("items".to_owned())));
        append(&mut pages, json!({"kind": "List", "metadata": {"continue": ""}, "items": [3]}), "items", &path);
        assert_eq!(pages, json!({"kind": "List", "metadata": {"continue": ""}, "items": [1, 2, 3]}));
        assert_eq!(next(&pages, &path), None);
        // What has no list, or more than one, could be put together in more than one way.
        for page in [json!([1]), json!({"a": 1}), json!({"a": [], "b": []}), json!(null)] {
            assert_eq!(list(&page), None, "{page}");
        }
    }
}
