// Many values in few pixels: charts as envelopes, and ticks as a density.
import { lowerBound } from "./data.js";

const HOLE = 30_000; // milliseconds without a value that interrupt a chart

/**
 * Least, mean and greatest value of each half pixel, so that no peak is lost however much time a pixel holds.
 * @param {function} place row → pixels. @param {function} valueOf row → value or null.
 * @returns {object[][]} columns { x, low, high, sum, count } in runs without a hole.
 */
export function envelopes(time, place, from, to, valueOf) {
  const runs = [];
  let column = null;
  let last = -Infinity;
  for (let row = from; row < to; row += 1) {
    const value = valueOf(row);
    if (value === null) continue;
    const x = Math.round(place(row) * 2) / 2;
    const isApart = time[row] - last > HOLE;
    if (isApart) runs.push([]);
    if (isApart || column.x !== x) runs.at(-1).push(column = { x, low: value, high: value, sum: 0, count: 0 });
    if (value < column.low) column.low = value;
    if (value > column.high) column.high = value;
    column.sum += value;
    column.count += 1;
    last = time[row];
  }
  return runs;
}

/** The mean as a line over an area, and where values spread a stroke from the least to the greatest. */
export function drawEnvelope(canvas, columns, base, unit, fill, line) {
  const path = new Path2D();
  const spread = new Path2D();
  for (const { x, low, high, sum, count } of columns) {
    path.lineTo(x, base - sum / count * unit);
    if ((high - low) * unit <= 1.2) continue;
    spread.moveTo(x, base - high * unit);
    spread.lineTo(x, base - low * unit);
  }
  const area = new Path2D(path);
  area.lineTo(columns.at(-1).x, base);
  area.lineTo(columns[0].x, base);
  canvas.fillStyle = fill;
  canvas.fill(area);
  canvas.strokeStyle = line;
  canvas.lineJoin = "round";
  canvas.lineWidth = 1;
  canvas.globalAlpha = 0.38;
  canvas.stroke(spread);
  canvas.globalAlpha = 1;
  canvas.lineWidth = 1.3;
  canvas.stroke(path);
}

/**
 * A tick for each pixel that has some of `rows`, the stronger the more there are.
 * @param {function} colourOf row → colour. @param {string} strongest colour that outshines all others of its pixel.
 */
export function drawDensity(canvas, rows, place, from, to, { top, height }, colourOf, strongest) {
  const columns = new Map();
  let most = 1;
  for (let index = lowerBound(rows, from); index < rows.length && rows[index] < to; index += 1) {
    const x = Math.floor(place(rows[index]));
    const colour = colourOf(rows[index]);
    const column = columns.get(x);
    if (!column) columns.set(x, { count: 1, colour });
    else if (++column.count > most) most = column.count;
    if (column && colour === strongest) column.colour = colour;
  }
  for (const [x, { count, colour }] of columns) {
    canvas.globalAlpha = most > 1 ? 0.35 + 0.65 * Math.sqrt(count / most) : 1;
    canvas.fillStyle = colour;
    canvas.fillRect(x, top + 1, 1, height - 2);
  }
  canvas.globalAlpha = 1;
}
