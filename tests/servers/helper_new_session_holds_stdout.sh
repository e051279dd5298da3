#!/bin/sh
# The same, with the server's stdout.
# expect: verdict=warn codes=shutdown.left_escaped,shutdown.pipe_held leftover_escaped=1 pipe_held=true tools=1
setsid sleep 60 </dev/null &
exec "$LIAR" 'offer tools'
