#!/usr/bin/env python3
"""Builds the static binary from what the Dockerfile copies, and looks at both: static.py OUT, where OUT/stdiowatch is put.

A step of its own, since it takes minutes of one core. run.py does the same if it is given no binary. Needs
tests/real/install.sh.
"""

import pathlib
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))
import image
from checks import Checks


def main():
    check = Checks()
    with tempfile.TemporaryDirectory(prefix="stdiowatch-static-") as folder:
        image.dockerfile(check, pathlib.Path(folder), pathlib.Path(sys.argv[1]).resolve())
    return check.end()


if __name__ == "__main__":
    sys.exit(main())
