//! Files of text: read whole, bounded, as UTF-8.

use std::fs::File;
use std::io::{ErrorKind, Read as _};
use std::path::Path;

use super::tree::{Place, Problem};
use crate::outside::tls::not_pem;
use crate::outside::vault::open_file;

/// The largest configuration file, in bytes.
pub const LARGEST: u64 = 4 << 20;

/// The beginning of a file, for what concerns it as a whole.
pub const BEGINNING: Place = Place { line: 1, column: 1 };

/// The place of what is wrong with a file that was not read: none in there.
pub const NOWHERE: Place = Place { line: 0, column: 0 };

/// Reads a file that is text: UTF-8, with or without a byte order mark, which is taken away.
///
/// # Errors
///
/// What is wrong and where: it cannot be read, has more than `most` bytes, is not UTF-8.
pub fn text(path: &Path, most: u64) -> Result<String, Problem> {
    decoded(bytes(path, most).map_err(|message| Problem { at: NOWHERE, message })?)
}

/// The same of a file with certificates or a key in PEM: of what is DER or PKCS#12 it is said what makes PEM of it.
///
/// # Errors
///
/// The same.
pub fn pem(path: &Path, most: u64) -> Result<String, Problem> {
    let bytes = bytes(path, most).map_err(|message| Problem { at: NOWHERE, message })?;
    match not_pem(&bytes).filter(|_| str::from_utf8(&bytes).is_err()) {
        Some(told) => Err(Problem { at: NOWHERE, message: told.to_owned() }),
        None => decoded(bytes),
    }
}

/// Reads a file of at most `most` bytes.
fn bytes(path: &Path, most: u64) -> Result<Vec<u8>, String> {
    const KNOWN: [(ErrorKind, &str); 3] = [
        (ErrorKind::NotFound, "there is no such file"),
        (ErrorKind::PermissionDenied, "it may not be read by this user"),
        (ErrorKind::IsADirectory, "it is a directory"),
    ];
    let told = |error: std::io::Error| {
        let known = KNOWN.into_iter().find(|(kind, _)| *kind == error.kind());
        known.map_or_else(|| format!("it cannot be read: {error}"), |(_, told)| told.to_owned())
    };
    let mut bytes = Vec::new();
    let file = if is_handed(path) { File::open(path) } else { open_file(path) };
    file.map_err(told)?.take(most + 1).read_to_end(&mut bytes).map_err(told)?;
    if bytes.len() as u64 > most {
        return Err(format!("it is larger than {}", super::quantity::shown_size(most)));
    }
    Ok(bytes)
}

/// Whether a path names what whoever started us holds open for us, as a shell's `<(…)` does: a pipe is what is meant there.
fn is_handed(path: &Path) -> bool {
    path == Path::new("/dev/stdin") || path.starts_with("/dev/fd")
}

fn decoded(bytes: Vec<u8>) -> Result<String, Problem> {
    let mut text = String::from_utf8(bytes).map_err(|error| {
        let valid = error.utf8_error().valid_up_to();
        let bytes = error.as_bytes();
        let before = String::from_utf8_lossy(&bytes[..valid]);
        let hint = if bytes.starts_with(b"\xff\xfe") || bytes.starts_with(b"\xfe\xff") { "; it looks like UTF-16, save it as UTF-8" } else { "" };
        Problem { at: end_of(&before), message: format!("not UTF-8 at byte {valid}{hint}") }
    })?;
    if text.starts_with('\u{feff}') {
        text.remove(0);
    }
    Ok(text)
}

/// The place right behind a text.
fn end_of(text: &str) -> Place {
    let number = |n: usize| u32::try_from(n).unwrap_or(u32::MAX);
    let last = text.rsplit('\n').next().unwrap_or_default();
    Place { line: number(text.matches('\n').count() + 1), column: number(last.chars().count() + 1) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_is_utf_8_with_or_without_a_mark() {
        assert_eq!(decoded(b"\xef\xbb\xbfa: 1".to_vec()).unwrap(), "a: 1");
        let problem = decoded(b"a: 1\nb: \xff".to_vec()).unwrap_err();
        assert_eq!((problem.at.to_string().as_str(), problem.message.as_str()), ("2:4", "not UTF-8 at byte 8"));
        assert!(decoded(b"\xff\xfea\0".to_vec()).unwrap_err().message.contains("UTF-16"));
    }

    #[test]
    fn a_pipe_is_not_waited_for() {
        let path = std::env::temp_dir().join(format!("stdiowatch-pipe-{}", std::process::id()));
        rustix::fs::mkfifoat(rustix::fs::CWD, &path, rustix::fs::Mode::RUSR | rustix::fs::Mode::WUSR).unwrap();
        let told = text(&path, 1024).unwrap_err().message;
        std::fs::remove_file(&path).unwrap();
        assert_eq!(told, "it cannot be read: it is no regular file");
        assert!(is_handed(Path::new("/dev/fd/63")) && !is_handed(Path::new("/dev/fdx")));
    }

    #[test]
    fn a_file_that_cannot_be_read_says_why() {
        let told = |path: &str, most| text(Path::new(path), most).unwrap_err().message;
        assert_eq!(told("/nonexistent", 1), "there is no such file");
        assert_eq!(told("/", 1), "it is a directory");
        assert_eq!(told("/dev/zero", 1024), "it cannot be read: it is no regular file");
        assert_eq!(told("/proc/self/exe", 1024), "it is larger than 1KiB");
    }
}
