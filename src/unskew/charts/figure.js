/* Hover, keyboard, zoom and enlargement for the charts of a page. Without this script all of them are
   still there, with their tables. */
(() => {
  const SVG = "http://www.w3.org/2000/svg";
  const numbers = (text) => text.split(" ").map(Number);
  const scale = ([low, high, start, end]) => ({
    low, high, start, end,
    to: (v) => start + ((v - low) / (high - low)) * (end - start),
    from: (p) => low + ((p - start) / (end - start)) * (high - low),
  });
  const make = (name, attributes, parent) => {
    const found = document.createElementNS(SVG, name);
    for (const [key, value] of Object.entries(attributes)) found.setAttribute(key, value);
    parent.append(found);
    return found;
  };
  const ticks = (low, high, most, whole) => {
    const span = high - low;
    const power = 10 ** Math.floor(Math.log10(span / most));
    let step = [1, 2, 5, 10, 20].map((m) => m * power).find((s) => span / s <= most);
    if (whole) step = Math.max(1, Math.round(step));
    const found = [];
    for (let k = Math.ceil(low / step - 1e-9); k * step <= high + step * 1e-9; k++) found.push(k * step);
    return [found, Math.max(0, -Math.floor(Math.log10(step) + 1e-9))];
  };

  const start = (figure) => {
    const canvas = figure.querySelector(".canvas");
    const source = figure.querySelector("script[type='application/json']");
    if (!canvas || !source || figure.dataset.live) return;
    figure.dataset.live = "1";
    const told = JSON.parse(source.textContent);
    const tip = document.createElement("div");
    tip.className = "tip";
    tip.setAttribute("role", "status");
    tip.hidden = true;
    canvas.append(tip);
    canvas.classList.add("live");
    const shown = () => [...canvas.querySelectorAll("svg")].find((svg) => svg.getClientRects().length);
    const home = new Map();
    for (const svg of canvas.querySelectorAll("svg")) {
      home.set(svg, { x: numbers(svg.dataset.x), y: numbers(svg.dataset.y) });
    }
    let view = null; // the part of the axes that is shown, in the numbers of the chart
    let at = -1; // which of the stops is read

    // Where one can stop: all values of one x, or single values.
    const stops = [];
    if (told.grouped) {
      const byX = new Map();
      for (const hit of told.hits) byX.set(hit[0], [...(byX.get(hit[0]) || []), hit]);
      for (const x of [...byX.keys()].sort((a, b) => a - b)) stops.push(byX.get(x));
    } else for (const hit of told.hits) stops.push([hit]);

    const scales = (svg) => {
      const { x, y } = home.get(svg);
      const now = view || { x: x.slice(0, 2), y: y.slice(0, 2) };
      return [scale([...now.x, x[2], x[3]]), scale([...now.y, y[2], y[3]])];
    };
    const inside = (svg, hit) => {
      const [x, y] = scales(svg);
      const [px, py] = [x.to(hit[0]), y.to(hit[1])];
      const within = (p, s) => p >= Math.min(s.start, s.end) - 1 && p <= Math.max(s.start, s.end) + 1;
      return within(px, x) && (told.grouped || within(py, y));
    };

    const clear = () => {
      tip.hidden = true;
      canvas.querySelectorAll(".cross, .ring").forEach((e) => e.remove());
    };
    const show = (k) => {
      clear();
      at = k;
      const svg = shown();
      if (!svg || k < 0 || k >= stops.length) return;
      const [x, y] = scales(svg);
      const stop = stops[k];
      const px = x.to(stop[0][0]);
      if (told.grouped) make("line", { x1: px, x2: px, y1: y.start, y2: y.end, class: "cross" }, svg);
      for (const hit of stop) if (inside(svg, hit)) make("circle", { cx: px, cy: y.to(hit[1]), r: 6, class: "ring" }, svg);
      tip.textContent = "";
      if (told.grouped && told.axis) {
        const head = document.createElement("b");
        const named = (told.names || {})[stop[0][0]];
        head.textContent = named || `${told.axis} ${Number(stop[0][0].toPrecision(6)).toLocaleString("en")}`;
        tip.append(head);
      }
      for (const hit of stop.slice(0, 14)) {
        const line = document.createElement("span");
        line.textContent = hit[3];
        tip.append(line);
      }
      tip.hidden = false;
      const box = svg.getBoundingClientRect();
      const ratio = box.width / svg.viewBox.baseVal.width;
      const left = px * ratio;
      const top = Math.min(...stop.map((hit) => y.to(hit[1]))) * ratio;
      const width = tip.offsetWidth;
      tip.style.left = `${Math.max(0, Math.min(left + 14 + width > box.width ? left - width - 14 : left + 14, box.width - width))}px`;
      tip.style.top = `${Math.max(0, top - tip.offsetHeight - 8)}px`;
    };

    const place = (event) => {
      const svg = shown();
      const box = svg.getBoundingClientRect();
      const ratio = svg.viewBox.baseVal.width / box.width;
      return [svg, (event.clientX - box.left) * ratio, (event.clientY - box.top) * ratio];
    };
    const nearest = (event) => {
      const [svg, px, py] = place(event);
      const [x, y] = scales(svg);
      let best = -1;
      let least = Infinity;
      stops.forEach((stop, k) => {
        for (const hit of stop) {
          if (!inside(svg, hit)) continue;
          const dx = x.to(hit[0]) - px;
          // In rows the row counts, however far the value is along it.
          const dy = told.grouped ? 0 : (y.to(hit[1]) - py) * 4;
          const far = dx * dx + dy * dy;
          if (far < least) [least, best] = [far, k];
        }
      });
      return best;
    };

    // Zoom: every mark is moved from where it was drawn to where it belongs now.
    const original = new Map();
    const remember = (element, name) => {
      if (!original.has(element)) original.set(element, {});
      const kept = original.get(element);
      if (!(name in kept)) kept[name] = element.getAttribute(name);
      return kept[name];
    };
    const redraw = (svg) => {
      const kept = home.get(svg);
      const [nx, ny] = scales(svg);
      const [ox, oy] = [scale(kept.x), scale(kept.y)];
      const mx = (p) => nx.to(ox.from(p)).toFixed(1);
      const my = (p) => ny.to(oy.from(p)).toFixed(1);
      for (const e of svg.querySelectorAll(".marks *")) {
        if (e.tagName === "line") {
          for (const name of ["x1", "x2"]) e.setAttribute(name, mx(+remember(e, name)));
          if (told.zoom.includes("y")) for (const name of ["y1", "y2"]) e.setAttribute(name, my(+remember(e, name)));
        } else if (e.hasAttribute("points")) {
          const whole = e.classList.contains("flat");
          e.setAttribute("points", remember(e, "points").split(" ").map((pair) => {
            const [x, y] = pair.split(",").map(Number);
            return `${whole ? x : mx(x)},${my(y)}`;
          }).join(" "));
        } else if (e.tagName === "rect") {
          const [left, wide] = ["x", "width"].map((name) => +remember(e, name));
          const [from, to] = [+mx(left), +mx(left + wide)];
          e.setAttribute("x", from);
          e.setAttribute("width", Math.max(0, to - from).toFixed(1));
        } else if (e.hasAttribute("transform")) {
          const [x, y] = remember(e, "transform").match(/-?[\d.]+/g).map(Number);
          e.setAttribute("transform", `translate(${mx(x)} ${my(y)})`);
        }
      }
      if (told.zoom.includes("x")) axis(svg, "gx", nx, ox, true);
      if (told.zoom.includes("y")) axis(svg, "gy", ny, oy, false);
    };
    const axis = (svg, group, now, first, across) => {
      const g = svg.querySelector(`.${group}`);
      if (!g.dataset.home) g.dataset.home = g.innerHTML;
      g.innerHTML = g.dataset.home;
      if (now.low === first.low && now.high === first.high) return;
      const [line, text] = [g.querySelector("line"), g.querySelector("text")];
      if (!line || !text) return;
      const percent = text.textContent.endsWith("%");
      const factor = percent ? 100 : 1;
      const room = Math.abs(now.end - now.start) / (across ? 60 : 42);
      const [values, digits] = ticks(now.low * factor, now.high * factor, Math.max(2, room), across && told.grouped && told.whole);
      g.textContent = "";
      for (const value of values) {
        const p = now.to(value / factor);
        const [l, t] = [line.cloneNode(), text.cloneNode()];
        if (across) { l.setAttribute("x1", p); l.setAttribute("x2", p); t.setAttribute("x", p); }
        else { l.setAttribute("y1", p); l.setAttribute("y2", p); t.setAttribute("y", p + 4); }
        t.textContent = value.toLocaleString("en", { minimumFractionDigits: digits, maximumFractionDigits: digits }) + (percent ? "%" : "");
        g.append(l, t);
      }
    };
    const look = (next) => {
      view = next;
      clear();
      for (const svg of home.keys()) redraw(svg);
      tools.reset.disabled = !view;
    };
    const whole = () => {
      const { x, y } = home.get(shown());
      return { x: x.slice(0, 2), y: y.slice(0, 2) };
    };
    const zoom = (factor) => {
      const now = view || whole();
      const outer = whole();
      const centre = at >= 0 ? stops[at][0] : [(now.x[0] + now.x[1]) / 2, (now.y[0] + now.y[1]) / 2];
      const next = { x: [...now.x], y: [...now.y] };
      for (const [name, c] of [["x", centre[0]], ["y", centre[1]]]) {
        if (!told.zoom.includes(name)) continue;
        const [low, high] = now[name];
        next[name] = [c - (c - low) * factor, c + (high - c) * factor];
      }
      const grown = ["x", "y"].every((n) => Math.abs(next[n][1] - next[n][0]) >= Math.abs(outer[n][1] - outer[n][0]) * 0.999);
      look(grown ? null : next);
    };

    const box = figure.querySelector(".tools");
    const tools = {};
    const button = (name, sign, label, act) => {
      const made = document.createElement("button");
      made.type = "button";
      made.textContent = sign;
      made.title = label;
      made.setAttribute("aria-label", `${label}: ${figure.querySelector(".head strong").textContent}`);
      made.addEventListener("click", act);
      box.append(made);
      tools[name] = made;
    };
    if (told.zoom) {
      button("nearer", "+", "Zoom in", () => zoom(0.6));
      button("farther", "−", "Zoom out", () => zoom(1 / 0.6));
    }
    button("reset", "↺", "Show everything", () => look(null));
    tools.reset.disabled = true;
    tools.reset.hidden = !told.zoom;
    button("enlarge", "⤢", "Enlarge", () => enlarge());
    box.classList.add("live");

    const enlarge = () => {
      if (figure.closest("dialog")) return figure.closest("dialog").close();
      const dialog = document.createElement("dialog");
      const anchor = document.createComment("");
      figure.before(anchor);
      (figure.closest(".uk") || document.body).append(dialog);
      dialog.append(figure);
      dialog.addEventListener("close", () => { anchor.replaceWith(figure); dialog.remove(); clear(); tools.enlarge.focus(); });
      clear();
      dialog.showModal();
    };

    let from = null;
    canvas.addEventListener("pointerdown", (event) => {
      if (event.button || !told.zoom || event.pointerType === "touch") return;
      const [svg, px, py] = place(event);
      from = { svg, px, py, pick: null };
      canvas.setPointerCapture(event.pointerId);
    });
    canvas.addEventListener("pointermove", (event) => {
      if (!from) return show(nearest(event));
      const [svg, px, py] = place(event);
      if (Math.abs(px - from.px) < 6 && Math.abs(py - from.py) < 6) return;
      clear();
      const [x, y] = scales(svg);
      const both = told.zoom.includes("y");
      if (!from.pick) from.pick = make("rect", { class: "pick" }, svg);
      const set = (name, value) => from.pick.setAttribute(name, value);
      set("x", Math.min(px, from.px)); set("width", Math.abs(px - from.px));
      set("y", both ? Math.min(py, from.py) : Math.min(y.start, y.end));
      set("height", both ? Math.abs(py - from.py) : Math.abs(y.end - y.start));
    });
    canvas.addEventListener("pointerup", (event) => {
      const begun = from;
      from = null;
      if (!begun || !begun.pick) return;
      begun.pick.remove();
      const [svg, px, py] = place(event);
      const [x, y] = scales(svg);
      const sorted = (a, b) => (a < b ? [a, b] : [b, a]);
      const now = view || whole();
      const next = { x: now.x, y: now.y };
      if (Math.abs(px - begun.px) > 12 && told.zoom.includes("x")) next.x = sorted(x.from(begun.px), x.from(px));
      if (Math.abs(py - begun.py) > 12 && told.zoom.includes("y")) next.y = sorted(y.from(begun.py), y.from(py));
      if (next.x !== now.x || next.y !== now.y) look(next);
    });
    canvas.addEventListener("pointerleave", () => { if (!from) clear(); });
    canvas.addEventListener("dblclick", () => look(null));
    canvas.addEventListener("blur", clear);
    canvas.addEventListener("keydown", (event) => {
      if (event.altKey || event.ctrlKey || event.metaKey) return;
      const step = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1 }[event.key];
      if (step) {
        const svg = shown();
        let next = at < 0 ? (step > 0 ? 0 : stops.length - 1) : at + step;
        while (next >= 0 && next < stops.length && !stops[next].some((hit) => inside(svg, hit))) next += step;
        if (next >= 0 && next < stops.length) show(next);
      } else if (event.key === "Home") show(0);
      else if (event.key === "End") show(stops.length - 1);
      else if (event.key === "Escape" && !tip.hidden) { clear(); event.stopPropagation(); }
      else if ((event.key === "+" || event.key === "=") && told.zoom) zoom(0.6);
      else if (event.key === "-" && told.zoom) zoom(1 / 0.6);
      else if (event.key === "0") look(null);
      else return;
      event.preventDefault();
    });
  };
  document.querySelectorAll("figure.uk-chart").forEach(start);
})();
