#!/bin/sh
# It ends itself by SIGTERM in the list: a signal, but none of ours (the opposite of vercel/next-devtools-mcp#131).
# expect: verdict=fail reason=exited codes=exit.mid_session signal=15 ended_by=self never=shutdown.needed_term
"$LIAR" 'on tools/list: exit 0'
kill -TERM $$
