#!/bin/sh
# The same in a session of its own.
# expect: verdict=warn codes=exit.detached may=shutdown.left_escaped never=exit.before_reply,exit.mid_session tools=1
exec setsid -f "$LIAR" 'sleep 200ms'
