#!/bin/sh
# It stops itself at the end of its input.
# expect: verdict=warn codes=shutdown.needed_kill|shutdown.needed_term tools=1
"$LIAR" 'offer tools'
kill -STOP $$
