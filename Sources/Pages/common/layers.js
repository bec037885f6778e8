// What a map can show. A layer is plain data; nothing here knows what it means.
import { FONT, disc, haloText, isInside, roundBox, shape, traceCross } from "./canvas.js";
import { metresPerWorld, nearX, worldX, worldY } from "./projection.js";

/**
 * Draws one layer. `points` are `Points` of projection.js, or anything else with `length`, `x(index)` and `y(index)`. Colours are
 * variables of the style sheet ("--gap"), places in one that is a list ("--trips/3"), or CSS colours. All measures are CSS pixels
 * unless they are metres.
 *
 * - `line`: `points`, `colour`; optional `from`, `to` (indices, `to` excluded), `width`, `cased` (on a line of the colour of
 *   the ground, unless false), `dash`, `alpha`, `arrows` (direction of
 *   travel), `breaks` (a Set of indices before which nothing was travelled: drawn as a gap), `hidden` (a Set of those of them where nothing is drawn), `bands` ({ of: index →
 *   number of a colour, colours: […] }) for a line whose colour changes.
 * - `dots`: `points`, `colour`; optional `from`, `to`, `radius`, `cross` (a cross each, for what was refused), `cased`,
 *   `only` (index → whether it is drawn), `most` (none is drawn if more would be seen). None that is `cased` is drawn either
 *   where they would hide their own line.
 * - `circle`: `latitude`, `longitude`, `metres`, `colour`; optional `outlined`, `label`.
 * - `area`: `points` of its edge, `colour`; optional `label` near its highest point, which is left out where there is no room.
 * - `position`: `latitude`, `longitude`, `colour`; optional `course` in degrees (an arrow, else a disc), `outlined`, `label`, which is left
 *   out where there is no room, `edge` (if it is out of sight, an arrow at the edge points to it).
 * - `badges`: `items` ({ latitude, longitude, weight }, heavier ones first in place), `sign` (one letter), `text` (items → text):
 *   a badge each, and one for those that would lie on one another. They keep clear of one another.
 * - `numbers`: `points`, `items` ({ from, to, text, colour }): a number on each part of a line where there is room for it.
 */
export function drawLayer(canvas, layer, view) {
  canvas.save();
  canvas.globalAlpha = layer.alpha ?? 1;
  DRAWINGS[layer.kind](canvas, layer, view);
  canvas.restore();
}

const DRAWINGS = {
  line: drawLine, dots: drawDots, circle: drawCircle, area: drawArea, position: drawPosition, badges: drawBadges,
  numbers: drawNumbers,
};
const ARROW = [[7, 0], [-4, -5], [-2, 0], [-4, 5]];
const NEEDLE = [[0, -13], [9, 10], [0, 5], [-9, 10]];

function drawLine(canvas, layer, view) {
  const { points, from = 0, to = points.length, width = 3, cased = true, breaks, hidden } = layer;
  canvas.lineJoin = canvas.lineCap = "round";
  if (cased) stroke(canvas, "--case", width + 2.5, view, () => tracePath(canvas, points, from, to, breaks, view));
  canvas.setLineDash(layer.dash ?? []);
  if (layer.bands) {
    strokeBands(canvas, layer, from, to, width, view);
  } else {
    stroke(canvas, layer.colour, width, view, () => tracePath(canvas, points, from, to, breaks, view));
  }
  canvas.setLineDash([3, 6]);
  if (breaks) stroke(canvas, "--gap", 2, view, () => traceGaps(canvas, points, from, to, breaks, hidden, view));
  canvas.setLineDash([]);
  if (layer.arrows) drawArrows(canvas, points, from, to, breaks, layer.colour, view);
}

function stroke(canvas, colour, width, view, trace) {
  canvas.strokeStyle = view.colour(colour);
  canvas.lineWidth = width;
  canvas.beginPath();
  trace();
  canvas.stroke();
}

// The loops over all points of a track make no objects and call little: they run at each frame of a zoom.

