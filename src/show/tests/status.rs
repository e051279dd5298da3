//! All servers in one line.

use super::fixture::*;
use crate::show::status::line;

#[test]
fn servers_are_counted_by_what_they_are() {
    assert_eq!(line(&snapshot(vec![]), at(0)), "no server to watch");
    assert_eq!(line(&snapshot(vec![passing("a")]), at(1)), "1 server: 1 up");
    let all = || vec![passing("a"), warning("b"), failing("c"), unprobed("d")];
    assert_eq!(line(&snapshot(all()), at(70)), "4 servers: 2 up, 1 down, 1 unprobed");
    assert_eq!(line(&snapshot(all()), at(10_000)), "4 servers: 3 stale, 1 unprobed");
}
