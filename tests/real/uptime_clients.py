"""The uptime monitors of docs/uptime.md, each as a question: "up", "down", or why it is not known.

Where a monitor is installed here, it runs, with what the page says. The others are played: the request as recorded from
each, and what it makes of the answer.
"""

import csv
import json
import os
import re
import shlex
import socket
import subprocess
import urllib.parse
import urllib.request

from checks import TOP, free_port, start

PAGE = (TOP / "docs/uptime.md").read_text()
HEALTH = "/health/files"
PLAYED_TIMEOUT = 2  # seconds

# As recorded from each: the method, the version, and the header fields; PORT is filled in.
KUMA = ["Accept: text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8", "User-Agent: Uptime-Kuma/2.5.0", "Host: 127.0.0.1:PORT", "Connection: close"]
REQUESTS = {
    "Uptime Kuma": ("GET", "1.1", KUMA),
    "Uptime Kuma, HEAD": ("HEAD", "1.1", KUMA),
    "Uptime Kuma, keyword": ("GET", "1.1", KUMA),
    "Uptime Kuma, JSON query": ("GET", "1.1", KUMA),
    "UptimeRobot": ("HEAD", "1.1", ["Host: 127.0.0.1:PORT", "User-Agent: Mozilla/5.0+(compatible; UptimeRobot/2.0)", "Accept: */*", "Connection: close"]),
    "Better Stack": ("GET", "1.1", ["Host: 127.0.0.1:PORT", "Accept: */*", "Connection: close"]),
    "Gatus": ("GET", "1.1", ["Host: 127.0.0.1:PORT", "User-Agent: Gatus/1.0", "Accept-Encoding: gzip", "Connection: close"]),
    "Zabbix, HTTP agent": ("GET", "1.1", ["Host: 127.0.0.1:PORT", "User-Agent: Zabbix", "Accept: */*", "Accept-Encoding: gzip, deflate", "Connection: close"]),
    "kubelet, /health": ("GET", "1.1", ["Host: 127.0.0.1:PORT", "User-Agent: kube-probe/1.33", "Accept: */*", "Connection: close"]),
    "kubelet, /livez": ("GET", "1.1", ["Host: 127.0.0.1:PORT", "User-Agent: kube-probe/1.33", "Accept: */*", "Connection: close"]),
}


def block(kind, nth=0):
    """A snippet of the page."""
    return re.findall(rf"^```{kind}\n(.*?)```$", PAGE, re.M | re.S)[nth]


def replaced(text, *pairs):
    """With other values, each of which has to be there once."""
    for there, here in pairs:
        if text.count(there) != 1:
            raise ValueError(f"docs/uptime.md has {there!r} {text.count(there)} times, in\n{text}")
        text = text.replace(there, here)
    return text


def up_if(condition):
    return "up" if condition else "down"


# --- played -----------------------------------------------------------------------------------------------------------


def raw(port, name, path, sent=lambda: None):
    """What is answered to a monitor's request for `path`."""
    method, version, fields = REQUESTS[name]
    return answered(port, "\r\n".join([f"{method} {path} HTTP/{version}", *fields]).replace("PORT", str(port)), sent)


def answered(port, request, sent=lambda: None):
    """Status, header fields and body of the answer to exactly this; the connection has to be closed in time. Calls `sent` in between."""
    with socket.create_connection(("127.0.0.1", port), timeout=PLAYED_TIMEOUT) as connection:
        connection.sendall(f"{request}\r\n\r\n".encode())
        sent()
        answer = b"".join(iter(lambda: connection.recv(65536), b"")).decode()
    head, _, body = answer.partition("\r\n\r\n")
    first, *lines = head.split("\r\n")
    return int(first.split()[1]), {k.lower(): v for k, v in (line.split(": ", 1) for line in lines)}, body


def played(port, name):
    path = "/livez" if "livez" in name else HEALTH
    try:
        status, _, body = raw(port, name, path)
    except OSError:
        return "down"
    return up_if(JUDGED.get(name, lambda status, _: 200 <= status <= 299)(status, body))


# These two are to see it by the body alone: the status would do, but then nobody noticed a wrong word.


def keyword(_, body):
    return re.search(r"keyword `(.*?)`, with \*Invert", PAGE)[1] not in body


def json_query(_, body):
    left, right = re.search(r'expression `(\w+) != "(\w+)"`, expected value `true`', PAGE).groups()
    return json.loads(body)[left] != right


def gatus(status, body):
    """The conditions of the page, as far as they are of these two kinds."""
    conditions = re.findall(r'^ +- "(\[.*)"$', block("yaml"), re.M)
    statuses = [int(found[1]) for text in conditions if (found := re.fullmatch(r"\[STATUS\] == (\d+)", text))]
    words = [found[1].split(", ") for text in conditions if (found := re.fullmatch(r"\[BODY\]\.status == any\((.*)\)", text))]
    assert len(statuses) == len(words) == 1 and len(conditions) == 2, conditions
    return status == statuses[0] and json.loads(body)["status"] in words[0]


JUDGED = {"Uptime Kuma, keyword": keyword, "Uptime Kuma, JSON query": json_query, "Gatus": gatus, "Better Stack": lambda status, _: status == 200}


# --- real -------------------------------------------------------------------------------------------------------------


