#!/bin/sh
# `npm run start`: four lines of the runner's own, two of them empty, before the server's first.
# expect: verdict=fail reason=stdout_violation codes=stdout.noise,stdout.blank_line tools=1
printf '\n> pkg@1.0.0 start\n> node index.js\n\n'
exec "$LIAR" 'offer tools'
