//! The loop over stdin and stdout, and what a kind does before and after it.

use std::io::{self, BufRead, Write};
use std::ops::ControlFlow;
use std::os::unix::process::CommandExt;
use std::process::{Command, ExitCode, Stdio};
use std::thread;

use nix::sys::signal::{SigSet, Signal};

use super::behaviour::{Behaviour, Ending, Opening};
use super::kind::Kind;
use super::server::{Answer, Server};
use super::tools::since_epoch;

/// Serves on stdin and stdout until end-of-file, or until the kind ends otherwise.
#[must_use]
pub fn run(kind: Kind) -> ExitCode {
    let behaviour = Behaviour::of(kind);
    if behaviour.ignores_sigterm {
        block_sigterm();
    }
    if let ControlFlow::Break(status) = open(behaviour.opening) {
        return status;
    }
    let server = Server::new(behaviour, format!("{:x}", since_epoch().as_nanos()));
    match serve(&server, &mut io::stdin().lock(), &mut io::stdout()) {
        Ok(Served::Exit(status)) => return status.into(),
        Ok(Served::EndOfFile) => {}
        // The client is gone, which is its right.
        Err(_) => return ExitCode::SUCCESS,
    }
    match behaviour.ending {
        Ending::Exit => {}
        Ending::Linger(time) => thread::sleep(time),
    }
    ExitCode::SUCCESS
}

/// Why the loop ended.
enum Served {
    EndOfFile,
    Exit(u8),
}

fn serve(server: &Server, input: &mut impl BufRead, output: &mut impl Write) -> io::Result<Served> {
    let mut line = Vec::new();
    while input.read_until(b'\n', &mut line)? > 0 {
        match server.answer_line(&line) {
            Answer::Reply(reply) => write_whole(output, format!("{reply}\n").as_bytes())?,
            Answer::Silence => {}
            Answer::Exit(status) => return Ok(Served::Exit(status)),
        }
        line.clear();
    }
    Ok(Served::EndOfFile)
}

fn open(opening: Opening) -> ControlFlow<ExitCode> {
    match opening {
        Opening::Serve => {}
        Opening::Print(text) => {
            if write_whole(&mut io::stdout(), text.as_bytes()).is_err() {
                return ControlFlow::Break(ExitCode::SUCCESS);
            }
        }
        Opening::Wait(time) => thread::sleep(time),
        Opening::Exit { reason, status } => {
            complain(reason);
            return ControlFlow::Break(status.into());
        }
        Opening::Flood => {
            flood_until_eof();
            return ControlFlow::Break(ExitCode::SUCCESS);
        }
        Opening::LeaveChild => {
            if let Err(error) = leave_child() {
                complain(&format!("cannot start the child: {error}"));
            }
        }
        Opening::Nap(time) => {
            thread::sleep(time);
            return ControlFlow::Break(ExitCode::SUCCESS);
        }
    }
    ControlFlow::Continue(())
}

/// One message is one write, as far as the pipe takes it.
fn write_whole(output: &mut impl Write, bytes: &[u8]) -> io::Result<()> {
    output.write_all(bytes)?;
    output.flush()
}

/// A line on stderr, unless nobody listens.
fn complain(line: &str) {
    drop(write_whole(&mut io::stderr(), format!("{line}\n").as_bytes()));
}

/// Writes from a thread of its own, so that end-of-file is seen while stdout is full.
fn flood_until_eof() {
    thread::spawn(|| {
        let bytes = [b'.'; 8192];
        let mut output = io::stdout().lock();
        while output.write_all(&bytes).is_ok() {}
    });
    drop(io::copy(&mut io::stdin().lock(), &mut io::sink()));
}

#[allow(clippy::disallowed_methods, reason = "the child has to escape what the prober's launches are bound by")]
fn leave_child() -> io::Result<()> {
    Command::new(std::env::current_exe()?)
        .args(["sample-server", Kind::Nap.name()])
        .process_group(0)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .map(drop)
}

/// To ignore a signal takes unsafe code; blocked in the only thread, it is as good as ignored.
fn block_sigterm() {
    let mut set = SigSet::empty();
    set.add(Signal::SIGTERM);
    if let Err(error) = set.thread_block() {
        complain(&format!("cannot block SIGTERM: {error}"));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn talk(behaviour: Behaviour, input: &[u8]) -> (Served, String) {
        let mut output = Vec::new();
        let server = Server::new(behaviour, String::new());
        let end = serve(&server, &mut &*input, &mut output).unwrap();
        (end, String::from_utf8(output).unwrap())
    }

    #[test]
    fn every_reply_is_one_line_and_bad_input_is_survived() {
        let input = b"\n{\n\xff\xfe\n[]\n17\n{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\"}";
        let (end, output) = talk(Behaviour::SOUND, input);
        assert!(matches!(end, Served::EndOfFile));
        let codes: Vec<Option<i64>> =
            output.lines().map(|line| serde_json::from_str::<serde_json::Value>(line).unwrap()["error"]["code"].as_i64()).collect();
        assert_eq!(codes, [Some(-32700), Some(-32700), Some(-32600), Some(-32600), None]);
    }

    #[test]
    fn a_fatal_method_ends_the_loop() {
        let input = b"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"server/discover\"}\n";
        let (end, output) = talk(Behaviour::of(Kind::DieOnDiscover), input);
        assert!(matches!(end, Served::Exit(1)));
        assert_eq!(output, "");
    }
}
