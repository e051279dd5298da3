#!/bin/sh
# A crash before the handshake: the signal is told.
# expect: verdict=fail reason=exited codes=exit.before_reply signal=11 exit_code=null ended_by=self says=SIGSEGV
kill -SEGV $$
