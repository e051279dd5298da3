#!/bin/sh
# A helper whose name has a parenthesis, a state, a newline and a terminal code in it: /proc/PID/stat is read rightly, and the name escaped.
# expect: verdict=warn codes=shutdown.left_group leftover_group=1 leftover_escaped=0 tools=1
dir=$(mktemp -d)
name=$(printf 'x) Z 1 \n\033[2J')
ln -s "$(command -v sleep)" "$dir/$name"
"$dir/$name" 60 >/dev/null 2>&1 &
sleep 0.1
rm -r "$dir"
exec "$LIAR" 'offer tools'
