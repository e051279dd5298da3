#!/bin/sh
# A daemon by the book: a fork, a session, a fork; it ignores SIGTERM and SIGHUP (microsoft/playwright#41013).
# expect: verdict=warn codes=shutdown.left_escaped leftover_escaped=1 leftover_group=0 tools=1
(setsid sh -c "trap '' TERM HUP; sleep 60 & exit" >/dev/null 2>&1 </dev/null &)
exec "$LIAR" 'sleep 100ms'
