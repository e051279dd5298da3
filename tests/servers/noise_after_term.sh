#!/bin/sh
# It speaks while SIGTERM ends it (vercel/next-devtools-mcp#131): after a signal of ours nothing on stdout counts.
# expect: verdict=warn codes=shutdown.needed_term never=stdout.noise ended_by=sigterm exit_code=0
trap 'echo "Shutting down…"; exit 0' TERM
"$LIAR" 'offer tools'
while :; do sleep 60; done
