"""The systemd units against systemd's own tools; tests/deploy/systemd.py runs them."""

from common import DEPLOY, tool


def unit(check, folder):
    for path in sorted((DEPLOY / "systemd").glob("*.service")):
        # systemd-analyze wants the program to be there.
        copy = folder / path.name
        copy.write_text(path.read_text().replace("/usr/local/bin/stdiowatch", "/bin/true"))
        # It ends with 0 even where it does not know a key, but then it says so.
        tool(check, f"{path.name}: systemd-analyze verify", ["systemd-analyze", "verify", copy], silent=True)
        tool(check, f"{path.name}: exposure under 2.0", ["systemd-analyze", "security", "--offline=true", "--threshold=20", "--no-pager", copy])
