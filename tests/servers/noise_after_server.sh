#!/bin/sh
# A wrapper that says goodbye when its server has ended (dotnet/sdk#45640): after end-of-file, before any signal.
# expect: verdict=fail reason=stdout_violation codes=stdout.noise tools=1 ended_by=eof
"$LIAR" 'offer tools'
echo "server stopped"
