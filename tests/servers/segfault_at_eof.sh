#!/bin/sh
# A crash at the end of its input.
# expect: verdict=pass codes=shutdown.crashed signal=11 ended_by=eof tools=1
"$LIAR" 'offer tools'
kill -SEGV $$
