#!/bin/sh
# Neither end-of-file nor SIGTERM ends it (F80, F81).
# expect: verdict=warn codes=shutdown.needed_kill ended_by=sigkill signal=9 tools=1
trap '' TERM
"$LIAR" 'on eof: hang'
