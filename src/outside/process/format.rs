//! The first bytes of a program: what has to be there besides the file itself.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt as _;

/// How much of a file the kernel looks at (`BINPRM_BUF_SIZE`, include/uapi/linux/binfmts.h).
pub(super) const HEAD: usize = 256;

/// A `#!` line.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Shebang<'a> {
    /// The interpreter, as it stands there: it may be relative, and may end in `\r`.
    pub(super) interpreter: &'a OsStr,
    /// All the rest, which the kernel passes as one argument.
    pub(super) argument: Option<&'a OsStr>,
}

/// Reads a `#!` line as `load_script` does (fs/binfmt_script.c). `None` where the kernel would say
/// ENOEXEC: no `#!`, nothing after it, or a name that the first 256 bytes may cut.
pub(super) fn shebang(head: &[u8]) -> Option<Shebang<'_>> {
    let head = &head[..head.len().min(HEAD)];
    let line = head.strip_prefix(b"#!")?;
    let end = memchr::memchr(b'\n', line);
    let line = trim(&line[..end.unwrap_or(line.len())]);
    let stop = line.iter().position(|b| matches!(b, b' ' | b'\t' | 0));
    let name = &line[..stop.unwrap_or(line.len())];
    if name.is_empty() || (end.is_none() && stop.is_none() && head.len() == HEAD) {
        return None;
    }
    let rest = trim(&line[name.len()..]);
    let rest = &rest[..memchr::memchr(0, rest).unwrap_or(rest.len())];
    let argument = (!rest.is_empty()).then(|| OsStr::from_bytes(rest));
    Some(Shebang { interpreter: OsStr::from_bytes(name), argument })
}

/// Without the spaces and tabs at both ends.
fn trim(mut line: &[u8]) -> &[u8] {
    while let [b' ' | b'\t', rest @ ..] | [rest @ .., b' ' | b'\t'] = line {
        line = rest;
    }
    line
}

impl<'a> Shebang<'a> {
    /// The program that `#!/usr/bin/env NAME` asks for. Only what is certain: options, assignments
    /// and quoting are left to `env` itself. Without `-S` the whole rest of the line is the name.
    pub(super) fn env_program(&self) -> Option<&'a OsStr> {
        if !self.interpreter.as_bytes().ends_with(b"/env") {
            return None;
        }
        let argument = self.argument?.as_bytes();
        let name = match argument.strip_prefix(b"-S") {
            None => argument,
            Some(split) if split.iter().any(|b| b"\\\"'$".contains(b)) => return None,
            Some(split) => trim(split).split(|b| matches!(b, b' ' | b'\t')).next()?,
        };
        let certain = !name.is_empty() && !name.starts_with(b"-") && !name.contains(&b'=');
        certain.then(|| OsStr::from_bytes(name))
    }
}

