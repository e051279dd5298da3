use std::fs::{self, Permissions};
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::sync::atomic::{AtomicU32, Ordering};

use super::*;

/// A directory of its own for each test.
struct Dir(PathBuf);

impl Dir {
    fn new() -> Dir {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let name = format!("resolve-{}-{}", std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed));
        let dir = std::env::temp_dir().join(name);
        fs::create_dir_all(&dir).unwrap();
        Dir(dir)
    }

    fn file(&self, name: &str, mode: u32, content: impl AsRef<[u8]>) -> String {
        let path = self.0.join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, content).unwrap();
        fs::set_permissions(&path, Permissions::from_mode(mode)).unwrap();
        path.to_str().unwrap().to_owned()
    }

    /// Resolves with this directory as the working directory.
    fn resolve(&self, command: &str, path: &str) -> Result<PathBuf, LaunchError> {
        let dir = open_cwd(&self.0)?;
        let binaries = Binaries::default();
        Place::new(Some((&self.0, &dir)), OsStr::new(path), &binaries).resolve(command)
    }
}

impl Drop for Dir {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

fn missing(result: Result<PathBuf, LaunchError>) -> String {
    match result {
        Err(LaunchError::InterpreterMissing { interpreter, .. }) => interpreter,
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_name_is_searched_on_the_path() {
    let dir = Dir::new();
    dir.file("a/tool", 0o644, "");
    dir.file("b/tool", 0o755, "#!/no/such/interpreter\n");
    dir.file("d/tool", 0o755, "#!/bin/sh\n");
    fs::create_dir_all(dir.0.join("c/tool")).unwrap();
    assert_eq!(dir.resolve("tool", "a:b:c:nowhere:d").unwrap(), Path::new("d/tool"));
    // An empty entry is the working directory.
    dir.file("here", 0o755, "");
    assert_eq!(dir.resolve("here", "a:").unwrap(), Path::new("./here"));
    assert_eq!(dir.resolve("here", "").unwrap(), Path::new("./here"));
}

#[test]
fn what_was_passed_over_is_told_if_there_is_nothing_better() {
    let dir = Dir::new();
    dir.file("a/tool", 0o644, "");
    dir.file("b/tool", 0o755, "#!/no/such/interpreter\n");
    fs::create_dir_all(dir.0.join("c/tool")).unwrap();
    assert_eq!(missing(dir.resolve("tool", "a:b:c")), "/no/such/interpreter");
    let denied = dir.resolve("tool", "a:c");
    let path = dir.0.join("a/tool");
    assert_eq!(denied, Err(LaunchError::Permission { path, what: "has no execute permission".into() }));
    assert!(matches!(dir.resolve("tool", "c"), Err(LaunchError::NotFound { .. })));
}

#[test]
fn what_is_nowhere_is_not_found() {
    let dir = Dir::new();
    let not_found =
        |command: &str, searched: Option<&str>| Err(LaunchError::NotFound { command: command.to_owned(), searched: searched.map(str::to_owned) });
    assert_eq!(dir.resolve("no-such-tool", "/bin:a\u{1b}"), not_found("no-such-tool", Some("/bin:a\\x1b")));
    assert_eq!(dir.resolve("", "/bin"), not_found("", Some("/bin")));
    // A path is left to the launch, which knows best; then it is explained.
    assert_eq!(dir.resolve("./none", "/bin").unwrap(), Path::new("./none"));
    let binaries = Binaries::default();
    let place = Place::new(None, OsStr::new("/bin"), &binaries);
    assert_eq!(place.explain(Errno::NOENT, "./none", Path::new("./none")), not_found("./none", None).unwrap_err());
}

#[test]
fn a_missing_interpreter_is_named() {
    let dir = Dir::new();
    let cr = dir.file("cr", 0o755, "#!/bin/sh\r\necho\r\n");
    assert_eq!(missing(dir.resolve(&cr, "/bin")), "/bin/sh\\r");
    let relative = dir.file("relative", 0o755, "#!bin/none\n");
    assert_eq!(missing(dir.resolve(&relative, "/bin")), "bin/none");
    let nested = dir.file("nested", 0o755, format!("#!{relative} -x\n"));
    assert_eq!(missing(dir.resolve(&nested, "/bin")), "bin/none");
    let through = dir.file("through", 0o755, "#!/etc/passwd/sh\n");
    assert_eq!(missing(dir.resolve(&through, "/bin")), "/etc/passwd/sh");
    dir.file("bin/none", 0o755, "");
    assert!(dir.resolve(&nested, "/bin").is_ok());
}

#[test]
fn env_is_looked_through() {
    let dir = Dir::new();
    let script = |name: &str| dir.file("script", 0o755, format!("#!/usr/bin/env {name}\n"));
    assert_eq!(missing(dir.resolve(&script("no-such-node"), "/bin:/usr/bin")), "no-such-node");
    assert_eq!(missing(dir.resolve(&script("sh -e"), "/bin:/usr/bin")), "sh -e");
    assert_eq!(missing(dir.resolve(&script("sh\r"), "/bin:/usr/bin")), "sh\\r");
    assert!(dir.resolve(&script("sh"), "/bin:/usr/bin").is_ok());
    assert!(dir.resolve(&script("-S sh -e"), "/bin:/usr/bin").is_ok());
    // It is searched where the server would search.
    assert_eq!(missing(dir.resolve(&script("sh"), "/nowhere")), "sh");
    dir.file("bin/own", 0o755, "#!/bin/sh\n");
    assert!(dir.resolve(&script("own"), "bin").is_ok());
    assert!(dir.resolve(&script("bin/own"), "/nowhere").is_ok());
    assert_eq!(missing(dir.resolve(&script("bin/none"), "/nowhere")), "bin/none");
}

#[test]
fn permission_goes_before_a_missing_interpreter() {
    let dir = Dir::new();
    let file = dir.file("script", 0o644, "#!/no/such/interpreter\n");
    let denied = dir.resolve(&file, "/bin");
    assert_eq!(denied, Err(LaunchError::Permission { path: file.into(), what: "has no execute permission".into() }));
    dir.file("interpreter", 0o644, "");
    let script = dir.file("script", 0o755, "#!./interpreter\n");
    let path = dir.0.join("./interpreter");
    assert_eq!(dir.resolve(&script, "/bin"), Err(LaunchError::Permission { path, what: "the interpreter may not be executed".into() }));
}

#[test]
fn interpreters_that_go_round_end() {
    let dir = Dir::new();
    let one = dir.file("one", 0o755, "#!./two\n");
    dir.file("two", 0o755, "#!./one\n");
    assert!(dir.resolve(&one, "/bin").is_ok());
    let own = dir.file("own", 0o755, "#!./own\n");
    assert!(dir.resolve(&own, "/bin").is_ok());
}

#[test]
fn refusals_are_explained() {
    let dir = Dir::new();
    let binaries = Binaries::default();
    let place = Place::new(None, OsStr::new("/bin"), &binaries);
    let explain = |errno, file: &str| place.explain(errno, file, Path::new(file));
    let text = dir.file("text", 0o755, "var x = 1\n");
    assert_eq!(explain(Errno::NOEXEC, &text), LaunchError::ExecFormat { program: text.into() });
    let error = "EMFILE: Too many open files".to_owned();
    assert_eq!(explain(Errno::MFILE, "x"), LaunchError::Resources { error });
    let error = "E2BIG: Argument list too long".to_owned();
    assert_eq!(explain(Errno::TOOBIG, "x"), LaunchError::Failed { error });
    let what = "is a directory";
    assert_eq!(explain(Errno::ACCESS, "/bin"), LaunchError::Permission { path: "/bin".into(), what: what.into() });
    symlink("loop", dir.0.join("loop")).unwrap();
    let error = "ELOOP: Too many symbolic links encountered".to_owned();
    assert_eq!(explain(Errno::LOOP, dir.0.join("loop").to_str().unwrap()), LaunchError::Failed { error });
}

#[test]
fn a_missing_loader_is_named() {
    let Ok(mut program) = fs::read("/bin/true") else { return };
    let Some(loader) = format::elf_loader(&program[..4096]).map(|loader| loader.as_bytes().to_vec()) else { return };
    let at = program.windows(loader.len()).position(|window| window == loader).unwrap();
    program[at + 1] = b'?';
    let dir = Dir::new();
    let file = dir.file("program", 0o755, &program);
    let script = dir.file("script", 0o755, format!("#!{file}\n"));
    let binaries = Binaries::default();
    let place = Place::new(None, OsStr::new("/bin"), &binaries);
    for command in [&file, &script] {
        let explained = place.explain(Errno::NOENT, command, Path::new(command));
        assert!(missing(Err(explained)).starts_with("/?ib"), "{command}");
    }
}

#[test]
fn working_directories_are_told_apart() {
    let dir = Dir::new();
    let file = PathBuf::from(dir.file("file", 0o644, ""));
    let error = |cwd: &Path| open_cwd(cwd).unwrap_err();
    let none = dir.0.join("none");
    assert_eq!(error(&none), LaunchError::CwdMissing { cwd: none.clone(), not_a_directory: false });
    assert_eq!(error(&file), LaunchError::CwdMissing { cwd: file.clone(), not_a_directory: true });
    let below = file.join("below");
    assert_eq!(error(&below), LaunchError::CwdMissing { cwd: below.clone(), not_a_directory: false });
    symlink("loop", dir.0.join("loop")).unwrap();
    assert!(matches!(error(&dir.0.join("loop")), LaunchError::Failed { .. }));
}

#[test]
fn a_binary_is_known_until_it_changes() {
    let dir = Dir::new();
    let file = dir.file("program", 0o755, "\x7fELF");
    let binaries = Binaries::default();
    let place = Place::new(None, OsStr::new("/bin"), &binaries);
    let known = || binaries.has(&rustix::fs::stat(&file).unwrap());
    assert!(!known());
    assert!(place.resolve(&file).is_ok());
    assert!(known());
    fs::write(&file, "#!/no/such/interpreter\n").unwrap();
    assert!(!known());
    assert_eq!(missing(place.resolve(&file)), "/no/such/interpreter");
}

#[test]
fn what_is_no_file_is_not_opened() {
    let dir = Dir::new();
    let path = dir.0.join("fifo");
    rustix::fs::mknodat(CWD, &path, FileType::Fifo, Mode::from_raw_mode(0o755), 0).unwrap();
    let binaries = Binaries::default();
    let place = Place::new(None, OsStr::new("/bin"), &binaries);
    let command = path.to_str().unwrap();
    assert!(place.resolve(command).is_ok());
    let what = "is no regular file".into();
    assert_eq!(place.explain(Errno::ACCESS, command, &path), LaunchError::Permission { path, what });
}
