#!/bin/sh
# sh -c in sh -c, none of them with exec (agiletec-inc/airis-mcp-gateway#232): end-of-file passes through.
# expect: verdict=pass tools=1 ended_by=eof exit_code=0
sh -c 'sh -c "\"$LIAR\" \"offer tools\"; true"; true'
