#!/bin/sh
# It stops itself before it reads anything: alive, silent, and deaf to SIGTERM until it goes on.
# expect: verdict=fail reason=timeout codes=timeout.silent,shutdown.needed_kill|shutdown.needed_term ended_by=sigterm|sigkill
kill -STOP $$
exec "$LIAR" 'offer tools'
