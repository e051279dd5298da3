#!/bin/sh
# A helper that has the server's stdout: nobody may wait for its end.
# expect: verdict=warn codes=shutdown.left_group,shutdown.pipe_held ended_by=eof pipe_held=true leftover_group=1 tools=1
sleep 60 &
exec "$LIAR" 'offer tools'
