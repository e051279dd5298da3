#!/bin/sh
# A chain of programs that replace each other.
# expect: verdict=pass tools=1 ended_by=eof exit_code=0
exec env FOO=bar sh -c 'exec nice -n 1 "$LIAR" "offer tools"'
