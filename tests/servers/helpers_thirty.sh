#!/bin/sh
# Thirty helpers: all are counted, all go.
# expect: verdict=warn codes=shutdown.left_group leftover_group=30 tools=1
n=0
while [ $n -lt 30 ]; do
    sleep 60 >/dev/null 2>&1 &
    n=$((n + 1))
done
exec "$LIAR" 'sleep 200ms'
