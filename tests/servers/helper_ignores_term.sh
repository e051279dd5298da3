#!/bin/sh
# A helper that ignores SIGTERM.
# expect: verdict=warn codes=shutdown.left_group leftover_group=1 ended_by=eof tools=1
(trap '' TERM; exec sleep 60 >/dev/null 2>&1) &
exec "$LIAR" 'offer tools'
