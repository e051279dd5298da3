//! Configurations of our own.

use std::path::Path;

use stdiowatch::config::{self, yaml};

/// The input is the text of the file.
pub fn run(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else { return };
    match config::read(text, Path::new("/nowhere/stdiowatch.yaml"), &super::env) {
        Ok(configuration) => {
            let shown = config::show(&configuration);
            let (root, problems) = yaml::read(&shown);
            assert!(root.is_some() && problems.is_empty(), "{problems:?} in\n{shown}");
        }
        Err(problems) => super::can_be_told(text, &problems),
    }
}
