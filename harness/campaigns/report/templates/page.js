"use strict";
// Opens what a link names; keys and paper. The page is whole without it.
(() => {
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
    const step = STEPS[event.key], index = cells.indexOf(document.activeElement);
    if (!step || index < 0 || event.ctrlKey || event.metaKey || event.altKey) return;
    const position = cell => [cell.closest("tr").rowIndex, cell.closest("td").cellIndex];
    const [row, column] = position(cells[index]);
    const ahead = cells.filter(cell => {
      const [r, c] = position(cell);
      return step[0] ? c === column && (r - row) * step[0] > 0 : r === row && (c - column) * step[1] > 0;
    });
    const next = step[0] + step[1] > 0 ? ahead[0] : ahead[ahead.length - 1];
    if (next) { next.focus(); event.preventDefault(); }
  });
})();
