"use strict";
// Draws charts where they are shown, in the page's colours and width; opens what a link names; keys and paper.
(() => {
  // Pixels of a panel at least, and of a letter; letters of a label at least; milliseconds.
  const LEAST = 200, LETTER = 6.2, LETTERS = 6, WAIT = 150;
  const charts = new Map();
  const night = matchMedia("(prefers-color-scheme: dark)");

  function colour(name) {
    const probe = document.body.appendChild(document.createElement("i"));
    probe.style.color = `var(--${name})`;
    const found = getComputedStyle(probe).color;
    probe.remove();
    return found;
  }

  function theme() {
    const axis = {labelColor: colour("soft"), titleColor: colour("soft"), gridColor: colour("line"),
      domainColor: colour("line"), tickColor: colour("line")};
    return {background: "transparent", font: "system-ui, sans-serif", view: {stroke: colour("line")}, axis,
      legend: {labelColor: colour("ink"), titleColor: colour("soft")}, header: {labelColor: colour("ink")}};
  }

  function coloured(text) {
    return text.replace(/"@(\w+)"/g, (_, name) => JSON.stringify(colour(name)));
  }

  function cut(label, letters) {
    if (label.length <= letters) return label;
    return letters < LETTERS ? "" : label.slice(0, Math.floor(letters) - 1) + "…";
  }

  // A specification says for how wide a page it was drawn; on a narrow one panels shrink, and worlds stand in rows.
  function fitted(drawing, room) {
    const facet = drawing.facet;
    const worlds = facet ? new Set(Object.values(drawing.datasets)[0].map(row => row.world)).size : 1;
    const narrow = room < 700;
    if (facet && narrow) drawing.facet = {row: {...facet.column, header: {...facet.column.header, labelOrient: "top"}}};
    const beside = facet ? (narrow ? room * 0.4 : Math.min(430, room * 0.36)) : (narrow ? 130 : 270);
    const most = Math.max(LEAST, Math.floor((room - beside) / (facet && !narrow ? worlds : 1)) - 16);
    const walk = part => {
      if (part === null || typeof part !== "object") return;
      if (typeof part.width === "number") part.width = Math.min(part.width, most);
      if (typeof part.labelLimit === "number") part.labelLimit = Math.min(part.labelLimit, beside - 10);
      Object.entries(part).forEach(([name, inner]) => { if (name !== "datasets") walk(inner); });
    };
    walk(drawing);
    if (drawing.datasets.bars) {
      const value = name => drawing.params.find(one => one.name === name).value;
      const px = drawing.vconcat[0].width / (value("end_s") - value("begin_s"));
      drawing.datasets.bars.forEach(bar => { bar.label = cut(bar.label, ((bar.end - bar.begin) * px - 8) / LETTER); });
    }
    return drawing;
  }

  function draw(element) {
    const room = document.querySelector("main").clientWidth - (element.closest("details") ? 100 : 60);
    const {own, view} = charts.get(element);
    const shared = JSON.parse(coloured(document.getElementById("template-" + own.template).textContent));
    const data = JSON.parse(coloured(JSON.stringify({params: own.params, datasets: own.datasets})));
    if (view) view.finalize();
    const options = {actions: false, renderer: "svg", ast: true, config: theme()};
    return vegaEmbed(element, fitted({...shared, ...data}, room), options).then(result => {
      charts.set(element, {own, view: result});
      element.dataset.drawn = night.matches ? "night" : "day";
    });
  }

  const shown = element => { const folded = element.closest("details"); return !folded || folded.open; };
  const isDrawn = element => charts.get(element).view;
  const again = () => charts.forEach((_, element) => { if (isDrawn(element)) draw(element); });

  document.querySelectorAll(".chart").forEach(element => {
    charts.set(element, {own: JSON.parse(element.querySelector("script").textContent)});
    if (shown(element)) draw(element);
    else element.closest("details").addEventListener("toggle", () => { if (!isDrawn(element)) draw(element); });
  });
  // Paper does not wait: the others are drawn when there is nothing else to do.
  const idle = window.requestIdleCallback || (work => setTimeout(work, WAIT));
  const rest = [...charts.keys()];
  idle(function next() {
    const element = rest.find(one => !isDrawn(one));
    if (element) draw(element).finally(() => { rest.splice(rest.indexOf(element), 1); idle(next); });
  });
  night.addEventListener("change", again);
  let width = innerWidth, later;
  addEventListener("resize", () => {
    clearTimeout(later);
    later = setTimeout(() => { if (Math.abs(innerWidth - width) > 40) { width = innerWidth; again(); } }, WAIT);
  });
  addEventListener("beforeprint", () => document.querySelectorAll("details").forEach(folded => { folded.open = true; }));

  // --- from the matrix to a cell and back ---
  const cells = [...document.querySelectorAll(".matrix a")];
  let last = null;
  function follow() {
    const target = location.hash && document.getElementById(decodeURIComponent(location.hash.slice(1)));
    if (!target) return;
    if (target.tagName === "DETAILS") {
      target.open = true;
      last = document.getElementById("at-" + target.id);
    }
    (target.querySelector("summary") || target).focus({preventScroll: true});
    target.scrollIntoView({block: target.tagName === "A" ? "center" : "start"});
  }
  addEventListener("hashchange", follow);
  follow();
  const STEPS = {ArrowLeft: [0, -1], ArrowRight: [0, 1], ArrowUp: [-1, 0], ArrowDown: [1, 0]};
  document.addEventListener("keydown", event => {
    if (event.key === "Escape" && last) location.hash = last.id;
    const step = STEPS[event.key], at = cells.indexOf(document.activeElement);
    if (!step || at < 0 || event.ctrlKey || event.metaKey || event.altKey) return;
    const place = cell => [cell.closest("tr").rowIndex, cell.closest("td").cellIndex];
    const [row, column] = place(cells[at]);
    const ahead = cells.filter(cell => {
      const [r, c] = place(cell);
      return step[0] ? c === column && (r - row) * step[0] > 0 : r === row && (c - column) * step[1] > 0;
    });
    const next = step[0] + step[1] > 0 ? ahead[0] : ahead[ahead.length - 1];
    if (next) { next.focus(); event.preventDefault(); }
  });
})();
