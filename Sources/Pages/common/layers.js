// What a map can draw. A layer is an object with `kind` and what that kind needs; the functions here draw it on a canvas
// through a `view`, which says where a place of the world is on the screen.
import { metresPerWorld, nearX, worldX, worldY } from "./projection.js";

const FONT = "system-ui, \"DejaVu Sans\", sans-serif";

/**
 * Draws a layer. Colours are names of CSS variables ("--gap"), places in one that is a list ("--trips/3"), or CSS colours. All
 * measures are CSS pixels unless they are metres.
 *
 * - `line`: `points`, `colour`; optional `from`, `to` (indices, `to` excluded), `width`, `dash`, `alpha`, `arrows` (direction of
 *   travel), `breaks` (a Set of indices before which nothing was travelled: drawn as a gap), `bands` ({ of: index → number of a
 *   colour, colours: […] }) for a line whose colour changes.
 * - `dots`: `points`, `colour`; optional `from`, `to`, `radius`, `cross` (a cross each, for what was refused), `cased`,
 *   `only` (index → whether it is drawn).
 * - `circle`: `latitude`, `longitude`, `metres`, `colour`; optional `outlined`, `label`.
 * - `area`: `points` of its edge, `colour`; optional `label` at its first point.
 * - `position`: `latitude`, `longitude`, `colour`; optional `course` in degrees (an arrow, else a disc), `label`.
 * - `badge`: `latitude`, `longitude`, `sign` (one letter), `text`; optional `colour`. Badges keep clear of one another.
 */
export function drawLayer(canvas, layer, view) {
  canvas.save();
  canvas.globalAlpha = layer.alpha ?? 1;
  DRAWINGS[layer.kind](canvas, layer, view);
  canvas.restore();
}

/** A text that stays readable on anything. */
export function haloText(canvas, text, x, y, view) {
  canvas.lineJoin = "round";
  canvas.lineWidth = 4;
  canvas.strokeStyle = view.colour("--map");
  canvas.strokeText(text, x, y);
  canvas.fillStyle = view.colour("--ink");
  canvas.fillText(text, x, y);
}

const DRAWINGS = { line: drawLine, dots: drawDots, circle: drawCircle, area: drawArea, position: drawPosition, badge: drawBadge };

function drawLine(canvas, layer, view) {
  const { points, from = 0, to = points.length, width = 3, breaks } = layer;
  canvas.lineJoin = canvas.lineCap = "round";
  canvas.setLineDash([]);
  stroke(canvas, "--case", width + 2.5, view, () => tracePath(canvas, points, from, to, breaks, view));
  canvas.setLineDash(layer.dash ?? []);
  if (layer.bands) {
    strokeBands(canvas, layer, from, to, width, view);
  } else {
    stroke(canvas, layer.colour, width, view, () => tracePath(canvas, points, from, to, breaks, view));
  }
  canvas.setLineDash([3, 6]);
  if (breaks) stroke(canvas, "--gap", 2, view, () => traceGaps(canvas, points, from, to, breaks, view));
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

/** Leaves out what falls on the same pixel or lies outside, and strokes long paths in parts: canvases are slow with one long path. */
function tracePath(canvas, points, from, to, breaks, view) {
  const margin = 40;
  let isDown = false;
  let [lastX, lastY, lastOutside, steps] = [NaN, NaN, 0, 0];
  for (let index = from; index < to; index += 1) {
    const [x, y] = [view.x(points.x(index)), view.y(points.y(index))];
    const outside = (x < -margin) | (x > view.width + margin) << 1 | (y < -margin) << 2 | (y > view.height + margin) << 3;
    if (breaks?.has(index)) isDown = false;
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
      if (!outside && !isDown && (index + 1 === to || breaks?.has(index + 1))) {
        canvas.moveTo(x, y);
        canvas.lineTo(x, y);
      }
    }
    isDown = true;
    [lastX, lastY, lastOutside] = [x, y, outside];
  }
}

function traceGaps(canvas, points, from, to, breaks, view) {
  for (const index of breaks) {
    if (index <= from || index >= to) continue;
    canvas.moveTo(view.x(points.x(index - 1)), view.y(points.y(index - 1)));
    canvas.lineTo(view.x(points.x(index)), view.y(points.y(index)));
  }
}