/** Leaves out what falls on the same pixel or lies outside, and strokes long paths in parts: canvases are slow with one long path. */
function tracePath(canvas, points, from, to, breaks, view) {
  const margin = 40;
  const { scale, left, top } = view;
  const right = view.width + margin;
  const bottom = view.height + margin;
  const breaksAt = breaks?.size ? breaks : null;
  let isDown = false;
  let lastX = NaN;
  let lastY = NaN;
  let lastOutside = 0;
  let steps = 0;
  for (let index = from; index < to; index += 1) {
    const x = points.x(index) * scale + left;
    const y = points.y(index) * scale + top;
    const outside = (x < -margin) | (x > right) << 1 | (y < -margin) << 2 | (y > bottom) << 3;
    if (breaksAt?.has(index)) isDown = false;
    // A step between two points beyond the same edge cannot be seen.
    if (isDown && !(outside & lastOutside)) {
      if (Math.abs(x - lastX) < 0.6 && Math.abs(y - lastY) < 0.6) continue;
      if (steps === 0) canvas.moveTo(lastX, lastY);
      canvas.lineTo(x, y);
      steps += 1;
      if (steps === 2000) {
        canvas.stroke();
        canvas.beginPath();
        steps = 0;
      }
    } else {
      steps = 0;
      // A single point between two gaps is a dot of the line.
      if (!outside && !isDown && (index + 1 === to || breaksAt?.has(index + 1))) {
        canvas.moveTo(x, y);
        canvas.lineTo(x, y);
      }
    }
    isDown = true;
    lastX = x;
    lastY = y;
    lastOutside = outside;
  }
}

function traceGaps(canvas, points, from, to, breaks, hidden, view) {
  for (const index of breaks) {
    if (index <= from || index >= to || hidden?.has(index)) continue;
    canvas.moveTo(view.x(points.x(index - 1)), view.y(points.y(index - 1)));
    canvas.lineTo(view.x(points.x(index)), view.y(points.y(index)));
  }
}

function strokeBands(canvas, layer, from, to, width, view) {
  const { points, breaks, bands } = layer;
  const { scale, left, top } = view;
  const paths = [];
  let lastX = NaN;
  let lastY = NaN;
  for (let index = from; index < to; index += 1) {
    const x = points.x(index) * scale + left;
    const y = points.y(index) * scale + top;
    if (index > from && !breaks?.has(index)) {
      if (Math.abs(x - lastX) < 0.8 && Math.abs(y - lastY) < 0.8) continue;
      const path = paths[bands.of(index)] ??= new Path2D();
      path.moveTo(lastX, lastY);
      path.lineTo(x, y);
    }
    lastX = x;
    lastY = y;
  }
  canvas.lineWidth = width;
  paths.forEach((path, band) => {
    canvas.strokeStyle = view.colour(bands.colours[band] ?? layer.colour);
    canvas.stroke(path);
  });
}

function drawArrows(canvas, points, from, to, breaks, colour, view) {
  const every = 140;
  const { scale, left, top } = view;
  const fill = view.colour(colour);
  const edge = view.colour("--case");
  let travelled = every / 2;
  let lastX = NaN;
  let lastY = NaN;
  for (let index = from; index < to; index += 1) {
    const x = points.x(index) * scale + left;
    const y = points.y(index) * scale + top;
    const step = Math.sqrt((x - lastX) ** 2 + (y - lastY) ** 2);
    if (index > from && !breaks?.has(index)) {
      if (step < 6) continue;
      travelled += step;
      if (travelled > every && isInside(x, y, view)) {
        travelled = 0;
        shape(canvas, (x + lastX) / 2, (y + lastY) / 2, Math.atan2(y - lastY, x - lastX), ARROW, fill, edge, 1.2);
      }
    }
    lastX = x;
    lastY = y;
  }
}

let pixels = new Uint8Array(0);

/** At most one dot a pixel, so that the work is bounded by the screen. */
function drawDots(canvas, layer, view) {
  const { points, from = 0, to = points.length, radius = 1.5, cross, cased, only, most = Infinity } = layer;
  const { scale, left, top, width, height } = view;
  const isPlain = !cross && !cased;
  if (pixels.length < width * height) pixels = new Uint8Array(width * height);
  else pixels.fill(0);
  const seen = [];
  canvas.fillStyle = canvas.strokeStyle = view.colour(layer.colour);
  for (let index = from; index < to; index += 1) {
    const x = points.x(index) * scale + left;
    const y = points.y(index) * scale + top;
    if (!(x >= 0 && y >= 0 && x < width && y < height)) continue;
    const pixel = (y | 0) * width + (x | 0);
    if (pixels[pixel] || (only && !only(index))) continue;
    pixels[pixel] = 1;
    if (isPlain) canvas.fillRect(x - radius, y - radius, 2 * radius, 2 * radius);
    else if (seen.push(x, y) > 2 * most) return;
  }
  if (isPlain || !seen.length || (cased && isCrowded(seen, 2 * radius + 2))) return;
  canvas.lineWidth = cross ? 1.5 : 1;
  canvas.beginPath();
  for (let at = 0; at < seen.length; at += 2) {
    const [x, y] = [seen[at], seen[at + 1]];
    if (cross) {
      traceCross(canvas, x, y, 3);
    } else {
      canvas.moveTo(x + radius, y);
      canvas.arc(x, y, radius, 0, 7);
    }
  }
  if (cased) {
    canvas.fill();
    canvas.strokeStyle = view.colour("--case");
  }
  canvas.stroke();
}

