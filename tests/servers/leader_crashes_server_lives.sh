#!/bin/sh
# The leader crashes, and its server would go on: an end with a status is the end.
# expect: verdict=fail reason=exited codes=exit.before_reply may=shutdown.left_group,shutdown.pipe_held exit_code=1
exec 3<&0
"$LIAR" 'sleep 60000ms' <&3 3<&- &
exit 1
