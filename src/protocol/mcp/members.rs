//! What the published schemas want of each result: one table for all revisions of an era, as clients have it.
//!
//! Only what a client holds a result against stands here. What a modern server says of itself in `_meta` nobody does.

use crate::protocol::Era;

use super::ask::ListKind;
use super::shape::{Member, Want};

const ICONS: Want = Want::List(&Want::Members(&[
    Member::must("src", Want::Text),
    Member::may("mimeType", Want::Text),
    Member::may("sizes", Want::List(&Want::Text)),
    Member::late("theme", Want::Word(&["dark", "light"], "\"dark\" or \"light\"")),
]));

/// `Implementation`.
const SERVER_INFO: Want = Want::Members(&[
    Member::must("name", Want::Text),
    Member::must("version", Want::Text),
    Member::may("title", Want::Text),
    Member::late("description", Want::Text),
    Member::may("websiteUrl", Want::Text),
    Member::may("icons", ICONS),
]);

const LISTED: Want = Want::Members(&[Member::may("listChanged", Want::Flag)]);

/// `ServerCapabilities`. It is no closed set: others may be anything. The last is not one of the modern era.
const CAPABILITIES: &[Member] = &[
    Member::may("tools", LISTED),
    Member::may("prompts", LISTED),
    Member::may("resources", Want::Members(&[Member::may("listChanged", Want::Flag), Member::may("subscribe", Want::Flag)])),
    Member::may("logging", Want::Loose),
    Member::may("completions", Want::Loose),
    Member::may("experimental", Want::Record),
    Member::late("extensions", Want::Record),
    Member::may("tasks", TASKS),
];

const TASKS: Want = Want::Members(&[
    Member::may("list", Want::Loose),
    Member::may("cancel", Want::Loose),
    Member::may("requests", Want::Members(&[Member::may("tools", Want::Members(&[Member::may("call", Want::Loose)]))])),
]);

/// `InitializeResult`: version, capabilities and who the server is first.
pub(super) const INITIALIZED: &[Member] = &[
    Member::must("protocolVersion", Want::Text),
    Member::must("capabilities", Want::Members(CAPABILITIES)),
    Member::must("serverInfo", SERVER_INFO),
    Member::may("instructions", Want::Text),
    Member::may("_meta", Want::Object),
];

/// `DiscoverResult`, capabilities first; without the versions, and without what every modern result has.
pub(super) const DISCOVERED: &[Member] = &[
    Member::must("capabilities", Want::Members(without_last(CAPABILITIES))),
    Member::may("instructions", Want::Text),
    Member::may("_meta", Want::Object),
];

/// A page: the list first, and where it goes on. What is on the list is held against [`item_members`].
pub(super) const fn list_members(kind: ListKind) -> &'static [Member] {
    const fn page(key: &'static str) -> [Member; 3] {
        [Member::must(key, Want::Array), Member::may("nextCursor", Want::Cursor), Member::may("_meta", Want::Object)]
    }
    const TOOLS: [Member; 3] = page("tools");
    const PROMPTS: [Member; 3] = page("prompts");
    const RESOURCES: [Member; 3] = page("resources");
    const TEMPLATES: [Member; 3] = page("resourceTemplates");
    match kind {
        ListKind::Tools => &TOOLS,
        ListKind::Prompts => &PROMPTS,
        ListKind::Resources => &RESOURCES,
        ListKind::ResourceTemplates => &TEMPLATES,
    }
}

/// An item of a list; a tool's schemas second and third.
pub(super) const fn item_members(kind: ListKind, era: Era) -> &'static [Member] {
    match (kind, era) {
        (ListKind::Tools, Era::Legacy) => TOOL,
        (ListKind::Tools, Era::Modern) => without_last(TOOL),
        (ListKind::Prompts, _) => PROMPT,
        (ListKind::Resources, _) => RESOURCE,
        (ListKind::ResourceTemplates, _) => RESOURCE_TEMPLATE,
    }
}

const fn without_last(members: &[Member]) -> &[Member] {
    members.split_at(members.len() - 1).0
}

/// The last is not one of the modern era.
const TOOL: &[Member] = &[
    Member::must("name", Want::Text),
    Member::must("inputSchema", Want::Object),
    Member::may("outputSchema", Want::Object),
    Member::may("title", Want::Text),
    Member::may("description", Want::Text),
    Member::may("annotations", HINTS),
    Member::may("icons", ICONS),
    Member::may("_meta", Want::Object),
    Member::may("execution", EXECUTION),
];

/// `ToolAnnotations`.
const HINTS: Want = Want::Members(&[
    Member::may("title", Want::Text),
    Member::may("readOnlyHint", Want::Flag),
    Member::may("destructiveHint", Want::Flag),
    Member::may("idempotentHint", Want::Flag),
    Member::may("openWorldHint", Want::Flag),
]);

const EXECUTION: Want =
    Want::Members(&[Member::may("taskSupport", Want::Word(&["forbidden", "optional", "required"], "\"forbidden\", \"optional\" or \"required\""))]);

const PROMPT: &[Member] = &[
    Member::must("name", Want::Text),
    Member::may("title", Want::Text),
    Member::may("description", Want::Text),
    Member::may("arguments", Want::List(&ARGUMENT)),
    Member::may("icons", ICONS),
    Member::may("_meta", Want::Object),
];

/// `PromptArgument`.
const ARGUMENT: Want =
    Want::Members(&[Member::must("name", Want::Text), Member::may("description", Want::Text), Member::may("required", Want::Flag)]);

const RESOURCE: &[Member] = &[
    Member::must("name", Want::Text),
    Member::must("uri", Want::Uri),
    Member::may("title", Want::Text),
    Member::may("description", Want::Text),
    Member::may("mimeType", Want::Text),
    Member::may("size", Want::Whole),
    Member::may("annotations", ANNOTATIONS),
    Member::may("icons", ICONS),
    Member::may("_meta", Want::Object),
];

const RESOURCE_TEMPLATE: &[Member] = &[
    Member::must("name", Want::Text),
    Member::must("uriTemplate", Want::Text),
    Member::may("title", Want::Text),
    Member::may("description", Want::Text),
    Member::may("mimeType", Want::Text),
    Member::may("annotations", ANNOTATIONS),
    Member::may("icons", ICONS),
    Member::may("_meta", Want::Object),
];

/// `Annotations`.
const ANNOTATIONS: Want = Want::Members(&[
    Member::may("audience", Want::List(&Want::Word(&["assistant", "user"], "\"assistant\" or \"user\""))),
    Member::may("priority", Want::Share),
    Member::late("lastModified", Want::Moment),
]);
