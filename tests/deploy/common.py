"""What the parts of tests/deploy have in common."""

import contextlib
import pathlib
import subprocess
import sys
import urllib.error
import urllib.request

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))
from checks import TOP, tool  # noqa: F401, for the others

DEPLOY = TOP / "deploy"
NOBODY = "65532"


def status(url):
    with contextlib.suppress(urllib.error.HTTPError, OSError), urllib.request.urlopen(url, timeout=5):
        return ""
    return f"{url} does not answer with 200"
