// The page's own script: fresh parts, charts, keys. All texts come drawn from the server.
"use strict";

const part = document.getElementById("part");
const freshness = document.getElementById("freshness");

// --- fresh parts ---------------------------------------------------------------------------------

// Keep what the reader has opened, chosen or is typing while the rest of the part changes.
function keep(old, fresh) {
  if (!(old instanceof Element) || !(fresh instanceof Element)) return true;
  if (old.tagName === "DETAILS") fresh.open = old.open;
  if (old.tagName === "INPUT" && old.type === "checkbox") fresh.checked = old.checked;
  if (old.tagName === "INPUT" && old.type === "text") fresh.value = old.value;
  if (old.classList.contains("current")) fresh.classList.add("current");
  if (old.classList.contains("chart")) {
    old.dataset.lines = fresh.dataset.lines;
    return false; // what uPlot has drawn inside is ours alone
  }
  return true;
}

function refresh(html) {
  Idiomorph.morph(part, html, {
    morphStyle: "innerHTML",
    ignoreActiveValue: true,
    callbacks: { beforeNodeMorphed: keep },
  });
  htmx.process(part);
  draw();
}

let source = null;
let hidden = null;

function listen() {
  if (source || !part.hasAttribute("data-live")) return;
  source = new EventSource(location.href);
  source.addEventListener("part", (event) => {
    refresh(event.data);
    freshness.textContent = "live";
  });
  source.onerror = () => {
    freshness.textContent = "the page's own process does not answer; trying again";
    if (source && source.readyState === EventSource.CLOSED) {
      source = null;
      setTimeout(listen, 2000);
    }
  };
}

// A browser has six connections for all tabs together, so a hidden tab gives its own back.
document.addEventListener("visibilitychange", () => {
  clearTimeout(hidden);
  if (!document.hidden) listen();
  else hidden = setTimeout(() => { source?.close(); source = null; }, 1000);
});
addEventListener("pagehide", () => { source?.close(); source = null; });
addEventListener("pageshow", listen);

// --- charts --------------------------------------------------------------------------------------

const charts = new Map();

function colour(name) {
  return getComputedStyle(document.documentElement).getPropertyValue(`--${name}`).trim();
}

function draw() {
  for (const [element, chart] of charts) {
    if (element.isConnected) continue;
    chart.destroy();
    charts.delete(element);
  }
  for (const element of document.querySelectorAll(".chart")) {
    const lines = JSON.parse(element.dataset.lines);
    let chart = charts.get(element);
    if (!chart) {
      const tones = element.dataset.tones.split(",");
      const axis = { stroke: colour("faint"), grid: { stroke: colour("line") }, ticks: { stroke: colour("line") } };
      chart = new uPlot({
        width: element.clientWidth,
        height: 140,
        axes: [axis, { ...axis, size: 56 }],
        scales: { y: { range: (_, least, most) => [Math.min(0, least ?? 0), (most || 1) * 1.1] } },
        series: [{}, ...element.dataset.names.split(",").map((label, place) => ({
          label, stroke: colour(tones[place]), width: 2, points: { show: false },
        }))],
      }, lines, element);
      charts.set(element, chart);
    } else {
      chart.setData(lines);
    }
  }
}

addEventListener("resize", () => {
  for (const [element, chart] of charts) chart.setSize({ width: element.clientWidth, height: 140 });
});
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => {
  for (const chart of charts.values()) chart.destroy();
  charts.clear();
  draw();
});

// --- forms ---------------------------------------------------------------------------------------

document.addEventListener("change", (event) => {
  if (event.target.matches("[data-auto] select")) event.target.form.requestSubmit();
  if (event.target.matches("[data-all]")) {
    for (const box of part.querySelectorAll('input[name="letter"]')) box.checked = event.target.checked;
  }
});

// --- keys ----------------------------------------------------------------------------------------

const help = document.getElementById("help");
document.getElementById("help-button").addEventListener("click", () => help.showModal());

function move(step) {
  const rows = [...part.querySelectorAll("tr:has(a.main)")];
  if (!rows.length) return;
  const at = rows.findIndex((row) => row.classList.contains("current"));
  const next = rows[Math.max(0, Math.min(rows.length - 1, at < 0 ? 0 : at + step))];
  rows.forEach((row) => row.classList.toggle("current", row === next));
  next.querySelector("a.main").focus();
  next.scrollIntoView({ block: "nearest" });
}

document.addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.altKey || event.metaKey || help.open) return;
  if (event.target.matches("input, select, textarea")) {
    if (event.key === "Escape") event.target.blur();
    return;
  }
  if (event.key === "?") help.showModal();
  else if (event.key === "j") move(1);
  else if (event.key === "k") move(-1);
  else if (event.key === "/") document.querySelector("[data-filter]")?.focus();
  else {
    const link = document.querySelector(`a[data-key="${CSS.escape(event.key)}"]`);
    if (!link) return;
    link.click();
  }
  event.preventDefault();
});

draw();
listen();
