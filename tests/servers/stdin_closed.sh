#!/bin/sh
# The handshake, then stdin is closed and the process lives on (Arthur-Ficial/apfel#215).
# expect: verdict=fail reason=exited codes=exit.stdin_closed may=shutdown.needed_term
"$LIAR" 'on tools/list: exit 0'
exec <&-
exec sleep 60
