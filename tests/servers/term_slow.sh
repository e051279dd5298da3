#!/bin/sh
# It needs 200 ms for SIGTERM, within its grace, and says 5.
# expect: verdict=warn codes=shutdown.needed_term ended_by=sigterm exit_code=5
trap 'sleep 0.2; exit 5' TERM
"$LIAR" 'offer tools'
while :; do sleep 60; done
