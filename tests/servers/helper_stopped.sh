#!/bin/sh
# A helper that is stopped: SIGTERM does not reach it.
# expect: verdict=warn codes=shutdown.left_group tools=1
sh -c 'kill -STOP $$; sleep 60' >/dev/null 2>&1 &
exec "$LIAR" 'sleep 100ms'
