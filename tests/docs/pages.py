"""What the pages show: blocks of commands, blocks of anything else, and commands in sentences."""

import dataclasses
import re

# What a block of commands begins with. A line that begins with anything else makes the block something else.
PROGRAMS = ("stdiowatch", "cargo", "curl", "git", "printf", "docker", "podman", "kubectl", "helm", "promtool", "amtool", "systemctl", "journalctl",
            "loginctl", "systemd-creds", "systemd-analyze", "sudo", "install", "mkdir", "openssl", "htpasswd", "npm", "npx", "python3", "sh", "cp", "sed", "cat", "deploy/static.sh", "echo", "export", "env")  # fmt: skip
SHELLS = ("sh", "shell", "bash", "console")


@dataclasses.dataclass
class Command:
    at: str
    text: str
    entry: dict | None = None


@dataclasses.dataclass
class Block:
    at: str
    page: str
    info: str  # what stands after the fence; "" for an indented block
    text: str
    commands: list


@dataclasses.dataclass
class Page:
    name: str
    blocks: list
    inline: list


def read(top, wanted, others):
    """`others` are the (page, beginning) pairs that are said to be no commands."""
    files = [top / "README.md", *sorted((top / "docs").glob("*.md"))]
    wanted = [path.resolve() for path in wanted]
    found = [page(top, file) for file in files if not wanted or file in wanted]
    for block in (block for page in found for block in page.blocks):
        if any(block.page == name and block.text.startswith(begins) for name, begins in others):
            block.commands = []
    return found


def page(top, file):
    name = str(file.relative_to(top))
    lines = file.read_text().split("\n")
    blocks, prose, number = [], [], 0
    in_list = False
    while number < len(lines):
        line = lines[number]
        fence = re.match(r"(`{3,})\s*(.*)$", line)
        if fence:
            end = next(n for n in range(number + 1, len(lines)) if lines[n].startswith(fence[1]))
            blocks.append(block(name, number + 2, fence[2].strip(), lines[number + 1 : end]))
            number = end + 1
            continue
        if re.match(r" {4}", line) and not in_list and number and not lines[number - 1].strip():
            end = number
            while end < len(lines) and (re.match(r" {4}", lines[end]) or not lines[end].strip()):
                end += 1
            text = "\n".join(lines[number:end]).rstrip().split("\n")
            blocks.append(block(name, number + 1, "", [line[4:] for line in text]))
            number = end
            continue
        if line.strip():
            in_list = bool(re.match(r"\s*(?:[-*]|\d+\.) ", line)) or (in_list and line.startswith("  "))
        prose.append((number + 1, line))
        number += 1
    return Page(name, blocks, inline(name, prose))


def block(name, number, info, lines):
    text = "\n".join(lines)
    commands = []
    if info.split(" ")[0] in ("", *SHELLS) and lines[0].split(" ")[0] in PROGRAMS:
        commands = list(commands_of(name, number, lines))
    return Block(f"{name}:{number}", name, info, text, commands)


def commands_of(name, number, lines):
    """A line each, without its comment; a backslash at the end goes on."""
    whole, begun = "", number
    for here, line in enumerate(lines, number):
        if not whole:
            begun = here
        whole += line
        if whole.endswith("\\"):
            whole = whole[:-1].rstrip() + " "
            continue
        text = re.sub(r"\s+#(?![^']*'$) .*$", "", re.sub(r"\s+", " ", whole)).strip()
        if text and not text.startswith("#"):
            yield Command(f"{name}:{begun}", text)
        whole = ""


def inline(name, prose):
    """Commands of ours within sentences, also those that go on in the next line."""
    text = "\n".join(line for _, line in prose)
    starts, at = [], 0
    for number, line in prose:
        starts.append((at, number))
        at += len(line) + 1
    for found in re.finditer(r"(?<!`)`(stdiowatch [^`]+)`", text):
        number = max(number for start, number in starts if start <= found.start())
        yield Command(f"{name}:{number}", re.sub(r"\s+", " ", found[1]))
