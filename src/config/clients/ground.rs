//! Where a client's file stands, and what that means for relative paths.

use std::path::{Path, PathBuf};

/// Directories in a project that hold a client's files.
const OF_A_PROJECT: [&str; 10] = [".vscode", ".cursor", ".roo", ".gemini", ".zed", ".amp", ".codex", ".devcontainer", ".windsurf", ".opencode"];

/// Files that stand in a project itself.
const IN_A_PROJECT: [&str; 3] = [".mcp.json", "opencode.json", "opencode.jsonc"];

/// Where a file stands.
pub(super) struct Ground {
    /// Its directory.
    pub(super) dir: PathBuf,
    /// Its name.
    pub(super) name: String,
    /// The user's home.
    pub(super) home: Option<PathBuf>,
    /// The project that it belongs to; `None` for a user's own file, and for one whose name says
    /// nothing.
    pub(super) project: Option<PathBuf>,
}

impl Ground {
    /// What the path of `file` says. A relative one is taken from our working directory.
    pub(super) fn of(file: &Path, env: &dyn Fn(&str) -> Option<String>) -> Ground {
        let file = std::path::absolute(file).unwrap_or_else(|_| file.to_owned());
        let name = file.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
        let dir = file.parent().map(Path::to_owned).unwrap_or_default();
        let home = env("HOME").filter(|home| !home.is_empty()).map(PathBuf::from);
        let project = if dir.file_name().is_some_and(|last| OF_A_PROJECT.iter().any(|known| last == *known)) {
            dir.parent()
        } else if IN_A_PROJECT.contains(&name.as_str()) {
            Some(dir.as_path())
        } else {
            None
        };
        let is_users = |project: &&Path| home.as_deref().is_some_and(|home| *project == home || project.starts_with(home.join(".config")));
        let project = project.filter(|project| !is_users(project)).map(Path::to_owned);
        Ground { dir, name, home, project }
    }

    /// Whether the file is one of this client's, by the name of its directory.
    pub(super) fn is_in(&self, dir: &str) -> bool {
        self.dir.file_name().is_some_and(|last| last == dir)
    }

    /// The path that `text` means: from the home after `~/`, and from `base` when it is relative.
    pub(super) fn path(&self, text: &str, base: &Path) -> PathBuf {
        let path = PathBuf::from(self.untilded(text));
        // `join` keeps an absolute path; collecting the components takes a `./` out.
        base.join(path).components().collect()
    }

    /// `text` with the home in place of a `~` at its beginning.
    pub(super) fn untilded(&self, text: &str) -> String {
        let rest = text.strip_prefix('~').filter(|rest| rest.is_empty() || rest.starts_with('/'));
        match (rest, self.home.as_deref().and_then(Path::to_str)) {
            (Some(rest), Some(home)) => format!("{home}{rest}"),
            (Some(_) | None, _) => text.to_owned(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_project_of_a_file() {
        let project = |file: &str| {
            let ground = Ground::of(Path::new(file), &|name| (name == "HOME").then(|| "/home/ada".to_owned()));
            ground.project.map(|path| path.to_string_lossy().into_owned())
        };
        assert_eq!(project("/work/p/.vscode/mcp.json").as_deref(), Some("/work/p"));
        assert_eq!(project("/home/ada/p/.cursor/mcp.json").as_deref(), Some("/home/ada/p"));
        assert_eq!(project("/work/p/.mcp.json").as_deref(), Some("/work/p"));
        for file in [
            "/home/ada/.cursor/mcp.json",
            "/home/ada/.codex/config.toml",
            "/home/ada/.config/opencode/opencode.json",
            "/home/ada/.config/zed/settings.json",
            "/etc/stdiowatch/mcp.json",
        ] {
            assert_eq!(project(file), None, "{file}");
        }
        let here = std::env::current_dir().unwrap();
        assert_eq!(Ground::of(Path::new(".vscode/mcp.json"), &|_| None).project, Some(here));
    }

    #[test]
    fn paths() {
        let ground = Ground::of(Path::new("/x/y.json"), &|_| Some("/home/ada".to_owned()));
        let path = |text| ground.path(text, Path::new("/base")).to_string_lossy().into_owned();
        assert_eq!(
            (path("./a/./b"), path("/c"), path("~/d"), path("~e"), path("~")),
            ("/base/a/b".into(), "/c".into(), "/home/ada/d".into(), "/base/~e".into(), "/home/ada".into())
        );
    }
}
