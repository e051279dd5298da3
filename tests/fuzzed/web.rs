//! Web configurations.

use std::path::Path;

use stdiowatch::config::web;

/// The input is the text of the file.
pub fn run(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else { return };
    if let Err(problems) = web::read(text, Path::new("/nowhere/web.yml")) {
        super::can_be_told(text, &problems);
    }
}
