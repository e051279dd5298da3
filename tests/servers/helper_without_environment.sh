#!/bin/sh
# A daemon that threw its environment away: found by descent, not by a mark.
# expect: verdict=warn codes=shutdown.left_escaped tools=1
(setsid env -i "PATH=$PATH" sh -c "sleep 60; : $FAULT_MARK" >/dev/null 2>&1 </dev/null &)
exec "$LIAR" 'sleep 100ms'
