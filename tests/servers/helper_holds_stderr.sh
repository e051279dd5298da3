#!/bin/sh
# A helper that has stderr alone: no pipe of ours that counts.
# expect: verdict=warn codes=shutdown.left_group pipe_held=false leftover_group=1 tools=1
sleep 60 >/dev/null &
exec "$LIAR" 'offer tools'
