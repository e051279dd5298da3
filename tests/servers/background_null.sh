#!/bin/sh
# An entry point that starts its server with & (stickerdaniel/linkedin-mcp-server#771): the server's stdin is /dev/null.
# expect: verdict=fail reason=exited codes=exit.before_reply exit_code=0
"$LIAR" 'offer tools' &
wait
