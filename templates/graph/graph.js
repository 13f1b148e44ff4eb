"use strict";
// Zoom, pan, find, and what a node is. The drawing is whole without any of it.
(() => {
  const about = JSON.parse(document.getElementById("about-data").textContent);
  const box = document.getElementById("about");
  const text = document.getElementById("about-text");
  const find = document.getElementById("find");
  const found = document.getElementById("found");
  const cards = [...document.querySelectorAll(".card")];
  for (const part of document.querySelectorAll(".tools, .zoom")) part.hidden = false;

  // The wires of each card, found once, so that a click costs the same in a graph of thousands.
  const wires = new Map();
  for (const wire of document.querySelectorAll(".wires path")) {
    for (const key of [wire.dataset.from, wire.dataset.to]) {
      if (!wires.has(key)) wires.set(key, []);
      wires.get(key).push(wire);
    }
  }

  const views = new Map();

  function view(panel) {
    if (views.has(panel)) return views.get(panel);
    const canvas = panel.querySelector(".canvas");
    const svg = canvas.querySelector("svg");
    const width = svg.viewBox.baseVal.width;
    const height = svg.viewBox.baseVal.height;
    const made = {
      canvas,
      scale: 1,
      fit: () => Math.min(1, Math.max(0.05, (canvas.clientWidth - 4) / width)),
      // Keeps the point of the drawing that is at (x, y) of the canvas where it is.
      zoom(scale, x = canvas.clientWidth / 2, y = canvas.clientHeight / 2) {
        const next = Math.min(3, Math.max(0.05, scale));
        const old = svg.getBoundingClientRect();
        const outer = canvas.getBoundingClientRect();
        const atX = (outer.left + x - old.left) / this.scale;
        const atY = (outer.top + y - old.top) / this.scale;
        svg.setAttribute("width", String(width * next));
        svg.setAttribute("height", String(height * next));
        this.scale = next;
        const now = svg.getBoundingClientRect();
        canvas.scrollLeft += now.left + atX * next - (outer.left + x);
        canvas.scrollTop += now.top + atY * next - (outer.top + y);
      },
    };
    views.set(panel, made);
    drag(canvas);
    canvas.addEventListener(
      "wheel",
      (event) => {
        if (!event.ctrlKey && !event.metaKey) return;
        event.preventDefault();
        const outer = canvas.getBoundingClientRect();
        made.zoom(made.scale * Math.exp(-event.deltaY / 300), event.clientX - outer.left, event.clientY - outer.top);
      },
      { passive: false },
    );
    // A wide drawing begins where it can be read, at its first card, rather than as a speck.
    made.zoom(Math.max(made.fit(), canvas.clientWidth < 700 ? 0.7 : 0.6));
    canvas.scrollTop = 0;
    const top = svg.querySelector(".card.input") || svg.querySelector(".card");
    if (top) {
      const place = top.getBoundingClientRect();
      canvas.scrollLeft += place.left + place.width / 2 - (canvas.getBoundingClientRect().left + canvas.clientWidth / 2);
    }
    return made;
  }

  function drag(canvas) {
    let from = null;
    canvas.addEventListener("pointerdown", (event) => {
      if (event.pointerType !== "mouse" || event.button !== 0) return; // fingers scroll by themselves
      from = { x: event.clientX, y: event.clientY, left: canvas.scrollLeft, top: canvas.scrollTop };
    });
    addEventListener("pointermove", (event) => {
      if (from === null) return;
      canvas.classList.add("drag");
      canvas.scrollLeft = from.left - (event.clientX - from.x);
      canvas.scrollTop = from.top - (event.clientY - from.y);
    });
    addEventListener("pointerup", () => {
      from = null;
      canvas.classList.remove("drag");
    });
  }

  for (const panel of document.querySelectorAll(".panel")) {
    if (panel.open) view(panel);
    panel.addEventListener("toggle", () => panel.open && view(panel));
    panel.querySelector(".zoom").addEventListener("click", (event) => {
      const how = event.target.dataset.zoom;
      const shown = view(panel);
      if (how === "in") shown.zoom(shown.scale * 1.3);
      else if (how === "out") shown.zoom(shown.scale / 1.3);
      else if (how === "fit") shown.zoom(shown.fit());
      else if (how === "1") shown.zoom(1);
    });
  }

  function open(id) {
    const panel = document.getElementById(id);
    if (!panel || !panel.classList.contains("panel")) return;
    panel.open = true;
    panel.scrollIntoView();
  }
  addEventListener("hashchange", () => open(location.hash.slice(1)));
  if (location.hash) open(location.hash.slice(1));

  function element(name, content) {
    const made = document.createElement(name);
    made.textContent = content;
    return made;
  }

  function choose(card) {
    for (const old of document.querySelectorAll(".chosen, .near")) old.classList.remove("chosen", "near");
    box.hidden = card === null;
    if (card === null) return;
    card.classList.add("chosen");
    for (const wire of wires.get(card.dataset.key) || []) wire.classList.add("near");
    const list = document.createElement("dl");
    for (const line of about[card.dataset.key]) {
      const [key, value] = line.split("\t");
      const shown = element("dd", key.startsWith("#") ? "" : value);
      if (key.startsWith("#")) {
        const link = element("a", value);
        link.href = `#graph-${key.slice(1)}`;
        link.addEventListener("click", () => open(`graph-${key.slice(1)}`));
        shown.append(link);
      }
      list.append(element("dt", key.startsWith("#") ? "opens" : key), shown);
    }
    text.replaceChildren(list);
    box.scrollTop = 0;
  }
  document.getElementById("close").addEventListener("click", () => choose(null));
  addEventListener("keydown", (event) => event.key === "Escape" && choose(null));

  let pressed = null;
  addEventListener("pointerdown", (event) => (pressed = [event.clientX, event.clientY]), true);
  document.querySelector("main").addEventListener("click", (event) => {
    const moved = pressed !== null && Math.hypot(event.clientX - pressed[0], event.clientY - pressed[1]) > 4;
    const card = event.target.closest(".card");
    if (card && !moved) choose(card);
  });

  // What the colours mean: each card holds its classes for each legend.
  const legends = [...document.querySelectorAll(".legend")];
  const buttons = [...document.querySelectorAll("[data-colours]")];
  let shown = 0;
  function colour(index) {
    for (const card of cards) {
      const looks = (card.dataset.looks || "").split("|").map((look) => look.split(" "));
      if (looks.length > 1) {
        card.classList.remove(...looks[shown]);
        card.classList.add(...looks[index]);
      }
    }
    legends.forEach((legend, each) => (legend.hidden = each !== index));
    buttons.forEach((button, each) => button.setAttribute("aria-pressed", String(each === index)));
    shown = index;
  }
  buttons.forEach((button, index) => button.addEventListener("click", () => colour(index)));

  let hits = [];
  let at = -1;
  function show(index) {
    at = index;
    const card = hits[at];
    const panel = card.closest(".panel");
    panel.open = true;
    const shown = view(panel);
    if (shown.scale < 0.5) shown.zoom(0.8);
    card.scrollIntoView({ block: "center", inline: "center" });
    choose(card);
    found.textContent = `${at + 1} of ${hits.length}. Enter: the next one.`;
  }
  find.addEventListener("input", () => {
    const wanted = find.value.trim().toLowerCase();
    for (const card of hits) card.classList.remove("hit");
    hits = wanted ? cards.filter((card) => about[card.dataset.key].join("\n").toLowerCase().includes(wanted)) : [];
    for (const card of hits) card.classList.add("hit");
    document.querySelector("main").classList.toggle("dim", hits.length > 0);
    at = -1;
    found.textContent = wanted ? `${hits.length} found` + (hits.length ? ". Enter: go there." : "") : "";
  });
  find.addEventListener("keydown", (event) => {
    if (event.key === "Enter" && hits.length) show((at + (event.shiftKey ? hits.length - 1 : 1)) % hits.length);
  });
})();