def check_http(port, *changes):
    line = re.search(r"command_line +(.*)", block("nagios"))[1]
    line = replaced(line, ("$HOSTADDRESS$", "127.0.0.1"), ("10779", str(port)), ("/health/$ARG1$", HEALTH), ("-t 5", "-t 2"), *changes)
    done = subprocess.run(shlex.split(line), capture_output=True, text=True)
    return {0: "up", 2: "down"}.get(done.returncode, f"exit {done.returncode}: {done.stdout}{done.stderr}")


def check_http_ways(port):
    """With a body; HEAD; HTTP/1.1 with Host; the word as a pattern, and as a plain string."""
    words = {"": "", " -j HEAD": "-j HEAD", " -H": "-H localhost", " -r": """-r '"status":"(pass|warn)"'""", " -s": """-s '"status":"pass"'"""}
    changes = {name: [("-t 2", f"-t 2 {more}")] for name, more in words.items()}
    return {f"check_http{name}": lambda change=change: check_http(port, *change) for name, change in changes.items()}


def blackbox(ends, folder, port):
    (folder / "blackbox.yml").write_text(replaced(block("yaml", 1), ("timeout: 5s", "timeout: 2s")))
    own = free_port()
    start(ends, folder / "blackbox.log", ["prometheus-blackbox-exporter", f"--config.file={folder / 'blackbox.yml'}", f"--web.listen-address=127.0.0.1:{own}"])
    query = urllib.parse.urlencode({"module": "stdiowatch", "target": f"http://127.0.0.1:{port}{HEALTH}"})

    def ask():
        try:
            answer = urllib.request.urlopen(f"http://127.0.0.1:{own}/probe?{query}", timeout=10).read().decode()
        except OSError as error:
            return str(error)
        return up_if("\nprobe_success 1\n" in answer)

    return ask


def haproxy(ends, folder, port):
    """Both ways of the page, and `option httpchk` alone; their states as the statistics have them."""
    first, second = block("haproxy"), block("haproxy", 1)
    alone = replaced(first, ("option httpchk GET /health/files", "option httpchk"))
    control, config = folder / "haproxy.sock", folder / "haproxy.cfg"
    text = f"global\n    stats socket {control} level user\n"
    for name, backend in [("get", first), ("send", second), ("options", alone)]:
        text += replaced(backend, ("backend gateway", f"backend {name}"), ("port 10779", f"port {port}"), ("inter 10s", "inter 500ms"))
    config.write_text(text)
    start(ends, folder / "haproxy.log", ["haproxy", "-db", "-f", config])

    def state(name):
        try:
            with socket.socket(socket.AF_UNIX) as connection:
                connection.settimeout(5)
                connection.connect(str(control))
                connection.sendall(b"show stat\n")
                table = b"".join(iter(lambda: connection.recv(65536), b"")).decode()
        except OSError as error:
            return str(error)
        rows = csv.DictReader(table.removeprefix("# ").splitlines())
        status, last = next((row["status"], row["check_status"]) for row in rows if (row["pxname"], row["svname"]) == (name, "one"))
        # It believes in a server that it has not checked yet, and says so.
        return {"UP": "up", "DOWN": "down"}.get(status if last != "INI" else "", f"{status} {last}")

    return {f"HAProxy, {name}": lambda name=name: state(name) for name in ("get", "send", "options")}


def monit(ends, folder, port):
    config, control = folder / "monitrc", folder / "monit.sock"
    files = "".join(f"set {what}file {folder / what}.monit\n" for what in ("id", "state", "pid"))
    check = replaced(block("monit"), ("port 10779", f"port {port}"), ("timeout 5 seconds", "timeout 2 seconds"), ("for 2 cycles", "for 1 cycles"))
    config.write_text(f"set daemon 1\nset httpd unixsocket {control} allow localhost\n{files}{check}")
    config.chmod(0o600)
    start(ends, folder / "monit.log", ["monit", "-I", "-c", config])

    def ask():
        said = subprocess.run(["monit", "-c", config, "-B", "summary"], capture_output=True, text=True).stdout
        state = re.search(r"^ stdiowatch +(\S.*?) +Remote Host", said, re.M)
        return {"OK": "up", "Connection failed": "down"}.get(state[1] if state else "", f"{state[1] if state else said}")

    return ask


def zabbix(folder, port):
    config, key = folder / "zabbix.conf", replaced(block("zabbix").strip(), ("10779", str(port)))
    config.write_text("Server=127.0.0.1\nHostname=here\nLogType=console\nTimeout=2\n")

    def ask():
        done = subprocess.run(["zabbix_agent2", "-c", config, "-t", key], capture_output=True, text=True)
        value = re.search(r"\[([sm])\|(.*?)\]", done.stdout[done.stdout.rfind("[s|") if "[s|" in done.stdout else done.stdout.rfind("[m|") :])
        if not value:
            return done.stdout + done.stderr
        return {("s", "pass"): "up", ("s", "warn"): "up", ("s", ""): "down", ("m", "ZBX_NOTSUPPORTED"): "down"}.get(value.groups(), done.stdout)

    return ask


def all_clients(ends, folder, port):
    """Each monitor by its name, started where it runs by itself."""
    clients = {name: lambda name=name: played(port, name) for name in REQUESTS}
    clients |= check_http_ways(port)
    clients |= haproxy(ends, folder, port)
    clients |= {"blackbox_exporter": blackbox(ends, folder, port), "Monit": monit(ends, folder, port), "Zabbix agent 2": zabbix(folder, port)}
    return clients
