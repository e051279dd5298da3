// Keeps the page up to date, and filters it. Without this script the page says the same.
"use strict";
(() => {
  const root = new URL(".", document.currentScript.src);
  const tools = document.getElementById("tools");
  const live = document.createElement("span");
  live.setAttribute("role", "status");
  let filter = null, events = null, fetching = false, again = false, missed = false, since = 0;

  // Servers whose name holds what was typed; what they are is looked for too.
  function filtered() {
    const wanted = filter ? filter.value.trim().toLowerCase() : "";
    for (const section of document.querySelectorAll("#main > section")) {
      let shown = 0;
      for (const row of section.querySelectorAll(".servers > li")) {
        const text = row.dataset.name + " " + row.querySelector(".who").textContent;
        row.hidden = wanted !== "" && !text.toLowerCase().includes(wanted);
        shown += row.hidden ? 0 : 1;
      }
      if (section.querySelector(".servers")) section.hidden = shown === 0;
    }
  }

  function swap(text) {
    const next = new DOMParser().parseFromString(text, "text/html");
    const [now, then] = [document.getElementById("main"), next.getElementById("main")];
    if (!then) return;
    for (const details of then.querySelectorAll("details")) {
      const before = document.getElementById(details.id);
      details.open = before !== null && before.open;
    }
    // What had the focus keeps it, if it is still there.
    const focused = now.contains(document.activeElement) ? document.activeElement : null;
    const place = focused && [...now.querySelectorAll(focused.localName)].filter((e) => e.getAttribute("href") === focused.getAttribute("href")).indexOf(focused);
    document.title = next.title;
    now.replaceWith(document.adoptNode(then));
    filtered();
    if (focused) {
      const alike = [...then.querySelectorAll(focused.localName)].filter((e) => e.getAttribute("href") === focused.getAttribute("href"));
      if (alike[place]) alike[place].focus({ preventScroll: true });
    }
  }

  async function refresh() {
    // A page that nobody sees can wait, and so can one in which somebody is selecting.
    if (document.hidden || !getSelection().isCollapsed) { missed = true; return; }
    if (fetching) { again = true; return; }
    fetching = true;
    missed = again = false;
    try {
      const answer = await fetch(location.href, { cache: "no-store" });
      if (answer.headers.get("content-type").startsWith("text/html")) {
        swap(await answer.text());
        since = Date.now();
        said("live");
      }
    } catch {
      said("not live: stdiowatch does not answer");
    }
    fetching = false;
    if (again) refresh();
  }

  function said(text) {
    if (live.textContent !== text) live.textContent = text;
  }

  // Only while somebody looks: a browser has six connections to a host, for all of its tabs. Where this
  // is refused, because many listen already, what is asked for twice a minute has to do.
  function listen() {
    if (document.hidden) {
      if (events) events.close();
      events = null;
    } else if (!events || events.readyState === EventSource.CLOSED) {
      events = new EventSource(new URL("events", root));
      events.addEventListener("change", (event) => {
        if (document.getElementById("main").dataset.revision !== event.data) refresh();
      });
    }
  }

  if (document.querySelectorAll(".servers > li").length > 7) {
    const label = document.createElement("label");
    label.textContent = "Filter ";
    filter = document.createElement("input");
    filter.type = "search";
    filter.addEventListener("input", filtered);
    label.append(filter);
    tools.append(label);
  }
  tools.append(live);
  said("live");
  since = Date.now();
  document.addEventListener("visibilitychange", () => { listen(); if (missed) refresh(); });
  addEventListener("pagehide", () => { if (events) events.close(); });
  addEventListener("pageshow", listen);
  document.addEventListener("selectionchange", () => { if (missed && getSelection().isCollapsed) refresh(); });
  // Ages grow and verdicts expire without anything having changed.
  setInterval(() => { if (Date.now() - since > 25000) refresh(); }, 5000);
  setInterval(listen, 60000);
  listen();
})();
