#!/bin/sh
# A child that is dead and not waited for: a zombie is dead (ahrefs/ocannl#742).
# expect: verdict=pass never=shutdown.left_group leftover_group=0 tools=1
sh -c 'exit 0' &
exec "$LIAR" 'sleep 100ms'
