#!/usr/bin/env python3
"""What one look at a server costs, by stdiowatch and by the usual ways: clients.py BINARY [ROUNDS].

Everybody launches the server of echo.c, which lists 10 KiB of tools and costs next to nothing itself, completes the
handshake, lists the tools and ends it. The ways are run in turns, in one order and then in the other, and a ratio is the
median of each round's own. CPU is that of everything that was started, the server's included; of `serve` it is the
sidecar's own. Needs a C compiler, Node, npm and tests/real/install.sh; the inspector is installed beside that.
"""

import os
import pathlib
import re
import statistics
import subprocess
import sys
import tempfile
import time
import urllib.request

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "tests"))
from checks import REAL, free_port

INSPECTOR = "@modelcontextprotocol/inspector@2.12.0"
PYTHON = """
import asyncio, sys
from mcp import Client, StdioServerParameters
async def main():
    async with Client(StdioServerParameters(command=sys.argv[1])) as client:
        assert len((await client.list_tools()).tools) > 0
asyncio.run(main())
"""
NODE = """
import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { StdioClientTransport } from '@modelcontextprotocol/sdk/client/stdio.js';
const client = new Client({ name: 'bench', version: '1' });
await client.connect(new StdioClientTransport({ command: process.argv[2] }));
if ((await client.listTools()).tools.length === 0) process.exit(1);
await client.close();
"""


def main():
    binary, rounds = pathlib.Path(sys.argv[1]).resolve(), int(sys.argv[2]) if sys.argv[2:] else 11
    with tempfile.TemporaryDirectory(prefix="stdiowatch-bench-") as folder:
        folder = pathlib.Path(folder)
        ways = prepare(binary, folder)
        watching = Sidecar(binary, folder)
        costs = {name: [] for name in ways}
        for round in range(rounds):
            for name in list(ways) if round % 2 == 0 else reversed(list(ways)):
                costs[name].append(cost(ways[name]))
        show(costs, watching.end())


def prepare(binary, folder):
    """Each way's command; all of them end with status 0."""
    for name in ("floor", "echo"):
        subprocess.run(["cc", "-O2", "-static", "-o", folder / name, HERE / f"{name}.c"], check=True)
    server = folder / "echo"
    # Modules are looked for from where a script lies.
    script = REAL / "npm/bench-client.mjs"
    script.write_text(NODE)
    inspector = REAL / "inspector"
    if not (inspector / "node_modules/.bin/mcp-inspector").exists():
        subprocess.run(["npm", "install", "--prefix", inspector, "--ignore-scripts", "--no-audit", "--no-fund", "--loglevel=error", INSPECTOR], check=True)
    return {
        "floor: C, nothing parsed": [folder / "floor", "1", server],
        "stdiowatch check": [binary, "check", "--era", "legacy", "-q", "--", server],
        "stdiowatch check, era unknown": [binary, "check", "-q", "--", server],
        "Python SDK client": [REAL / "venv/sdk-2.3/bin/python", "-c", PYTHON, server],
        "Node SDK client": ["node", script, server],
        "inspector --cli": [inspector / "node_modules/.bin/mcp-inspector", "--cli", server, "--method", "tools/list"],
    }


def cost(command):
    """Wall and CPU milliseconds."""
    begin = time.monotonic()
    process = subprocess.Popen([str(word) for word in command], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
    said = process.stderr.read()
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        sys.exit(f"{command}: status {process.returncode}\n{said.decode(errors='replace')[-2000:]}")
    return (time.monotonic() - begin) * 1e3, (usage.ru_utime + usage.ru_stime) * 1e3


class Sidecar:
    """`serve`, which goes on meanwhile: its own CPU time a probe."""

    def __init__(self, binary, folder):
        config = folder / "serve.yaml"
        servers = "".join(f"  echo{n}: {{command: {folder / 'echo'}}}\n" for n in range(5))
        self.url = f"127.0.0.1:{free_port()}"
        config.write_text(f"listen: {self.url}\nstate_dir: {folder / 'state'}\ndefaults: {{interval: 1s}}\nservers:\n{servers}")
        self.process = subprocess.Popen([binary, "serve", "--config", config], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        deadline = time.monotonic() + 30
        while self.probes() < 20 and time.monotonic() < deadline:
            time.sleep(0.1)
        self.begin = self.probes(), self.cpu()

    def probes(self):
        try:
            text = urllib.request.urlopen(f"http://{self.url}/metrics", timeout=5).read().decode()
        except OSError:
            return 0
        return sum(int(n) for n in re.findall(r"^stdiowatch_probes_total\{.*\} (\d+)", text, re.M))

    def cpu(self):
        """Milliseconds: of its threads, not of its children."""
        return sum(int(task.joinpath("schedstat").read_text().split()[0]) for task in pathlib.Path(f"/proc/{self.process.pid}/task").iterdir()) / 1e6

    def end(self):
        probes, cpu = (now - before for now, before in zip((self.probes(), self.cpu()), self.begin))
        self.process.terminate()
        self.process.wait(30)
        return cpu / probes, probes


def show(costs, sidecar):
    reference = costs["stdiowatch check"]
    print(f"{'one look at a server':<32} {'wall ms':>9} {'CPU ms':>9} {'× check':>9}")
    for name, rows in costs.items():
        wall, cpu = (statistics.median(row[n] for row in rows) for n in range(2))
        ratio = statistics.median(row[1] / other[1] for row, other in zip(rows, reference))
        print(f"{name:<32} {wall:>9.1f} {cpu:>9.2f} {ratio:>9.2f}")
    print(f"{'stdiowatch serve, its own':<32} {'':>9} {sidecar[0]:>9.2f} {sidecar[0] / statistics.median(row[1] for row in reference):>9.2f}   over {sidecar[1]} probes")


if __name__ == "__main__":
    main()
