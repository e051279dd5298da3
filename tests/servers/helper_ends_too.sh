#!/bin/sh
# A helper that ends a few milliseconds after the server: no leftover.
# expect: verdict=pass never=shutdown.left_group tools=1
{ cat >/dev/null; } <&0 >/dev/null 2>&1 &
exec "$LIAR" 'offer tools'
