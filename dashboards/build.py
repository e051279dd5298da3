#!/usr/bin/env python3
"""Writes the dashboards beside it: build.py [FOLDER].

stdiowatch-fleet.json shows all servers, worst first; stdiowatch-server.json shows one. tests/deploy holds the files against
this, and against Grafana's types; tests/real/monitoring.py runs every query.
"""

import pathlib
import sys

import fleet
import server
from parts import tidy


def main():
    folder = pathlib.Path(sys.argv[1]) if sys.argv[1:] else pathlib.Path(__file__).resolve().parent
    for board in (fleet.BOARD, server.BOARD):
        (folder / f"{board['uid']}.json").write_text(tidy(board) + "\n")


if __name__ == "__main__":
    main()
