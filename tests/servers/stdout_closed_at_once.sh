#!/bin/sh
# Stdout is closed before a word was said.
# expect: verdict=fail reason=exited codes=exit.stdout_closed may=shutdown.needed_term era=null
exec >&-
exec sleep 60
