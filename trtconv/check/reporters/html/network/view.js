"use strict";
// Draws a network into `root`, whose parts are named by data-part: svg, view, nodes, edges, state, detail, in, out, all,
// and, where there are any, find and kinds. `data` is what graph_data of page.py makes.
function drawNetwork(root, data) {
  const SVG = "http://www.w3.org/2000/svg";
  const part = (name) => root.querySelector(`[data-part="${name}"]`);
  const svg = part("svg"), view = part("view"), nodeLayer = part("nodes"), edgeLayer = part("edges");
  const state = part("state"), detail = part("detail");
  const BLOCK = 110, GAP = 46, tip = svg.querySelector("marker").id;

  const make = (tag, attributes, text) => {
    const e = document.createElementNS(SVG, tag);
    for (const k in attributes) e.setAttribute(k, attributes[k]);
    if (text !== undefined) e.textContent = text;
    return e;
  };

  // The same operator has the same colour in every file.
  const FAMILY = [[/Conv|Gemm|MatMul|Einsum|gemm|LSTM|GRU|RNN|Attention/i, 212], [/Norm/i, 262], [/Relu|Sigmoid|Tanh|Softmax|Gelu|Swish|Mish|Elu|Erf|Clip|Hard|PWN|Activation/i, 12],
    [/Pool/i, 142], [/Resize|Upsample|Grid|Roi|Pad/i, 172], [/Reshape|Transpose|Squeeze|Flatten|Concat|Split|Slice|Gather|Scatter|Expand|Tile|Shuffle|Shape|Cast|Where|Range/i, 42],
    [/^(Input|Output)$/, 0], [/::|Plugin/i, 322]];
  const colour = (op) => {
    const hit = FAMILY.find(([pattern]) => pattern.test(op));
    return hit ? (hit[1] === 0 ? "#8b95a3" : `hsl(${hit[1]} 62% 52%)`) : "hsl(200 12% 58%)";
  };

  const nodes = data.nodes.map((n, i) => {
    const sub = n.s ? `${n.d} ${(n.s * 1e6).toFixed(1)} µs`.trim() : n.n.length > 24 ? "…" + n.n.slice(-23) : n.n;
    const width = Math.max(74, Math.min(190, 7.4 * Math.max(n.o.length, 0.84 * sub.length) + 22));
    return { ...n, i, sub, width, height: 36, out: [], into: [] };
  });
  const edges = data.edges.map(([a, b, name, dims], k) => ({ a, b, name, dims, k }));
  for (const e of edges) { nodes[e.a].out.push(e); nodes[e.b].into.push(e); }

  // Kahn's order that goes on with what was reached last, so that a branch stays together.
  function ordered() {
    const left = nodes.map((n) => n.into.length), stack = [], found = [];
    for (let i = nodes.length - 1; i >= 0; i--) if (!left[i]) stack.push(i);
    while (stack.length) {
      const i = stack.pop();
      found.push(i);
      for (const e of nodes[i].out) if (--left[e.b] === 0) stack.push(e.b);
    }
    const seen = new Set(found);
    for (const n of nodes) if (!seen.has(n.i)) found.push(n.i);
    return found;
  }

  // Cut where few edges cross; dagre's time grows with the square of a block.
  function blocks(order) {
    const at = []; order.forEach((i, p) => (at[i] = p));
    const crossing = new Array(order.length + 1).fill(0);
    for (const e of edges) { crossing[Math.min(at[e.a], at[e.b]) + 1]++; crossing[Math.max(at[e.a], at[e.b]) + 1]--; }
    for (let p = 1; p <= order.length; p++) crossing[p] += crossing[p - 1];
    const found = [];
    let start = 0;
    while (order.length - start > BLOCK * 1.4) {
      let best = start + BLOCK;
      for (let p = start + (BLOCK >> 1); p <= start + BLOCK * 1.3; p++) if (crossing[p] < crossing[best]) best = p;
      found.push(order.slice(start, best));
      start = best;
    }
    found.push(order.slice(start));
    return found;
  }

  function layout(block, top) {
    const g = new dagre.graphlib.Graph({ multigraph: true }), here = new Set(block);
    g.setGraph({ ranksep: 34, nodesep: 22, edgesep: 10, ranker: "tight-tree" });
    for (const i of block) g.setNode(String(i), { width: nodes[i].width, height: nodes[i].height });
    const inside = [];
    for (const i of block) for (const e of nodes[i].out) if (here.has(e.b) && e.b !== i) { g.setEdge(String(i), String(e.b), {}, String(e.k)); inside.push(e); }
    dagre.layout(g);
    // Put the block below what feeds it.
    let shift = 0, count = 0;
    for (const i of block) for (const e of nodes[i].into) if (!here.has(e.a) && nodes[e.a].x !== undefined) { shift += nodes[e.a].x - g.node(String(i)).x; count++; }
    shift = count ? shift / count : 0;
    let bottom = top;
    for (const i of block) { const p = g.node(String(i)); nodes[i].x = p.x + shift; nodes[i].y = p.y + top; bottom = Math.max(bottom, nodes[i].y + 18); }
    for (const e of inside) e.points = g.edge(String(e.a), String(e.b), String(e.k)).points.map((p) => [p.x + shift, p.y + top]);
    return bottom + GAP;
  }

  const path = (e) => {
    if (e.points) {
      const p = e.points;
      let d = `M${p[0][0].toFixed(1)} ${p[0][1].toFixed(1)}`;
      for (let i = 1; i < p.length - 1; i++) d += `Q${p[i][0].toFixed(1)} ${p[i][1].toFixed(1)} ${((p[i][0] + p[i + 1][0]) / 2).toFixed(1)} ${((p[i][1] + p[i + 1][1]) / 2).toFixed(1)}`;
      return d + `L${p[p.length - 1][0].toFixed(1)} ${p[p.length - 1][1].toFixed(1)}`;
    }
    const a = nodes[e.a], b = nodes[e.b], y0 = a.y + 18, y1 = b.y - 18, bend = Math.max(24, Math.min(120, (y1 - y0) / 2));
    return `M${a.x.toFixed(1)} ${y0.toFixed(1)}C${a.x.toFixed(1)} ${(y0 + bend).toFixed(1)} ${b.x.toFixed(1)} ${(y1 - bend).toFixed(1)} ${b.x.toFixed(1)} ${y1.toFixed(1)}`;
  };

  const slowest = Math.max(0, ...nodes.map((n) => n.s));
  function drawNode(n) {
    const g = make("g", { class: "node" + (n.r ? " rule" : ""), transform: `translate(${n.x.toFixed(1)} ${n.y.toFixed(1)})`, tabindex: "-1", role: "button", "aria-label": `${n.o} ${n.sub}`.trim() });
    const w = n.width, h = n.height;
    g.append(make("rect", { class: "box", x: -w / 2, y: -h / 2, width: w, height: h, rx: 6 }));
    g.append(make("rect", { class: "bar", x: -w / 2, y: -h / 2, width: 5, height: h, rx: 2, style: `fill:${colour(n.o)}` }));
    if (n.s) g.append(make("rect", { class: "bar", x: -w / 2, y: h / 2 - 3, width: (w * n.s / slowest).toFixed(1), height: 3, style: "fill:var(--mark)" }));
    g.append(make("text", { x: 0, y: -2 }, `${n.o} `));
    g.append(make("text", { x: 0, y: 12, class: "sub" }, n.sub));
    g.addEventListener("click", () => pick(n));
    g.addEventListener("keydown", (event) => walk(event, n));
    g.addEventListener("focus", () => { if (g.matches(":focus-visible")) reveal(n); });
    if (nodeLayer.childElementCount === 0) g.setAttribute("tabindex", "0");
    n.element = g;
    nodeLayer.append(g);
  }
  const drawn = new Set();
  function drawEdge(e) {
    if (drawn.has(e.k) || nodes[e.a].x === undefined || nodes[e.b].x === undefined) return;
    drawn.add(e.k);
    e.element = make("path", { class: "edge" + (e.points ? "" : " far"), d: path(e), "marker-end": `url(#${tip})` });
    e.element.append(make("title", {}, `${e.name} ${e.dims}`));
    edgeLayer.append(e.element);
    const short = e.dims.replace(/^[a-z0-9]+\[/, "").replace(/]$/, "");
    if (short && short.length < 26 && e.points) {
      // Beside the nodes that a long edge passes there is no room for words; above the node that it ends in there is.
      const n = e.points.length, m = n <= 3 ? e.points[n >> 1] : [0, 1].map((k) => (e.points[n - 2][k] + e.points[n - 1][k]) / 2);
      edgeLayer.append(make("text", { class: "dims", x: m[0].toFixed(1), y: m[1].toFixed(1) }, short.replace(/,/g, "×")));
    }
  }

  // One stop of the Tab key for the whole picture; arrows go on from node to node in the order of the graph.
  function walk(event, n) {
    if (event.key === "Enter" || event.key === " ") { event.preventDefault(); pick(n); return; }
    const at = order.indexOf(n.i);
    const to = { ArrowDown: at + 1, ArrowRight: at + 1, ArrowUp: at - 1, ArrowLeft: at - 1, Home: 0, End: order.length - 1 }[event.key];
    const other = to === undefined ? undefined : nodes[order[to]];
    if (!other || !other.element) return;
    event.preventDefault();
    n.element.setAttribute("tabindex", "-1");
    other.element.setAttribute("tabindex", "0");
    other.element.focus();
  }
  function reveal(n) {
    const b = box(), x = tx + scale * n.x, y = ty + scale * n.y;
    if (scale < 0.5) scale = 0.8;
    else if (x > 0 && y > 0 && x < b.width && y < b.height) return;
    tx = b.width / 2 - scale * n.x; ty = b.height / 2 - scale * n.y; apply();
  }

  let picked = null;
  function pick(n) {
    if (picked) { picked.element.classList.remove("pick"); for (const e of [...picked.into, ...picked.out]) e.element && e.element.classList.remove("pick"); }
    picked = n;
    n.element.classList.add("pick");
    for (const e of [...n.into, ...n.out]) e.element && e.element.classList.add("pick");
    const title = document.createElement("h2"), list = document.createElement("dl");
    title.textContent = n.o; title.style.marginTop = "14px";
    for (const [k, v] of [["name", n.n], ...n.f]) {
      if (!v) continue;
      const dt = document.createElement("dt"), dd = document.createElement("dd");
      dt.textContent = k; dd.textContent = v; list.append(dt, dd);
    }
    detail.replaceChildren(title, list);
    if (innerWidth <= 760) detail.scrollIntoView({ block: "nearest" });
  }

  let scale = 1, tx = 0, ty = 0;
  const apply = () => { view.setAttribute("transform", `translate(${tx} ${ty}) scale(${scale})`); svg.classList.toggle("small", scale < 0.32); };
  const zoom = (factor, x, y) => {
    const next = Math.min(4, Math.max(0.01, scale * factor)), f = next / scale;
    tx = x - (x - tx) * f; ty = y - (y - ty) * f; scale = next; apply();
  };
  const box = () => svg.getBoundingClientRect();
  const bounds = () => {
    const known = nodes.filter((n) => n.x !== undefined);
    return [Math.min(...known.map((n) => n.x - n.width / 2)), Math.min(...known.map((n) => n.y)) - 18, Math.max(...known.map((n) => n.x + n.width / 2)), Math.max(...known.map((n) => n.y)) + 18];
  };
  function fit(whole) {
    const [x0, y0, x1, y1] = bounds(), b = box();
    scale = Math.min(1.1, (b.width - 30) / (x1 - x0), whole ? (b.height - 30) / (y1 - y0) : Infinity);
    if (!whole) scale = Math.max(scale, 0.5);
    tx = (b.width - scale * (x0 + x1)) / 2;
    if (!whole && scale * (x1 - x0) > b.width) tx = b.width / 2 - scale * nodes[order[0]].x;
    ty = whole ? (b.height - scale * (y0 + y1)) / 2 : 20 - scale * y0;
    apply();
  }
  function show(n) { const b = box(); scale = Math.max(scale, 0.8); tx = b.width / 2 - scale * n.x; ty = b.height / 2 - scale * n.y; apply(); pick(n); }

  svg.addEventListener("wheel", (event) => {
    event.preventDefault();
    const b = box();
    if (event.ctrlKey || !event.shiftKey) zoom(Math.exp(-event.deltaY * 0.0016), event.clientX - b.left, event.clientY - b.top);
    else { tx -= event.deltaY; apply(); }
  }, { passive: false });
  const fingers = new Map();
  let moved = 0;
  svg.addEventListener("pointerdown", (event) => { fingers.set(event.pointerId, [event.clientX, event.clientY]); moved = 0; });
  addEventListener("pointermove", (event) => {
    const before = fingers.get(event.pointerId);
    if (!before) return;
    const b = box(), now = [event.clientX, event.clientY];
    if (fingers.size === 1) { tx += now[0] - before[0]; ty += now[1] - before[1]; moved += Math.abs(now[0] - before[0]) + Math.abs(now[1] - before[1]); apply(); }
    else {
      const other = [...fingers].find(([id]) => id !== event.pointerId)[1];
      const length = (p) => Math.hypot(p[0] - other[0], p[1] - other[1]);
      zoom(length(now) / Math.max(1, length(before)), (now[0] + other[0]) / 2 - b.left, (now[1] + other[1]) / 2 - b.top);
    }
    fingers.set(event.pointerId, now);
  });
  for (const name of ["pointerup", "pointercancel"]) addEventListener(name, (event) => fingers.delete(event.pointerId));
  svg.addEventListener("click", (event) => { if (moved > 6) event.stopPropagation(); }, true);
  part("in").onclick = () => zoom(1.3, box().width / 2, box().height / 2);
  part("out").onclick = () => zoom(1 / 1.3, box().width / 2, box().height / 2);
  part("all").onclick = () => fit(true);

  const mark = (test) => { for (const n of nodes) n.element && n.element.classList.toggle("off", test !== null && !test(n)); };
  let hits = [], turn = 0;
  const find = part("find");
  if (find) find.addEventListener("input", () => {
    const word = find.value.trim().toLowerCase();
    hits = word ? nodes.filter((n) => `${n.o} ${n.n} ${n.f.map((f) => f[1]).join(" ")}`.toLowerCase().includes(word)) : [];
    turn = 0;
    const set = new Set(hits);
    mark(word ? (n) => set.has(n) : null);
    state.textContent = word ? `${hits.length} found` : "";
  });
  if (find) find.addEventListener("keydown", (event) => { if (event.key === "Enter" && hits.length) { show(hits[turn++ % hits.length]); find.focus(); } });

  const counts = new Map();
  for (const n of nodes) counts.set(n.o, (counts.get(n.o) || 0) + 1);
  let only = "";
  const kinds = part("kinds");
  if (kinds) for (const [op, count] of [...counts].sort((a, b) => b[1] - a[1])) {
    const item = document.createElement("li"), button = document.createElement("button");
    button.textContent = `${op} ${count}`; button.style.borderLeftColor = colour(op);
    button.onclick = () => { only = only === op ? "" : op; mark(only ? (n) => n.o === only : null); };
    item.append(button); kinds.append(item);
  }

  const order = ordered(), parts = blocks(order);
  let top = 0, next = 0;
  function step() {
    const until = performance.now() + 40;
    do {
      top = layout(parts[next], top);
      for (const i of parts[next]) drawNode(nodes[i]);
      for (const i of parts[next]) for (const e of [...nodes[i].into, ...nodes[i].out]) drawEdge(e);
      if (next === 0) fit(false);
      next++;
    } while (next < parts.length && performance.now() < until);
    state.textContent = next < parts.length ? `laying out ${next} of ${parts.length}` : "";
    if (next < parts.length) requestAnimationFrame(step);
    else root.dataset.ready = String(Math.round(performance.now()));
  }
  if (nodes.length) step(); else state.textContent = "no nodes";
}
