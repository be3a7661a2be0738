// Zoom with the wheel, two fingers or a double click; drag to move. Works on every picture of the page.
for (const frame of document.querySelectorAll(".picture")) {
  const svg = frame.querySelector("svg");
  if (!svg) continue;
  let home = svg.getAttribute("viewBox").split(" ").map(Number);
  // A picture of two nodes is not blown up to the frame: at most 1.3 times its own size.
  const grow = 1.3;
  const fit = Math.min(frame.clientWidth / home[2], frame.clientHeight / home[3]) / grow;
  if (fit > 1) home = [home[0] - home[2] * (fit - 1) / 2, home[1] - home[3] * (fit - 1) / 2, home[2] * fit, home[3] * fit];
  let view = [...home];
  const pointers = new Map();
  const show = () => svg.setAttribute("viewBox", view.join(" "));
  if (frame.clientWidth) show();
  const scale = () => Math.max(view[2] / svg.clientWidth, view[3] / svg.clientHeight);
  const zoom = (factor, x, y) => {
    const width = Math.min(home[2] * 4, Math.max(home[2] / 20, view[2] * factor));
    const real = width / view[2];
    const box = svg.getBoundingClientRect();
    const s = scale();
    const px = view[0] + view[2] / 2 + (x - box.left - box.width / 2) * s;
    const py = view[1] + view[3] / 2 + (y - box.top - box.height / 2) * s;
    view = [px - (px - view[0]) * real, py - (py - view[1]) * real, width, view[3] * real];
    show();
  };
  frame.addEventListener("wheel", (event) => {
    event.preventDefault();
    zoom(event.deltaY > 0 ? 1.15 : 1 / 1.15, event.clientX, event.clientY);
  }, { passive: false });
  frame.addEventListener("keydown", (event) => {
    const step = 0.15, box = svg.getBoundingClientRect(), x = box.left + box.width / 2, y = box.top + box.height / 2;
    if (event.key === "+") zoom(1 / 1.3, x, y);
    else if (event.key === "-") zoom(1.3, x, y);
    else if (event.key === "0") { view = [...home]; show(); }
    else {
      const move = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] }[event.key];
      if (!move) return;
      view[0] += move[0] * step * view[2];
      view[1] += move[1] * step * view[3];
      show();
    }
    event.preventDefault();
  });
  frame.addEventListener("dblclick", () => { view = [...home]; show(); });
  frame.addEventListener("pointerdown", (event) => {
    pointers.set(event.pointerId, event);
    frame.setPointerCapture(event.pointerId);
  });
  frame.addEventListener("pointermove", (event) => {
    const before = pointers.get(event.pointerId);
    if (!before) return;
    if (pointers.size === 1) {
      const s = scale();
      view[0] -= (event.clientX - before.clientX) * s;
      view[1] -= (event.clientY - before.clientY) * s;
      show();
    } else {
      const other = [...pointers.values()].find((p) => p.pointerId !== event.pointerId);
      const gap = (p) => Math.hypot(p.clientX - other.clientX, p.clientY - other.clientY);
      zoom(gap(before) / Math.max(1, gap(event)), other.clientX, other.clientY);
    }
    pointers.set(event.pointerId, event);
  });
  for (const name of ["pointerup", "pointercancel"]) {
    frame.addEventListener(name, (event) => pointers.delete(event.pointerId));
  }
}
