#!/bin/sh
# One in the group and one out of it, each told.
# expect: verdict=warn codes=shutdown.left_group,shutdown.left_escaped leftover_group=1 leftover_escaped=1 tools=1
sleep 60 >/dev/null 2>&1 &
setsid sleep 60 >/dev/null 2>&1 </dev/null &
exec "$LIAR" 'sleep 100ms'
