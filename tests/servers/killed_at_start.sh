#!/bin/sh
# It ends by SIGKILL before the handshake, and not by ours (an out-of-memory kill looks so).
# expect: verdict=fail reason=exited codes=exit.before_reply signal=9 ended_by=self never=shutdown.needed_kill
kill -KILL $$
