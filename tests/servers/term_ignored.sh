#!/bin/sh
# Neither end-of-file nor SIGTERM ends it (QuantGeekDev/mcp-framework#181, classfang/ssh-mcp-server#42).
# expect: verdict=warn codes=shutdown.needed_kill ended_by=sigkill signal=9 tools=1
trap '' TERM
"$LIAR" 'on eof: hang'
