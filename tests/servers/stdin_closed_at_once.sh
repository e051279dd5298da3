#!/bin/sh
# Stdin is closed before a word was read.
# expect: verdict=fail reason=exited codes=exit.stdin_closed may=shutdown.needed_term era=null
exec <&-
exec sleep 60