function strokeBands(canvas, layer, from, to, width, view) {
  const { points, breaks, bands } = layer;
  const paths = new Map();
  let [lastX, lastY] = [NaN, NaN];
  for (let index = from; index < to; index += 1) {
    const [x, y] = [view.x(points.x(index)), view.y(points.y(index))];
    if (index > from && !breaks?.has(index)) {
      if (Math.abs(x - lastX) < 0.8 && Math.abs(y - lastY) < 0.8) continue;
      const band = bands.of(index);
      if (!paths.has(band)) paths.set(band, new Path2D());
      paths.get(band).moveTo(lastX, lastY);
      paths.get(band).lineTo(x, y);
    }
    [lastX, lastY] = [x, y];
  }
  canvas.lineWidth = width;
  for (const [band, path] of paths) {
    canvas.strokeStyle = view.colour(bands.colours[band] ?? layer.colour);
    canvas.stroke(path);
  }
}

function drawArrows(canvas, points, from, to, breaks, colour, view) {
  const every = 140;
  let travelled = every / 2;
  let [lastX, lastY] = [NaN, NaN];
  canvas.fillStyle = view.colour(colour);
  canvas.strokeStyle = view.colour("--case");
  canvas.lineWidth = 1.2;
  for (let index = from; index < to; index += 1) {
    const [x, y] = [view.x(points.x(index)), view.y(points.y(index))];
    const step = Math.hypot(x - lastX, y - lastY);
    if (index > from && !breaks?.has(index)) {
      if (step < 6) continue;
      travelled += step;
      const isSeen = x > 0 && y > 0 && x < view.width && y < view.height;
      if (travelled > every && isSeen) {
        travelled = 0;
        shape(canvas, (x + lastX) / 2, (y + lastY) / 2, Math.atan2(y - lastY, x - lastX), [[7, 0], [-4, -5], [-2, 0], [-4, 5]]);
      }
    }
    [lastX, lastY] = [x, y];
  }
}

function shape(canvas, x, y, turn, corners) {
  canvas.save();
  canvas.translate(x, y);
  canvas.rotate(turn);
  canvas.beginPath();
  for (const [right, down] of corners) canvas.lineTo(right, down);
  canvas.closePath();
  canvas.fill();
  canvas.stroke();
  canvas.restore();
}

/** At most one dot a pixel, so that the work is bounded by the screen. */
function drawDots(canvas, layer, view) {
  const { points, from = 0, to = points.length, radius = 1.5, cross, cased, only } = layer;
  const taken = new Uint8Array((view.width + 1) * (view.height + 1));
  canvas.fillStyle = canvas.strokeStyle = view.colour(layer.colour);
  canvas.lineWidth = cross ? 1.5 : 1;
  canvas.beginPath();
  for (let index = from; index < to; index += 1) {
    const [x, y] = [view.x(points.x(index)), view.y(points.y(index))];
    if (x < 0 || y < 0 || x > view.width || y > view.height || (only && !only(index))) continue;
    const pixel = Math.floor(y) * (view.width + 1) + Math.floor(x);
    if (taken[pixel]) continue;
    taken[pixel] = 1;
    if (cross) {
      canvas.moveTo(x - 3, y - 3);
      canvas.lineTo(x + 3, y + 3);
      canvas.moveTo(x + 3, y - 3);
      canvas.lineTo(x - 3, y + 3);
    } else if (cased) {
      canvas.moveTo(x + radius, y);
      canvas.arc(x, y, radius, 0, 7);
    } else {
      canvas.fillRect(x - radius, y - radius, 2 * radius, 2 * radius);
    }
  }
  if (cased) {
    canvas.fill();
    canvas.strokeStyle = view.colour("--case");
  }
  if (cased || cross) canvas.stroke();
}

function place(layer, view) {
  return [view.x(nearX(worldX(layer.longitude), view.centreX)), view.y(worldY(layer.latitude))];
}

function drawCircle(canvas, layer, view) {
  const [x, y] = place(layer, view);
  const radius = Math.max(4, layer.metres / metresPerWorld(worldY(layer.latitude)) * view.scale);
  canvas.beginPath();
  canvas.arc(x, y, radius, 0, 7);
  fillArea(canvas, layer, view, layer.outlined);
  if (layer.label) labelBeside(canvas, layer.label, x, y - radius - 6, "center", view);
}

