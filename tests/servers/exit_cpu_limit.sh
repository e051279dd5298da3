#!/bin/sh
# It is ended over a limit of CPU time that it was started with.
# expect: verdict=fail reason=policy codes=limit.cpu says=SIGXCPU
kill -XCPU $$
