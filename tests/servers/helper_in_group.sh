#!/bin/sh
# A quiet helper in the group outlives the server.
# expect: verdict=warn codes=shutdown.left_group ended_by=eof leftover_group=1 leftover_escaped=0 pipe_held=false tools=1
sleep 60 >/dev/null 2>&1 &
exec "$LIAR" 'offer tools'
