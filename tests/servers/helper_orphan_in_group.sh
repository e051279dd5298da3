#!/bin/sh
# A grandchild whose parent is gone, still in the group.
# expect: verdict=warn codes=shutdown.left_group leftover_group=1 leftover_escaped=0 tools=1
(sleep 60 >/dev/null 2>&1 &)
exec "$LIAR" 'offer tools'
