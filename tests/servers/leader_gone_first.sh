#!/bin/sh
# The leader exits with 0 at once, the server goes on answering (seen on real servers: setsid -f). Its answers are sound, and clients on Node lose it.
# expect: verdict=warn codes=exit.detached may=shutdown.left_group never=exit.before_reply,exit.mid_session tools=1
exec 3<&0
"$LIAR" 'sleep 200ms' <&3 3<&- &
exit 0
