#!/bin/sh
# A helper in a session of its own (microsoft/playwright#41013).
# expect: verdict=warn codes=shutdown.left_escaped leftover_escaped=1 leftover_group=0 pipe_held=false tools=1
setsid sleep 60 >/dev/null 2>&1 </dev/null &
exec "$LIAR" 'offer tools'
