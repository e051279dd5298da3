"""What the parts of tests/deploy have in common."""

import contextlib
import pathlib
import subprocess
import sys
import urllib.error
import urllib.request

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))
from checks import TOP

DEPLOY = TOP / "deploy"
NOBODY = "65532"


def tool(check, name, argv, silent=False, **how):
    """A tool that has to end with 0, and to say nothing where it should be `silent`."""
    done = subprocess.run([str(word) for word in argv], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, **how)
    return check(name, (done.stdout or "it failed") if done.returncode or (silent and done.stdout) else "")


def status(url):
    with contextlib.suppress(urllib.error.HTTPError, OSError), urllib.request.urlopen(url, timeout=5):
        return ""
    return f"{url} does not answer with 200"
