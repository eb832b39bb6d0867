"use strict";
// The page of examples/showcase. No library: each part is a function that is handed what has come.

const byId = (id) => document.getElementById(id);
const make = (tag, text, className) => {
  const element = document.createElement(tag);
  element.textContent = text;
  if (className) element.className = className;
  return element;
};
const grouped = (number) => Math.round(number).toLocaleString("en");
const clock = (milliseconds) => {
  const seconds = Math.floor(milliseconds / 1000);
  const two = (n) => String(n).padStart(2, "0");
  const hours = Math.floor(seconds / 3600);
  return (hours ? hours + ":" + two(Math.floor(seconds / 60) % 60) : Math.floor(seconds / 60)) + ":" + two(seconds % 60);
};
// Nothing: the server has gone. The pulse says so.
const request = (path, options) => fetch(path, options).catch(() => null);
const sum = (list, name) => list.reduce((all, one) => all + one[name], 0);

// --- Pulse: /events -----------------------------------------------------------------------------------------

const kGraphed = 120;  // twice a second for a minute
const rates = [];
let before = null;

function drawGraph() {
  const most = Math.max(...rates, 1);
  const x = (i) => 600 - (rates.length - 1 - i) * (600 / (kGraphed - 1));
  const y = (rate) => 114 - 104 * (rate / most);
  const line = rates.map((rate, i) => (i ? "L" : "M") + x(i).toFixed(1) + " " + y(rate).toFixed(1)).join("");
  byId("graph-line").setAttribute("d", line);
  byId("graph-area").setAttribute("d", line + "L600 120L" + x(0).toFixed(1) + " 120Z");
  byId("graph-max").textContent = grouped(most);
}

function showPulse(now) {
  byId("tasks").textContent = grouped(sum(now.workers, "tasks"));
  byId("timers").textContent = grouped(sum(now.workers, "timers"));
  byId("requests").textContent = grouped(now.requests);
  byId("uptime").textContent = clock(now.uptime_ms);
  byId("people").textContent = now.people === 1 ? "1 person" : now.people + " people";
  if (before && now.uptime_ms > before.uptime_ms) {
    const seconds = (now.uptime_ms - before.uptime_ms) / 1000;
    const rate = (name) => (sum(now.workers, name) - sum(before.workers, name)) / seconds;
    byId("resumed").textContent = grouped(rate("resumed"));
    byId("sleeps").textContent = grouped(rate("sleeps"));
    rates.push(rate("resumed"));
    if (rates.length > kGraphed) rates.shift();
    drawGraph();
  }
  before = now;
  byId("workers").replaceChildren(...now.workers.map((worker, i) => {
    const row = document.createElement("tr");
    const cells = [i, worker.tasks, worker.timers, worker.descriptors, worker.turns, worker.resumed, worker.sleeps];
    row.append(...cells.map((cell) => make("td", grouped(cell))), make("td", grouped(worker.frames / 1024) + " KiB"));
    return row;
  }));
  showLooms(now.looms);
  byId("add-loom").disabled = now.looms.length >= now.looms_max;
  byId("link").classList.add("live");
  byId("link-text").textContent = "live, on " + now.driver;
}

function watchPulse() {
  const events = new EventSource("/events");  // comes back by itself when the line breaks
  events.addEventListener("pulse", (event) => showPulse(JSON.parse(event.data)));
  events.addEventListener("error", () => {
    before = null;
    byId("link").classList.remove("live");
    byId("link-text").textContent = "no connection";
  });
}

// --- Looms: POST /looms, DELETE /looms/N --------------------------------------------------------------------

const loomRows = new Map();

function showLooms(looms) {
  const there = new Set(looms.map((loom) => loom.number));
  for (const [number, row] of loomRows) {
    if (there.has(number)) continue;
    row.remove();
    loomRows.delete(number);
  }
  for (const loom of looms) {
    let row = loomRows.get(loom.number);
    if (!row) {
      row = make("li", "");
      const stop = make("button", "Stop");
      stop.setAttribute("aria-label", "Stop loom " + loom.number);
      stop.addEventListener("click", async () => {
        stop.disabled = true;
        stop.disabled = await request("/looms/" + loom.number, {method: "DELETE"}) !== null;
      });
      const where = make("small", "worker " + loom.worker);
      row.append(make("span", "loom " + loom.number), where, make("span", "", "count"), stop);
      byId("looms").append(row);
      loomRows.set(loom.number, row);
    }
    row.querySelector(".count").textContent = grouped(loom.threads) + " threads";
  }
}

