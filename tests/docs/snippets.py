"""Reads every snippet that is no command as what it is."""

import json
import pathlib
import subprocess
import tomllib

import yaml

HERE = pathlib.Path(__file__).resolve().parent


def kinds():
    with open(HERE / "snippets.toml", "rb") as file:
        return tomllib.load(file)["snippet"]


def looks(check, place, block):
    first = block.text.split("\n")[0]
    known = [entry for entry in kinds() if entry["page"] == block.page and block.text.startswith(entry["begins"])]
    if len(known) != 1:
        entry = f"[[snippet]]\npage = {block.page!r}\nbegins = {first[:40]!r}\nis = ONE OF {sorted(READERS)}"
        check(f"{block.at}: it is said what this is", f"add to {HERE / 'snippets.toml'}:\n{entry}" if not known else "two entries fit")
        return
    kind = known[0]["is"]
    if kind not in READERS:
        check(f"{block.at}: {kind}", f"there is no such kind; there are {sorted(READERS)}")
        return
    try:
        wrong = READERS[kind](place, block)
    except Exception as error:  # whatever a reader of others has to say
        wrong = f"{type(error).__name__}: {error}"
    check(f"{block.at}: {kind}", wrong)


def told(place, argv, *files):
    done = subprocess.run([str(word) for word in argv], cwd=place.work, env=place.env, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
    return done.stdout or f"it exits with {done.returncode}" if done.returncode else ""


def configuration(place, block, text=None, name="snippet.yaml"):
    """Ours, or a client's: by the name after the fence."""
    path = place.work / (block.info.split(" ")[1] if " " in block.info else name)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text or block.text)
    return told(place, [place.binary, "config", "check", path])


def server_keys(place, block):
    inner = "".join(f"    {line}\n" for line in block.text.split("\n"))
    return configuration(place, block, f"servers:\n  s:\n    command: x\n{inner}")


def web_configuration(place, block):
    if not (place.work / "server.key").exists():
        certificate = "openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 2 -keyout server.key -out server.crt -subj /CN=localhost -addext subjectAltName=DNS:localhost"
        status, said = place.run(f"{certificate} && cp server.crt ca.crt")
        if status:
            return said
    path = place.work / "web.yml"
    path.write_text(block.text)
    return told(place, [place.binary, "config", "check", "--web-config", path])


def prometheus(place, block):
    text = block.text if block.text.startswith(("scrape_configs:", "global:", "rule_files:")) else "scrape_configs:\n" + "\n".join(f"  {line}" for line in block.text.split("\n"))
    path = place.work / "prometheus.yaml"
    path.write_text(text)
    return told(place, ["promtool", "check", "config", "--syntax-only", path])


def rules(place, block):
    path = place.work / "rules.yaml"
    path.write_text(block.text)
    return told(place, ["promtool", "check", "rules", path])


def plain_yaml(place, block):
    documents = list(yaml.safe_load_all(block.text))
    return "" if all(isinstance(document, (dict, list)) for document in documents) else f"it is {documents!r}"


def plain_json(place, block):
    json.loads(block.text)
    return ""


def plain_toml(place, block):
    tomllib.loads(block.text)
    return ""


READERS = {
    "our configuration, or a client's": configuration,
    "keys of a server": server_keys,
    "a web configuration": web_configuration,
    "Prometheus' configuration": prometheus,
    "rules for Prometheus": rules,
    "YAML": plain_yaml,
    "JSON": plain_json,
    "TOML": plain_toml,
    # Held against nothing here; an entry says by `why` what does that, or why nothing can.
    "text": lambda place, block: "",
}
