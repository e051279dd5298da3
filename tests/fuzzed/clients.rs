//! Files of MCP clients: JSON with comments, and TOML.

use std::path::Path;

use stdiowatch::config::{self, yaml};
use stdiowatch::words::is_printable;

/// Where clients have their files; the project of a file hangs on it.
const FILES: [&str; 8] = [
    "/nowhere/.cursor/mcp.json",
    "/nowhere/.vscode/mcp.json",
    "/nowhere/.mcp.json",
    "/nowhere/.codex/config.toml",
    "/nowhere/claude_desktop_config.json",
    "/nowhere/.config/zed/settings.json",
    "/nowhere/opencode.json",
    "/nowhere/.claude.json",
];

/// The first byte says whose file it is; the rest is its text.
pub fn run(data: &[u8]) {
    let [whose, text @ ..] = data else { return };
    let Ok(text) = std::str::from_utf8(text) else { return };
    match config::read(text, Path::new(FILES[usize::from(*whose) % FILES.len()]), &super::env) {
        Ok(configuration) => {
            let shown = config::show(&configuration);
            let (root, problems) = yaml::read(&shown);
            assert!(root.is_some() && problems.is_empty(), "{problems:?} in\n{shown}");
            for skipped in &configuration.skipped {
                assert!(skipped.why.chars().all(is_printable) && skipped.why.len() < 2000, "{:?}", skipped.why);
            }
        }
        Err(problems) => super::can_be_told(text, &problems),
    }
}
