#!/bin/sh
# docker run without -i (D57): the end of its input at once, and status 0.
# expect: verdict=fail reason=exited codes=exit.before_reply exit_code=0
exec "$LIAR" 'offer tools' </dev/null
