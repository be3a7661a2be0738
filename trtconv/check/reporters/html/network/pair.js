"use strict";
// The two networks of a report are laid out when somebody opens them: dagre takes its time with thousands of nodes.
for (const details of document.querySelectorAll("details.networks")) {
  const draw = () => {
    for (const root of details.querySelectorAll(".network"))
      if (root.dataset.ready === undefined) drawNetwork(root, JSON.parse(root.querySelector("script").textContent));
  };
  details.addEventListener("toggle", () => details.open && draw());
  if (details.open) draw();
}
