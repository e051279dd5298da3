#!/bin/sh
# A server behind cat on either side (mcp-proxy, tee): sound.
# expect: verdict=pass tools=1 ended_by=eof
cat | "$LIAR" 'offer tools' | cat
