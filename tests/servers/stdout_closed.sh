#!/bin/sh
# The handshake, then stdout is closed and the process lives on (Arthur-Ficial/apfel#215).
# expect: verdict=fail reason=exited codes=exit.stdout_closed may=shutdown.needed_term
"$LIAR" 'on tools/list: exit 0'
exec >&- 2>&-
exec sleep 60
