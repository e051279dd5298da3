//! `.env` files, in both ways of reading them.

use stdiowatch::config::dotenv;
use stdiowatch::words::is_printable;

/// The input is the text of the file.
pub fn run(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else { return };
    let lines = text.split(['\n', '\r']).count();
    assert!(dotenv::variables(text).len() <= lines);
    match dotenv::read(text) {
        Ok(variables) => {
            assert!(variables.len() <= lines);
            for (name, value) in variables {
                // What can be written without an escape is read back.
                if !value.contains(['\n', '\r', '\'']) {
                    let line = format!("{name}='{value}'");
                    assert_eq!(dotenv::read(&line), Ok(vec![(name, value)]), "{line:?}");
                }
            }
        }
        // It may be a line of a secret.
        Err(problem) => assert!(problem.message.chars().all(is_printable) && problem.message.len() < 300, "{problem:?}"),
    }
}
