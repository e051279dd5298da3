"""The systemd units against systemd's own tools; tests/deploy/systemd.py runs them."""

from common import DEPLOY, tool


def unit(check, folder):
    units = sorted((DEPLOY / "systemd").iterdir())
    # systemd-analyze wants the program to be there, and a socket its service beside it.
    place = folder / "systemd"
    place.mkdir()
    for path in units:
        (place / path.name).write_text(path.read_text().replace("/usr/local/bin/stdiowatch", "/bin/true"))
    for path in units:
        # It ends with 0 even where it does not know a key, but then it says so.
        tool(check, f"{path.name}: systemd-analyze verify", ["systemd-analyze", "verify", f"./{path.name}"], silent=True, cwd=place)
        if path.suffix == ".service":
            tool(check, f"{path.name}: exposure under 2.0", ["systemd-analyze", "security", "--offline=true", "--threshold=20", "--no-pager", f"./{path.name}"], cwd=place)
