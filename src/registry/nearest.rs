//! Which of some names was meant.

/// Least likeness, from 0 to 1, of a name worth suggesting.
const LIKENESS: f32 = 0.55;

/// Longest name in bytes that is compared. A longer one is no slip of the pen, and comparing it takes long.
const COMPARED_BYTES: usize = 100;

/// Names that models use for each other, because the libraries they learnt from do.
const SYNONYMS: [&[&str]; 11] = [
    &["limit", "count", "n", "max", "max_count", "max_results", "num", "number", "size", "top", "first"],
    &["path", "file", "filename", "file_path", "filepath", "paths", "directory", "dir", "folder"],
    &["revision", "commit", "sha", "rev", "ref", "hash", "commit_hash", "commit_sha"],
    &["from_revision", "from", "from_", "from_commit", "old", "base", "a", "start", "from_ref", "from_rev"],
    &["to_revision", "to", "to_commit", "new", "head", "target", "b", "end", "to_ref", "to_rev"],
    &["repository", "repo", "repo_path", "repository_path", "root"],
    &["pattern", "query", "regex", "text", "search", "needle", "glob", "term"],
    &["since", "after", "start", "from_date", "start_date"],
    &["until", "before", "end", "to_date", "end_date"],
    &["sort_by", "sort", "order", "order_by", "sort_key"],
    &["name", "filter", "service", "process", "unit"],
];

/// The name nearest to `wanted`, if one is near: a usual other word for the same, or spelt alike.
pub(crate) fn nearest<'a>(wanted: &str, names: &[&'a str]) -> Option<&'a str> {
    if wanted.len() > COMPARED_BYTES {
        return None;
    }
    let lower = wanted.to_ascii_lowercase();
    let groups = SYNONYMS.iter().filter(|group| group.contains(&lower.as_str()));
    // A word for the same goes first: `count` is spelt more like `until` than like `limit`.
    let synonym =
        groups.flat_map(|group| group.iter()).find_map(|word| names.iter().copied().find(|name| name == word));
    synonym.or_else(|| similar::get_close_matches(wanted, names, 1, LIKENESS).first().copied())
}

/// The `most` names that are most like `wanted`, most like first.
pub(crate) fn ranked<'a>(wanted: &str, names: &[&'a str], most: usize) -> Vec<&'a str> {
    if wanted.len() > COMPARED_BYTES {
        return names.iter().copied().take(most).collect();
    }
    similar::get_close_matches(wanted, names, most, 0.0)
}
