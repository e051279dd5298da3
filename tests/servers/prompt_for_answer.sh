#!/bin/sh
# A launcher that asks before it installs (NVIDIA/NemoClaw#5670): our request is its answer.
# expect: verdict=fail reason=exited|stdout_violation codes=exit.before_reply may=stdout.unterminated,stdout.noise exit_code=1
printf 'Ok to proceed? (y) '
read -r answer
[ "$answer" = y ] || exit 1
exec "$LIAR" 'offer tools'
