#!/bin/sh
# A daemon that starts itself anew when SIGTERM comes: the tree is gone all the same.
# expect: verdict=warn codes=shutdown.left_escaped tools=1
if [ "$1" = reborn ]; then
    trap 'sh "$0" reborn & exit' TERM
    while :; do sleep 0.1; done
fi
setsid sh "$0" reborn >/dev/null 2>&1 </dev/null &
exec "$LIAR" 'sleep 100ms'