byId("add-loom").addEventListener("click", () => request("/looms", {method: "POST"}));

// --- Chat: /chat --------------------------------------------------------------------------------------------

let socket = null;

function showSaid(line) {
  const item = document.createElement("li");
  const time = make("time", new Date(line.time).toLocaleTimeString("en-GB"));
  if (line.kind === "message") {
    if (line.name === byId("name").value) item.className = "mine";
    item.append(time, make("b", line.name), ": " + line.text);
  } else {
    item.className = "note";
    item.append(time, line.name + " has " + line.kind);
  }
  const list = byId("said");
  list.append(item);
  while (list.children.length > 200) list.firstChild.remove();
  list.scrollTop = list.scrollHeight;
}

// Joins under the name that is in the form. A second call leaves first.
function join() {
  if (socket) {
    socket.onclose = null;
    socket.close();
  }
  const scheme = location.protocol === "https:" ? "wss://" : "ws://";
  socket = new WebSocket(scheme + location.host + "/chat?name=" + encodeURIComponent(byId("name").value));
  socket.onopen = () => byId("said").replaceChildren();
  socket.onmessage = (event) => showSaid(JSON.parse(event.data));
  socket.onclose = () => setTimeout(join, 2000);
}

byId("name").value = "guest " + Math.floor(100 + Math.random() * 900);
byId("name").addEventListener("change", () => byId("name").value.trim() && join());
byId("say").addEventListener("submit", (event) => {
  event.preventDefault();
  const text = byId("text").value.trim();
  if (!text || socket.readyState !== WebSocket.OPEN) return;
  socket.send(text);
  byId("text").value = "";
});

// --- Task tree: /tree ---------------------------------------------------------------------------------------

let linesBefore = null;

// "auto http::Server::serve(Listener &)::(lambda)::operator()(Nursery &) const" is http::Server::serve::λ: the rest is for
// who asks /tree, and for who rests the pointer on the line.
function shortName(signature) {
  let name = signature.replace(/ \[.*\]$/, "").replaceAll("(anonymous namespace)::", "")
    .replace(/\(lambda[^)]*\)/g, "λ").replaceAll("::operator()", "");
  for (let before = ""; before !== name;) {
    before = name;
    name = name.replace(/<[^<>]*>/g, "").replace(/\([^()]*\)/g, "");
  }
  return name.replace(/( const| noexcept)+$/, "").split(" ").at(-1).replace(/^weft::(v0::)?/, "");
}

// Trees are deep, and screens are not wide.
const half = (indent) => " ".repeat(indent.length / 2);

function treeLine(line, isNew) {
  const row = document.createElement("span");
  row.className = isNew ? "line new" : "line";
  const placed = line.match(/^(\s*)(task.*?) in (.*) at (\S+:\d+)(.*)$/);
  if (placed) {
    const [, indent, what, signature, place, rest] = placed;
    row.title = signature;
    row.append(half(indent) + what + " in ", make("b", shortName(signature)), " ", make("i", place), rest + "\n");
  } else if (/^worker \d+$/.test(line)) {
    row.append(make("strong", line), "\n");
  } else if (/^\s*".*"$/.test(line)) {
    row.append(half(line.match(/^\s*/)[0]), make("q", line.trim()), "\n");
  } else {
    row.textContent = half(line.match(/^\s*/)[0]) + line.trim() + "\n";
  }
  return row;
}

function showTree(text) {
  const lines = text.trimEnd().split("\n");
  // How often each line was there: one more than before is new.
  const counts = new Map();
  for (const line of linesBefore ?? []) counts.set(line, (counts.get(line) ?? 0) + 1);
  const rows = lines.map((line) => {
    const left = counts.get(line) ?? 0;
    counts.set(line, left - 1);
    return treeLine(line, linesBefore && left < 1);
  });
  byId("tree").replaceChildren(...rows);
  linesBefore = lines;
}

async function watchTree() {
  for (;;) {
    if (!document.hidden) {
      const answer = await request("/tree");
      const text = await answer?.text().catch(() => null);
      if (text) showTree(text);
    }
    await new Promise((resolve) => setTimeout(resolve, 1000));
  }
}

// --- JSON: /status ------------------------------------------------------------------------------------------

byId("ask").addEventListener("click", async () => {
  const answer = await request("/status");
  byId("json").textContent = answer ? JSON.stringify(await answer.json(), null, 2) : "no answer";
});

watchPulse();
watchTree();
join();
