(() => {
  "use strict";
  // Measures of a page that a test reads. Colours are [red, green, blue, alpha].
  const shown = element => element.checkVisibility({ checkOpacity: true, checkVisibilityCSS: true });
  const named = element => `${element.tagName.toLowerCase()}.${element.className.baseVal ?? element.className}`;
  const paper = document.createElement("canvas").getContext("2d", { willReadFrequently: true });

  // Any notation of CSS, by painting a pixel with it.
  const known = new Map();
  const colour = words => {
    if (!known.has(words)) {
      paper.clearRect(0, 0, 1, 1);
      paper.fillStyle = words;
      paper.fillRect(0, 0, 1, 1);
      const [red, green, blue, alpha] = paper.getImageData(0, 0, 1, 1).data;
      known.set(words, [red, green, blue, alpha / 255]);
    }
    return known.get(words);
  };
  const over = (front, alpha, behind) => behind.map((part, n) => front[n] * alpha + part * (1 - alpha));
  const opacity = element => element ? Number(getComputedStyle(element).opacity) * opacity(element.parentElement) : 1;

  const painted = element => {
    const style = getComputedStyle(element);
    const drawn = element instanceof SVGGeometryElement;
    const words = drawn ? style.fill : style.backgroundColor;
    if (words === "none" || words.startsWith("url")) return [0, 0, 0, 0];
    const [red, green, blue, alpha] = colour(words);
    return [red, green, blue, alpha * opacity(element) * (drawn ? Number(style.fillOpacity) : 1)];
  };

  // What an element stands on: the grounds of those around it, and of shapes that were drawn before it where it is.
  const grounds = new Map();
  const ground = element => {
    if (!element) return [255, 255, 255];
    if (!grounds.has(element)) {
      const paint = element instanceof SVGElement ? [0, 0, 0, 0] : painted(element);
      grounds.set(element, over(paint, paint[3], ground(element.parentElement)));
    }
    return grounds.get(element);
  };
  const shapes = new Map();
  const behind = (element, x, y) => {
    const drawing = element.closest("svg");
    if (!drawing) return ground(element);
    if (!shapes.has(drawing)) {
      shapes.set(drawing, [...drawing.querySelectorAll("rect, circle, path")].map(
        shape => ({ shape, box: shape.getBoundingClientRect(), paint: painted(shape) })).filter(each => each.paint[3] > 0));
    }
    const under = shapes.get(drawing).filter(({ shape, box }) =>
      x > box.left && x < box.right && y > box.top && y < box.bottom
      && shape.compareDocumentPosition(element) & Node.DOCUMENT_POSITION_FOLLOWING);
    return under.reduce((so_far, { paint }) => over(paint, paint[3], so_far), ground(drawing));
  };

  const light = parts => {
    const [red, green, blue] = parts.map(part => part / 255).map(
      part => part <= 0.04045 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4);
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue;
  };
  const contrast = (front, ground) => {
    const [low, high] = [light(front), light(ground)].sort((one, other) => one - other);
    return (high + 0.05) / (low + 0.05);
  };

  const words = function* () {
    const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
    while (walker.nextNode()) {
      const node = walker.currentNode;
      const parent = node.parentElement;
      if (!node.data.trim() || parent.closest("script, style, title") || !shown(parent)) continue;
      const range = document.createRange();
      range.selectNodeContents(node);
      for (const box of range.getClientRects()) {
        if (box.width > 1 && box.height > 1) { yield { node, parent, box }; break; }
      }
    }
  };

  return {
    // Every text with the contrast to what is behind its middle.
    texts() {
      const found = [];
      for (const { node, parent, box } of words()) {
        const style = getComputedStyle(parent);
        const halo = parent instanceof SVGElement && style.paintOrder.startsWith("stroke") && style.stroke !== "none";
        const under = halo ? colour(style.stroke).slice(0, 3) : behind(parent, box.x + box.width / 2, box.y + box.height / 2);
        const front = colour(parent instanceof SVGElement ? style.fill : style.color);
        const seen = over(front, front[3] * opacity(parent), under);
        found.push({ text: node.data.trim().slice(0, 60), of: named(parent), contrast: contrast(seen, under) });
      }
      return found;
    },
    // What is wider than its box and neither can be scrolled nor hints at it.
    cut() {
      return [...document.querySelectorAll("main *, body > *")].filter(shown)
        .filter(element => !(element instanceof SVGElement) && element.scrollWidth > element.clientWidth + 1)
        .filter(element => !["inline", "table", "table-row", "table-row-group"].includes(getComputedStyle(element).display))
        .filter(element => {
          const style = getComputedStyle(element);
          const scrolls = style.overflowX === "auto" || style.overflowX === "scroll";
          // Shadows at the ends that content covers, or words before a table whose cells would cover them.
          const hints = style.backgroundAttachment.includes("local")
            || (element.previousElementSibling?.matches(".sideways") && shown(element.previousElementSibling));
          return !(scrolls && hints);
        }).map(element => `${named(element)}: ${element.scrollWidth} in ${element.clientWidth}`);
    },
    // Values of cards under another word than the heading of their column.
    mislabelled() {
      return [...document.querySelectorAll(".cards tbody td:not([colspan])")].filter(shown).filter(value => {
        const heading = value.closest("table").rows[0].cells[value.cellIndex].textContent;
        return getComputedStyle(value, "::before").content !== JSON.stringify(heading);
      }).map(value => value.textContent);
    },
    // What ends beyond the paper.
    beyond(width) {
      return [...document.querySelectorAll("main *, body > *")].filter(shown)
        .filter(element => element.getBoundingClientRect().right > width + 1).map(named);
    },
    // Words that are broken into parts, but for those of commands and settings.
    broken() {
      const parts = [];
      for (const { node, parent } of words()) {
        if (parent.closest("pre, code")) continue;
        for (const { index, 0: word } of node.data.matchAll(/[A-Za-z0-9]{3,15}/g)) {
          const range = document.createRange();
          range.setStart(node, index);
          range.setEnd(node, index + word.length);
          const lines = new Set([...range.getClientRects()].map(box => Math.round(box.top)));
          if (lines.size > 1 && /^[\s(/+,=.-][\s,;:)/+=.-]$/.test((node.data[index - 1] ?? " ") + (node.data[index + word.length] ?? " "))) parts.push(word);
        }
      }
      return parts;
    },
  };
})()
