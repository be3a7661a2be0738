"use strict";
drawNetwork(document.body, JSON.parse(document.getElementById("data").textContent));
