#!/bin/sh
# A helper that logs on the server's stdout while it serves (dotnet/sdk#45640).
# expect: verdict=fail reason=stdout_violation codes=stdout.noise tools=1
(sleep 0.05; echo "helper: ready") &
exec "$LIAR" 'before tools/list: sleep 300ms'
