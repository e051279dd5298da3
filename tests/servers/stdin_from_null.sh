#!/bin/sh
# docker run without -i (headroomlabs-ai/headroom#3393): the end of its input at once, and status 0.
# expect: verdict=fail reason=exited codes=exit.before_reply exit_code=0
exec "$LIAR" 'offer tools' </dev/null
