#!/bin/sh
# SIGTERM catches it in the middle of a message (chrisdoc/hevy-mcp#555).
# expect: verdict=warn codes=shutdown.needed_term never=stdout.unterminated ended_by=sigterm exit_code=143
trap 'printf "{\"jsonrpc\":\"2.0\",\"met"; exit 143' TERM
"$LIAR" 'offer tools'
while :; do sleep 60; done
