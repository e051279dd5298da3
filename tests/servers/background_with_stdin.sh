#!/bin/sh
# An entry point that starts its server with & and hands stdin on: sound.
# expect: verdict=pass tools=1 ended_by=eof exit_code=0
exec 3<&0
"$LIAR" 'offer tools' <&3 3<&- &
exec 3<&- <&-
wait