/** Whether most of the places (x, y, x, y, …) are nearer to the one before than this: dots would hide their own line. */
function isCrowded(places, distance) {
  let near = 0;
  for (let at = 2; at < places.length; at += 2) {
    if (Math.abs(places[at] - places[at - 2]) + Math.abs(places[at + 1] - places[at - 1]) < distance) near += 1;
  }
  return near > places.length / 4;
}

function place(item, view) {
  return [view.x(nearX(worldX(item.longitude), view.centreX)), view.y(worldY(item.latitude))];
}

function drawCircle(canvas, layer, view) {
  const [x, y] = place(layer, view);
  const radius = Math.max(4, layer.metres / metresPerWorld(worldY(layer.latitude)) * view.scale);
  canvas.beginPath();
  canvas.arc(x, y, radius, 0, 7);
  fillArea(canvas, layer, view, layer.outlined);
  if (layer.label) labelOf(canvas, layer.label, x, y - radius, y + radius, view);
}

function drawArea(canvas, layer, view) {
  const { points } = layer;
  canvas.beginPath();
  for (let index = 0; index < points.length; index += 1) canvas.lineTo(view.x(points.x(index)), view.y(points.y(index)));
  canvas.closePath();
  fillArea(canvas, layer, view, true);
  if (!layer.label || !points.length) return;
  const ys = Array.from({ length: points.length }, (_, index) => view.y(points.y(index)));
  const top = ys.indexOf(Math.min(...ys));
  labelOf(canvas, layer.label, view.x(points.x(top)), ys[top], Math.max(...ys), view);
}

/** Above, below or beside an area, where neither another label nor a control is; left out where there is no room. */
function labelOf(canvas, text, x, top, bottom, view) {
  const label = shortened(text);
  canvas.font = LABEL_FONT;
  const width = canvas.measureText(label).width;
  const spots = [[0, -10], [0, bottom - top + 10], [width / 2 + 12, -10], [-width / 2 - 12, -10]];
  const spot = view.freeSpot(x, top, spots, width, 18);
  if (spot) labelBeside(canvas, label, spot[0], spot[1] + 4, view);
}

function fillArea(canvas, layer, view, isOutlined) {
  const alpha = canvas.globalAlpha;
  canvas.fillStyle = canvas.strokeStyle = view.colour(layer.colour);
  canvas.globalAlpha = alpha * (isOutlined ? 0.08 : 0.15);
  canvas.fill();
  canvas.globalAlpha = alpha;
  if (!isOutlined) return;
  canvas.lineWidth = 1.5;
  canvas.setLineDash([6, 4]);
  canvas.stroke();
}

const LABEL_FONT = `600 12px ${FONT}`;
const LABEL_LENGTH_MAX = 40;

const shortened = text => text.length > LABEL_LENGTH_MAX ? `${text.slice(0, LABEL_LENGTH_MAX - 1)}…` : text;

function labelBeside(canvas, text, x, y, view) {
  canvas.font = LABEL_FONT;
  canvas.textAlign = "center";
  haloText(canvas, text, x, y, view.colour("--ink"), view.colour("--map"));
}

function drawPosition(canvas, layer, view) {
  const [x, y] = place(layer, view);
  const [fill, edge] = [layer.outlined ? "--panel" : layer.colour, layer.outlined ? layer.colour : "--case"].map(view.colour);
  if (layer.edge && !isInside(x, y, view)) return drawEdgeArrow(canvas, x, y, view, fill, edge);
  if (layer.course != null) shape(canvas, x, y, layer.course * Math.PI / 180, NEEDLE, fill, edge, 2.5);
  else disc(canvas, x, y, 8, fill, edge, 2.5);
  if (!layer.label) return;
  // What is drawn later keeps clear of it.
  view.freeSpot(x, y, [[0, 0]], 20, 20);
  canvas.font = LABEL_FONT;
  const label = shortened(layer.label);
  const width = canvas.measureText(label).width;
  const spots = [[16 + width / 2, 0], [-16 - width / 2, 0], [0, -26], [0, 26]];
  const spot = view.freeSpot(x, y, spots, width, 18);
  if (spot) labelBeside(canvas, label, spot[0], spot[1] + 4, view);
}

