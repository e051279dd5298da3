#!/usr/bin/env python3
"""Holds the pages of a stdiowatch binary against a real browser: page.py BINARY [PICTURES].

Chromium opens `serve --demo` and made-up servers in every state (the example `gallery`): light and dark, 320 px wide, with a
script and without. axe-core has nothing to say, the console stays empty, nothing scrolls sideways, the whole is small, and a
page notices a change by itself. Where PICTURES is given, pictures are left there. Needs install.sh.
"""

import contextlib
import json
import os
import pathlib
import subprocess
import sys
import urllib.parse
import urllib.request

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))
from checks import TOP, Checks, free_port, until

DIR = pathlib.Path(os.environ.get("STDIOWATCH_REAL_DIR", pathlib.Path.home() / ".cache/stdiowatch-real"))
sys.path[:0] = [str(path) for path in DIR.glob("venv/page/lib/python3*/site-packages")]
from playwright.sync_api import sync_playwright

GALLERY = pathlib.Path(os.environ.get("CARGO_TARGET_DIR", TOP / "target")) / "debug/examples/gallery"
FIRST_ROUND = 60  # seconds until every server of the demo was probed
SMALL = 100 << 10  # bytes of everything that the overview of twelve servers loads
NOTICED = 5  # seconds until a page shows a change
# Best practices say nothing about whether anybody can use the page, but cost nothing to follow.
AXE = {"runOnly": ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"]}


def main():
    binary = pathlib.Path(sys.argv[1]).resolve()
    pictures = pathlib.Path(sys.argv[2]) if len(sys.argv) > 2 else None
    check = Checks()
    axe = (DIR / "npm/node_modules/axe-core/axe.min.js").read_text()
    with sync_playwright() as playwright, contextlib.ExitStack() as ends:
        demo = served(ends, [binary, "serve", "--demo", "--listen"])
        galleries = {count: served(ends, [GALLERY], count) for count in (1, 12, 200)}
        private = served(ends, [GALLERY], 12, "private")
        browser = playwright.chromium.launch(executable_path="/usr/bin/chromium", args=["--no-sandbox"])
        ends.callback(browser.close)
        check("every server of the demo is probed", until(FIRST_ROUND, lambda: wrong_status(demo + "readyz")))

        for base, name, most in [(demo, "the demo", None), (galleries[12], "twelve", None), (private, "private", 3)]:
            for path in pages(base)[:most]:
                for scheme, width in [("light", 1280), ("dark", 320)]:
                    looks(check, browser, axe, base, path, name, scheme, width)
        for path in pages(galleries[12])[:4]:
            looks(check, browser, axe, galleries[12], path, "twelve", "dark", 1280)
            looks(check, browser, axe, galleries[12], path, "twelve", "light", 320, script=False)
        for count in (1, 200):
            looks(check, browser, axe, galleries[count], "", f"{count} in all", "light", 1280)
        small(check, browser, galleries[12], "twelve servers")
        small(check, browser, private + "servers/search", "a server with its transcript")
        live(check, browser, galleries[12])
        filtered(check, browser, galleries[200])
        keyboard(check, browser, galleries[12])
        if pictures:
            shoot(browser, galleries, private, pictures)
    return check.end()


def served(ends, argv, *more):
    """What the program serves; it is ended when everything is."""
    port = free_port()
    argv = [str(word) for word in [*argv, f"127.0.0.1:{port}", *more]]
    program = subprocess.Popen(argv, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    ends.callback(program.wait)
    ends.callback(program.terminate)
    base = f"http://127.0.0.1:{port}/"
    problem = until(30, lambda: wrong_status(base + "livez"))
    if problem:
        sys.exit(f"{argv[0]}: {problem}")
    return base


def wrong_status(url):
    try:
        with urllib.request.urlopen(url, timeout=5) as answer:
            return "" if answer.status == 200 else str(answer.status)
    except OSError as error:
        return str(error)


def pages(base):
    """The overview, and each server's page."""
    with urllib.request.urlopen(base + "api/v1/servers") as answer:
        servers = json.load(answer)["servers"]
    return ["", *("servers/" + urllib.parse.quote(server["server"], safe="") for server in servers)]


@contextlib.contextmanager
def opened(browser, url, said=None, **how):
    context = browser.new_context(**how)
    page = context.new_page()
    if said is not None:
        page.on("console", lambda message: said.append(message.text))
        page.on("pageerror", lambda error: said.append(str(error)))
        page.on("requestfailed", lambda request: said.append(f"{request.url}: {request.failure}") if "/events" not in request.url else None)
        page.on("request", lambda request: said.append(f"asks elsewhere: {request.url}") if urllib.parse.urlsplit(request.url).netloc != urllib.parse.urlsplit(url).netloc else None)
    page.goto(url)
    try:
        yield page
    finally:
        context.close()


def looks(check, browser, axe, base, path, name, scheme, width, script=True):
    said = []
    what = f"{name}, /{urllib.parse.unquote(path)}, {scheme}, {width} px{'' if script else ', no script'}"
    with opened(browser, base + path, said, viewport={"width": width, "height": 900}, color_scheme=scheme, java_script_enabled=script) as page:
        if script:
            page.evaluate(axe)
            # Details are looked at as well.
            page.evaluate("document.querySelectorAll('details').forEach((d) => { d.open = true; })")
            found = page.evaluate("(options) => axe.run(document, options)", AXE)["violations"]
            check(f"axe: {what}", "\n".join(f"{v['id']}: {v['help']}: {n['html'][:200]}" for v in found for n in v["nodes"][:3]))
        sideways = page.evaluate("[document.documentElement.scrollWidth, document.documentElement.clientWidth]") if script else None
        if script:
            check(f"nothing scrolls sideways: {what}", "" if sideways[0] <= sideways[1] else str(sideways))
        check(f"it has one heading of the first level: {what}", "" if page.locator("main h1").count() == 1 else "not one")
        check(f"the console is empty: {what}", "\n".join(said))


def small(check, browser, base, what):
    sizes = []
    context = browser.new_context()
    page = context.new_page()
    page.on("response", lambda response: sizes.append(len(response.body())) if "/events" not in response.url else None)
    page.goto(base, wait_until="load")
    page.wait_for_timeout(300)
    context.close()
    check(f"{what}: under 100 KiB in all", "" if 0 < sum(sizes) < SMALL else f"{sum(sizes)} bytes: {sizes}")
    print(f"      {sum(sizes)} bytes in {len(sizes)} answers")


def live(check, browser, base):
    with opened(browser, base) as page:
        page.evaluate("window.marked = true")
        page.locator("#legend summary").click()
        page.locator("#main .servers a").first.focus()
        focused = page.evaluate("document.activeElement.textContent")
        before = page.locator("#main").get_attribute("data-revision")
        urllib.request.urlopen(urllib.request.Request(base + "-/flip", method="POST")).read()
        page.wait_for_function("(before) => document.getElementById('main').dataset.revision !== before", arg=before, timeout=NOTICED * 1000)
        check.equal("a change is swapped in, not loaded", page.evaluate("window.marked"), True)
        check.equal("what was open stays so", page.locator("#legend").get_attribute("open"), "")
        check.equal("what had the focus keeps it", page.evaluate("document.activeElement.textContent"), focused)
        check.equal("it is said to be live", page.locator("#tools [role=status]").text_content(), "live")
        after = page.locator("#main").get_attribute("data-revision")
        page.wait_for_timeout(1500)
        check.equal("and nothing moves while nothing changes", page.locator("#main").get_attribute("data-revision"), after)


def filtered(check, browser, base):
    with opened(browser, base) as page:
        rows = page.locator(".servers > li:visible")
        check.equal("two hundred servers are there", rows.count(), 200)
        page.get_by_label("Filter").fill("postgres-0")
        names = [row.lower() for row in rows.locator("h3").all_text_contents()]
        check("the filter leaves what it names", "" if 0 < len(names) < 30 and all("postgres-0" in name for name in names) else str(names))
        page.get_by_label("Filter").fill("")
        check.equal("and gives all back", rows.count(), 200)


def keyboard(check, browser, base):
    with opened(browser, base) as page:
        reached = []
        for _ in range(60):
            page.keyboard.press("Tab")
            reached.append(page.evaluate("document.activeElement.getAttribute('href') || document.activeElement.localName"))
        wanted = page.evaluate("[...document.querySelectorAll('main a')].map((a) => a.getAttribute('href'))")
        check.equal("every link is reached by Tab", [href for href in wanted if href not in reached], [])
        check("the order is the page's", "" if [h for h in reached if h in wanted][: len(wanted)] == wanted else str(reached))


def shoot(browser, galleries, private, folder):
    folder.mkdir(parents=True, exist_ok=True)
    for name, base, path, scheme, width in [
        ("1", galleries[1], "", "light", 1280),
        ("12", galleries[12], "", "light", 1280),
        ("12-dark", galleries[12], "", "dark", 1280),
        ("12-narrow", galleries[12], "", "light", 320),
        ("200", galleries[200], "", "light", 1280),
        ("failing", galleries[12], "servers/search", "light", 1280),
        ("failing-dark-narrow", galleries[12], "servers/search", "dark", 320),
        ("failing-private", private, "servers/search", "light", 1280),
        ("12-private", private, "", "light", 1280),
        ("drift", galleries[12], "servers/browser", "light", 1280),
        ("recovered", galleries[12], "servers/calendar", "dark", 1280),
    ]:
        with opened(browser, base + path, viewport={"width": width, "height": 900}, color_scheme=scheme) as page:
            page.screenshot(path=folder / f"{name}.png", full_page=True)


if __name__ == "__main__":
    sys.exit(main())