function drawArea(canvas, layer, view) {
  const { points } = layer;
  canvas.beginPath();
  for (let index = 0; index < points.length; index += 1) canvas.lineTo(view.x(points.x(index)), view.y(points.y(index)));
  canvas.closePath();
  fillArea(canvas, layer, view, true);
  if (layer.label && points.length) labelBeside(canvas, layer.label, view.x(points.x(0)), view.y(points.y(0)) - 6, "center", view);
}

function fillArea(canvas, layer, view, isOutlined) {
  const alpha = canvas.globalAlpha;
  canvas.fillStyle = canvas.strokeStyle = view.colour(layer.colour);
  canvas.globalAlpha = alpha * 0.15;
  canvas.fill();
  canvas.globalAlpha = alpha;
  if (!isOutlined) return;
  canvas.lineWidth = 1.5;
  canvas.setLineDash([6, 4]);
  canvas.stroke();
}

function labelBeside(canvas, text, x, y, align, view) {
  canvas.font = `600 12px ${FONT}`;
  canvas.textAlign = align;
  haloText(canvas, text, x, y, view);
}

function drawPosition(canvas, layer, view) {
  const [x, y] = place(layer, view);
  canvas.fillStyle = view.colour(layer.colour);
  canvas.strokeStyle = view.colour("--case");
  canvas.lineWidth = 2.5;
  if (layer.course != null) {
    shape(canvas, x, y, layer.course * Math.PI / 180, [[0, -13], [9, 10], [0, 5], [-9, 10]]);
  } else {
    canvas.beginPath();
    canvas.arc(x, y, 8, 0, 7);
    canvas.fill();
    canvas.stroke();
  }
  if (!layer.label) return;
  canvas.font = `600 12px ${FONT}`;
  const width = canvas.measureText(layer.label).width;
  const spots = [[16 + width / 2, 0], [-16 - width / 2, 0], [0, -26], [0, 26]];
  const [labelX, labelY] = view.freeSpot(x, y, spots, width, 18);
  labelBeside(canvas, layer.label, labelX, labelY + 4, "center", view);
}

function drawBadge(canvas, layer, view) {
  const [x, y] = place(layer, view);
  canvas.font = `600 12px ${FONT}`;
  const [signWidth, height] = [20, 20];
  const width = signWidth + (layer.text ? canvas.measureText(layer.text).width + 12 : 0);
  const [right, down] = [width / 2 + 12, 22];
  const spots = [[0, -22], [0, 22], [right, 0], [-right, 0], [right, -down], [-right, -down], [right, down], [-right, down], [0, -44], [0, 44]];
  const [centreX, centreY] = view.freeSpot(x, y, spots, width, height);
  const [left, top] = [centreX - width / 2, centreY - height / 2];
  const [ink, panel] = [view.colour(layer.colour ?? "--ink"), view.colour("--panel")];
  canvas.strokeStyle = ink;
  canvas.beginPath();
  canvas.moveTo(x, y);
  canvas.lineTo(centreX, centreY);
  canvas.stroke();
  box(canvas, left, top, width, height, 6, panel, ink);
  box(canvas, left, top, signWidth, height, layer.text ? [6, 0, 0, 6] : 6, ink, ink);
  canvas.textBaseline = "middle";
  canvas.textAlign = "center";
  canvas.fillStyle = panel;
  canvas.fillText(layer.sign, left + signWidth / 2, centreY + 0.5);
  canvas.fillStyle = view.colour("--ink");
  if (layer.text) canvas.fillText(layer.text, left + (signWidth + width) / 2, centreY + 0.5);
  canvas.beginPath();
  canvas.arc(x, y, 4, 0, 7);
  canvas.fillStyle = ink;
  canvas.fill();
  canvas.strokeStyle = panel;
  canvas.lineWidth = 1.5;
  canvas.stroke();
}

function box(canvas, left, top, width, height, radius, fill, edge) {
  canvas.beginPath();
  canvas.roundRect(left, top, width, height, radius);
  canvas.fillStyle = fill;
  canvas.fill();
  canvas.strokeStyle = edge;
  canvas.lineWidth = 1;
  canvas.stroke();
}