/// The loader that an ELF file asks for (`PT_INTERP`), from its first few kilobytes.
pub(super) fn elf_loader(head: &[u8]) -> Option<&OsStr> {
    const PT_INTERP: u64 = 3;
    let wide = match head.get(..5)? {
        b"\x7fELF\x02" => true,
        b"\x7fELF\x01" => false,
        _ => return None,
    };
    let little = *head.get(5)? == 1;
    let number = |at: usize, len: usize| -> Option<u64> {
        let bytes = head.get(at..at.checked_add(len)?)?;
        let add = |sum: u64, byte: &u8| (sum << 8) | u64::from(*byte);
        Some(if little { bytes.iter().rev().fold(0, add) } else { bytes.iter().fold(0, add) })
    };
    let index = |at: usize, len: usize| usize::try_from(number(at, len)?).ok();
    // Elf64_Ehdr and Elf64_Phdr, or Elf32_…: elf(5).
    let (table, size, count) = if wide { (index(32, 8)?, index(54, 2)?, index(56, 2)?) } else { (index(28, 4)?, index(42, 2)?, index(44, 2)?) };
    for n in 0..count {
        let entry = table.checked_add(n.checked_mul(size)?)?;
        if number(entry, 4)? == PT_INTERP {
            let (offset, len) = if wide {
                (index(entry.checked_add(8)?, 8)?, index(entry.checked_add(32)?, 8)?)
            } else {
                (index(entry.checked_add(4)?, 4)?, index(entry.checked_add(16)?, 4)?)
            };
            let name = head.get(offset..offset.checked_add(len)?)?;
            return Some(OsStr::from_bytes(name.split(|b| *b == 0).next()?));
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn read(head: &str) -> Option<(String, Option<String>)> {
        let found = shebang(head.as_bytes())?;
        let text = |s: &OsStr| s.to_str().unwrap().to_owned();
        Some((text(found.interpreter), found.argument.map(text)))
    }

    #[test]
    fn lines_are_read_as_the_kernel_reads_them() {
        let some = |i: &str, a: Option<&str>| Some((i.to_owned(), a.map(str::to_owned)));
        assert_eq!(read("#!/bin/sh\nx"), some("/bin/sh", None));
        assert_eq!(read("#! \t/bin/sh -e -u \t\n"), some("/bin/sh", Some("-e -u")));
        assert_eq!(read("#!/bin/sh\r\n"), some("/bin/sh\r", None));
        assert_eq!(read("#!/usr/bin/env node\r\n"), some("/usr/bin/env", Some("node\r")));
        assert_eq!(read("#!bin/sh"), some("bin/sh", None));
        assert_eq!(read("#!/bin/sh -e\0junk\n"), some("/bin/sh", Some("-e")));
        assert_eq!(read("#!\n/bin/sh"), None);
        assert_eq!(read("#!  \t\n"), None);
        assert_eq!(read("# !/bin/sh\n"), None);
        assert_eq!(read(""), None);
    }

    #[test]
    fn a_name_that_may_be_cut_is_none() {
        assert_eq!(read(&format!("#!/{}\n", "x".repeat(300))), None);
        assert!(read(&format!("#!/bin/sh {}\n", "x".repeat(300))).is_some());
        assert!(read(&format!("#!/{}", "x".repeat(200))).is_some());
    }

    #[test]
    fn env_names_a_program_where_that_is_certain() {
        let program = |head: &str| {
            let line = shebang(head.as_bytes()).unwrap();
            line.env_program().map(|name| name.to_str().unwrap().to_owned())
        };
        assert_eq!(program("#!/usr/bin/env node\n").as_deref(), Some("node"));
        assert_eq!(program("#!/usr/bin/env node --flag\n").as_deref(), Some("node --flag"));
        assert_eq!(program("#!/usr/bin/env -S node --flag\n").as_deref(), Some("node"));
        assert_eq!(program("#!/usr/bin/env -Snode\n").as_deref(), Some("node"));
        for unsure in ["-i node", "-S -i node", "-S A=1 node", "-S 'no de'", "A=1 node", "-vS node", ""] {
            assert_eq!(program(&format!("#!/usr/bin/env {unsure}\n")), None, "{unsure}");
        }
        assert_eq!(program("#!/bin/sh node\n"), None);
    }

    #[test]
    fn the_loader_of_a_real_program_is_found() {
        let bytes = std::fs::read("/proc/self/exe").unwrap();
        if let Some(loader) = elf_loader(&bytes[..4096]) {
            assert!(std::path::Path::new(loader).exists(), "{loader:?}");
        }
    }

    #[test]
    fn the_loader_of_a_small_32_bit_file_is_found() {
        let mut file = b"\x7fELF\x01\x01".to_vec();
        file.resize(52, 0);
        file[28] = 52;
        file[42] = 32;
        file[44] = 1;
        file.extend([3, 0, 0, 0, 84, 0, 0, 0]);
        file.resize(84, 0);
        file[68] = 8;
        file.extend(b"/lib/ld\0");
        assert_eq!(elf_loader(&file), Some(OsStr::new("/lib/ld")));
        assert_eq!(elf_loader(&file[..80]), None);
    }

    proptest! {
        #[test]
        fn no_bytes_are_too_wild(bytes in proptest::collection::vec(any::<u8>(), 0..600), wide: bool) {
            let _ = shebang(&bytes);
            let mut elf = if wide { b"\x7fELF\x02\x01".to_vec() } else { b"\x7fELF\x01\x02".to_vec() };
            elf.extend(&bytes);
            let _ = elf_loader(&elf);
            let mut script = b"#!".to_vec();
            script.extend(&bytes);
            if let Some(line) = shebang(&script) {
                let _ = line.env_program();
            }
        }
    }
}
