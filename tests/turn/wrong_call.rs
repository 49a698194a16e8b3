//! A call with wrong names and a wrong type: refused before it runs, and right after one more try.

use super::*;

struct Requirements;

/// Requirements of projects.
#[toolkit(name = "devops_toolkit")]
impl Requirements {
    /// Requirements that have a word.
    #[operation(risk = "read")]
    async fn search_requirements(&self, project_id: String, query: String) -> Result<serde_json::Value, ToolError> {
        Ok(json!({"success": true, "data": [format!("{project_id}: {query}")]}))
    }
}

#[tokio::test]
async fn the_message_of_a_wrong_call_says_what_to_write_instead() {
    let sample = "result = devops_toolkit.search_requirements(id=123, keyword=\"login\")\n\
        if result.get('success'):\n    print(result['data'])\n    await system_toolkit.send_message(str(result['data']))";
    let repaired = sample.replace(
        "devops_toolkit.search_requirements(id=123, keyword=\"login\")",
        "await devops_toolkit.search_requirements(project_id=\"123\", query=\"login\")",
    );
    let mut world = World::new([sample, &repaired]).await;
    world.agent.parts.gate.registry().register(Arc::new(Requirements)).unwrap();
    let verdict = world.say("Which requirements of project 123 are about login?").await;
    assert_eq!(verdict, Verdict::Replied);
    assert_eq!(world.contents(SegmentKind::Reply), ["['123: login']"]);
    assert_eq!(world.model.requests().len(), 2, "one infill is enough");
    let told = "# careful: `devops_toolkit.search_requirements`: it has no parameter `id`, did you mean \
        `project_id`; it has no parameter `keyword`; `project_id` is missing; `query` is missing; its signature is \
        `search_requirements(project_id: str, query: str)`; write `await \
        devops_toolkit.search_requirements(project_id=\"123\", query=\"login\")`";
    assert!(world.last_prompt().contains(told), "{}", world.last_prompt());
}
