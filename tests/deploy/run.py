#!/usr/bin/env python3
"""Checks deploy/ and dashboards/ by machine: run.py [BINARY], the static binary that static.py has built; or else builds it.

Prometheus rules, Grafana dashboards, systemd units, the bill of materials and the Dockerfile against their own tools; the
static binary where there is nothing else; the image, and what deploy/compose sets
up (compose.py); the Helm chart and the kustomize folder (chart.py), and a pod of the rendered chart (pod.py). Needs root
and tests/real/install.sh; install.sh, which it calls, installs the rest. Whether rules and dashboards mean something on a live
sidecar is for tests/real/monitoring.py; the units run in systemd.py.
"""

import pathlib
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))
import chart
import compose
import dashboards
import image
import pod
import rules
import sbom
import unit
from checks import TOP, Checks, tool

HERE = pathlib.Path(__file__).resolve().parent


def main():
    check = Checks()
    subprocess.run([HERE / "install.sh"], check=True)
    with tempfile.TemporaryDirectory(prefix="stdiowatch-deploy-") as folder:
        folder = pathlib.Path(folder)
        scripts(check)
        sbom.bill_of_materials(check)
        rules.check_all(check, folder)
        dashboards.check_all(check, folder)
        unit.unit(check, folder)
        binary = pathlib.Path(sys.argv[1]).resolve() if sys.argv[1:] else image.dockerfile(check, folder, folder / "static")
        if binary:
            for proc in (False, True):
                image.run_in_root(check, binary, folder, proc)
            image.built(check, binary, folder)
            compose.everything(check, folder, binary)
            chart.everything(check, folder, binary)
            pod.everything(check, folder, binary)
    return check.end()


def scripts(check):
    found = [TOP / ".ci/run", *TOP.glob("deploy/**/*.sh"), *TOP.glob("tests/real/*.sh"), *TOP.glob("fuzz/*.sh"), HERE / "install.sh"]
    tool(check, "shellcheck has nothing to say", ["shellcheck", *found], silent=True)


if __name__ == "__main__":
    sys.exit(main())
