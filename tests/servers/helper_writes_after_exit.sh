#!/bin/sh
# A helper that goes on writing once the server is gone: it must not keep the probe.
# expect: verdict=fail|warn codes=shutdown.left_group may=stdout.noise,shutdown.pipe_held max_total_ms=8000
(sleep 0.3; while :; do echo tick; sleep 0.05; done) &
exec "$LIAR" 'offer tools'