function drawEdgeArrow(canvas, x, y, view, fill, edge) {
  const [middleX, middleY, inset] = [view.width / 2, view.height / 2, 26];
  const [right, down] = [x - middleX, y - middleY];
  const part = Math.min((middleX - inset) / Math.abs(right || 1e-9), (middleY - inset) / Math.abs(down || 1e-9));
  shape(canvas, middleX + right * part, middleY + down * part, Math.atan2(down, right) + Math.PI / 2, NEEDLE, fill, edge, 2);
}

/** Where no spot is free, a disc alone. @returns {object} the rectangle that it covers. */
function drawBadge(canvas, x, y, sign, text, view) {
  canvas.font = LABEL_FONT;
  const [signWidth, height] = [20, 20];
  const width = signWidth + (text ? canvas.measureText(text).width + 12 : 0);
  const [right, down] = [width / 2 + 12, 22];
  const spots = [[0, -22], [0, 22], [right, 0], [-right, 0], [right, -down], [-right, -down], [right, down], [-right, down], [0, -44], [0, 44]];
  const spot = view.freeSpot(x, y, spots, width, height);
  if (!spot) {
    disc(canvas, x, y, 6, view.colour("--ink"), view.colour("--panel"));
    return { left: x - 8, right: x + 8, top: y - 8, bottom: y + 8 };
  }
  const [centreX, centreY] = spot;
  const [left, top] = [centreX - width / 2, centreY - height / 2];
  const [ink, panel] = [view.colour("--ink"), view.colour("--panel")];
  canvas.strokeStyle = ink;
  canvas.lineWidth = 1;
  canvas.beginPath();
  canvas.moveTo(x, y);
  canvas.lineTo(centreX, centreY);
  canvas.stroke();
  roundBox(canvas, left, top, width, height, 6, panel, ink);
  roundBox(canvas, left, top, signWidth, height, text ? [6, 0, 0, 6] : 6, ink, ink);
  canvas.textBaseline = "middle";
  canvas.textAlign = "center";
  canvas.fillStyle = panel;
  canvas.fillText(sign, left + signWidth / 2, centreY + 0.5);
  canvas.fillStyle = view.colour("--ink");
  if (text) canvas.fillText(text, left + (signWidth + width) / 2, centreY + 0.5);
  disc(canvas, x, y, 4, ink, panel);
  return { left, right: left + width, top, bottom: top + height };
}

function drawBadges(canvas, layer, view) {
  for (const { x, y, items } of gather(layer.items, view)) {
    view.badges.push({ items, ...drawBadge(canvas, x, y, layer.sign, layer.text(items), view) });
  }
}

/** Items that would lie on one another become one group at the place of the heaviest. */
function gather(items, view) {
  const groups = [];
  for (const item of [...items].sort((one, other) => other.weight - one.weight)) {
    const [x, y] = place(item, view);
    const group = groups.find(each => Math.abs(each.x - x) < 46 && Math.abs(each.y - y) < 24);
    if (group) group.items.push(item);
    else if (isInside(x, y, view, 10)) groups.push({ x, y, items: [item] });
  }
  return groups;
}

/** Away from the ends, and where its neighbours leave room; else it is left out. */
function drawNumbers(canvas, layer, view) {
  const { points, items } = layer;
  canvas.font = LABEL_FONT;
  canvas.textAlign = "center";
  canvas.textBaseline = "middle";
  for (const { from, to, text, colour } of items) {
    if (to <= from) continue;
    for (const part of [0.5, 0.35, 0.65, 0.22, 0.78, 0.12, 0.88]) {
      const index = from + Math.floor((to - 1 - from) * part);
      const [x, y] = [view.x(points.x(index)), view.y(points.y(index))];
      if (!isInside(x, y, view) || !view.freeSpot(x, y, [[0, 0]], 22, 22)) continue;
      disc(canvas, x, y, 10, view.colour(colour), view.colour("--case"), 2);
      canvas.fillStyle = view.colour("--case");
      canvas.fillText(text, x, y + 0.5);
      break;
    }
  }
}
