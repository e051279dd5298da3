#!/bin/sh
# A wrapper without exec around a server that ignores both end-of-file and SIGTERM (agiletec-inc/airis-mcp-gateway#232): the tree goes.
# expect: verdict=warn codes=shutdown.needed_term|shutdown.needed_kill may=shutdown.left_group,shutdown.pipe_held tools=1
sh -c 'trap "" TERM; "$LIAR" "on eof: hang"'
true
