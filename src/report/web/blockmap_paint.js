/*
 * blockmap_paint.js - blocks as cells of a canvas: each state by its shape and by its colour.
 *
 * Shapes alone tell the states apart, down to cells of a few pixels: a free block is an outline, with
 * a dot when its content is cached, with a stroke when it lies in too short a run; a block of one request
 * is filled as far as it is stored; a shared one has a hole, with its reference count where there is
 * room; what a run reserves is barred, what it will never use is crossed. Colours say whose it is.
 */
"use strict";

const blockmapPaint = (() => {
  const F = blockmapFrames;
  const HUES = [250, 50, 155, 350, 300, 105, 210, 25, 80, 325, 130, 275];   /* of oklch */
  const LABEL_FROM = 13;      /* pixels of a cell from which on it has room for a letter */

  /* As the page is now, light or dark. */
  function inksOf(element) {
    const style = getComputedStyle(element);
    const read = (name) => style.getPropertyValue("--map-" + name).trim();
    return {outline: read("outline"), dot: read("dot"), paper: read("paper"), text: read("text"),
            mark: read("mark"), light: read("light"), letter: read("letter")};
  }

  /* Neighbours in the alphabet are far apart in hue; -1 is nobody's. */
  function colourOf(inks, letter) {
    return letter < 0 || letter === 65535 ? inks.dot
      : `oklch(${inks.light} 0.115 ${HUES[letter % HUES.length]})`;
  }

  function outline(c, x, y, s, ink) {
    c.strokeStyle = ink;
    c.lineWidth = 1;
    c.strokeRect(x + 0.5, y + 0.5, s - 1, s - 1);
  }

  function stroke(c, ink, width, ...points) {
    c.strokeStyle = ink;
    c.lineWidth = width;
    c.beginPath();
    for (let i = 0; i < points.length; i += 4) {
      c.moveTo(points[i], points[i + 1]);
      c.lineTo(points[i + 2], points[i + 3]);
    }
    c.stroke();
  }

  /* halo: what is behind it where that is not of one colour */
  function write(c, x, y, s, text, ink, halo) {
    c.font = `600 ${Math.min(14, Math.round(s * (text.length > 1 ? 0.5 : 0.66)))}px system-ui, sans-serif`;
    c.textAlign = "center";
    c.textBaseline = "middle";
    if (halo) {
      c.strokeStyle = halo;
      c.lineWidth = 3;
      c.lineJoin = "round";
      c.strokeText(text, x + s / 2, y + s / 2 + 0.5);
    }
    c.fillStyle = ink;
    c.fillText(text, x + s / 2, y + s / 2 + 0.5);
  }

  const painters = {
    [F.FREE](c, x, y, s, cell, inks) {
      outline(c, x, y, s, inks.outline);
    },
    [F.CACHED](c, x, y, s, cell, inks) {
      if (s >= 8)
        outline(c, x, y, s, inks.outline);
      const d = Math.max(2, Math.round(s * 0.4));
      c.fillStyle = inks.dot;
      c.fillRect(x + Math.floor((s - d) / 2), y + Math.floor((s - d) / 2), d, d);
    },
    [F.EXTERNAL](c, x, y, s, cell, inks) {
      outline(c, x, y, s, inks.outline);
      stroke(c, inks.dot, 1, x + 1, y + s - 1, x + s - 1, y + 1);
    },
    [F.OWN](c, x, y, s, cell, inks) {
      const height = Math.max(2, Math.round(s * cell.filled));
      c.fillStyle = cell.colour;
      c.fillRect(x, y + s - height, s, height);
      if (height < s)
        outline(c, x, y, s, cell.colour);
      if (s >= LABEL_FROM)
        write(c, x, y, s, cell.label, cell.filled > 0.9 ? inks.letter : inks.text,
              cell.filled > 0.9 ? null : inks.paper);
    },
    [F.SHARED](c, x, y, s, cell, inks) {
      c.fillStyle = cell.colour;
      c.fillRect(x, y, s, s);
      const hole = s >= LABEL_FROM ? Math.round(s * 0.66) : Math.max(1, Math.floor(s / 2.4));
      c.fillStyle = inks.paper;
      c.fillRect(x + Math.floor((s - hole) / 2), y + Math.floor((s - hole) / 2), hole, hole);
      if (s >= LABEL_FROM)
        write(c, x, y, s - 1, cell.refs > 99 ? "+" : String(cell.refs), inks.text);
    },
    [F.RESERVED](c, x, y, s, cell) {
      outline(c, x, y, s, cell.colour);
      const bars = s >= LABEL_FROM ? 3 : 1, width = Math.max(1, Math.round(s / 9));
      for (let i = 1; i <= bars; i++) {
        const at = y + Math.round(s * i / (bars + 1));
        stroke(c, cell.colour, width, x + 1, at, x + s - 1, at);
      }
    },
    [F.UNUSED](c, x, y, s, cell) {
      outline(c, x, y, s, cell.colour);
      const width = Math.max(1, Math.round(s / 11));
      stroke(c, cell.colour, width, x + 1, y + 1, x + s - 1, y + s - 1, x + s - 1, y + 1, x + 1, y + s - 1);
    },
    [F.LINK](c, x, y, s, cell, inks) {
      outline(c, x, y, s, inks.outline);
      c.fillStyle = inks.dot;
      c.beginPath();
      c.moveTo(x + 1, y + 1);
      c.lineTo(x + s - 1, y + s / 2);
      c.lineTo(x + 1, y + s - 1);
      c.fill();
    },
  };

  /* One block: cell has state, colour, label, refs, filled. */
  function block(c, x, y, s, cell, inks) {
    painters[cell.state](c, x, y, s, cell, inks);
  }

  /* Several: filled from below as far as they are held, barred where nothing is stored yet, the shared
   * of them with a bright middle; above these, dotted, as far as the free ones are cached. */
  function several(c, x, y, s, cell, inks) {
    outline(c, x, y, s, inks.outline);
    const held = Math.round(s * cell.used / cell.blocks);
    const idle = Math.round(s * (cell.reserved + cell.unused) / cell.blocks);
    const cached = Math.round(s * cell.cached / cell.blocks);
    c.fillStyle = inks.mark;
    c.fillRect(x, y + s - held, s, held - idle);
    for (let i = 0; i < idle; i += 2)
      c.fillRect(x, y + s - held + i, s, 1);
    if (cell.shared > 0) {
      c.fillStyle = inks.paper;
      const hole = Math.max(1, Math.round((held - idle) * cell.shared / Math.max(1, cell.used)));
      c.fillRect(x + Math.floor(s / 3), y + s - hole, Math.max(1, Math.floor(s / 3)), hole);
    }
    c.fillStyle = inks.dot;
    for (let i = 0; i < cached; i += 2)
      c.fillRect(x + Math.floor(s / 2), y + s - held - 1 - i, 1, 1);
  }

  return {inksOf, colourOf, block, several};
})();
