#!/bin/sh
# A wrapper with a status of its own.
# expect: verdict=pass codes=shutdown.exit_nonzero exit_code=70 ended_by=eof
"$LIAR" 'offer tools'
exit 70
