// What the timeline shows of the log: states, decisions, speed, accuracy, what was kept, and the overview.
import { FONT, TIME_STEPS, disc, hatch, shape } from "../common/canvas.js";
import { clock, day, minutes, units, zone } from "../common/words.js";
import { drawDensity, drawEnvelope, envelopes } from "./charts.js";
import { length, shortSpan } from "./words.js";

const AXIS_TOPS = [10, 20, 30, 50, 60, 80, 100, 120, 150, 200, 300, 400, 600, 1000];
const ACCURACY_MAX = 200; // metres; the scale of accuracy has no greater top

const TRIANGLE = [[-4, -6], [7, 0], [-4, 6]];
const SQUARE = [[-5, -5], [5, -5], [5, 5], [-5, 5]];
const DIAMOND = [[0, -6], [6, 0], [0, 6], [-6, 0]];
const GLYPHS = {
  departure: [TRIANGLE, "--moving"], stop: [SQUARE, "--ink"], firstSeen: [SQUARE, "--parked"], gap: [DIAMOND, "--gap"],
  open: [SQUARE, "--panel", "--moving"],
};

const topOf = value => AXIS_TOPS.find(top => value <= top) ?? Math.ceil(value / 500) * 500;

/** The upper end of the scale of speed, in m/s. */
const speedTop = log => topOf(log.speedMax * units.chosen.perSecond) / units.chosen.perSecond;

/** The zero line of a chart in its row, and the pixels of a unit. */
const chartBase = ({ top, height }) => top + height - 2;
const chartUnit = ({ height }, most) => (height - 6) / most;

/** The height at which the chart has a speed in m/s. */
export function speedY(frame, log, speed) {
  return chartBase(frame.rows.speed) - speed * chartUnit(frame.rows.speed, speedTop(log));
}

/** @param {number} variant the other setting that is shown; 0 for none. */
export function drawTimeline(surface, frame, log, variant, colours) {
  new TimelineDrawing(frame, log, variant, colours).draw(surface.begin());
}

/** One drawing. */
class TimelineDrawing {
  #frame;
  #log;
  #variant;
  #colours;
  /** The upper end of the scale of accuracy, in metres. */
  #accuracyTop;
  /** The ends of the scale of altitude, in metres. */
  #altitudes;

  constructor(frame, log, variant, colours) {
    [this.#frame, this.#log, this.#variant, this.#colours] = [frame, log, variant, colours];
    this.#accuracyTop = this.#findAccuracyTop();
    this.#altitudes = this.#findAltitudes();
  }

  draw(canvas) {
    const frame = this.#frame;
    canvas.fillStyle = this.#colour("--panel");
    canvas.fillRect(0, 0, frame.width, frame.height);
    canvas.save();
    canvas.beginPath();
    canvas.rect(frame.left, 0, frame.right - frame.left, frame.height);
    canvas.clip();
    for (const piece of frame.pieces) {
      if (piece.isShort) this.#drawShortened(canvas, piece);
      else this.#drawTicks(canvas, piece);
    }
    this.#drawStates(canvas);
    for (const gap of this.#log.gaps) this.#drawGap(canvas, gap);
    for (const decision of this.#log.decisions) this.#drawDecision(canvas, decision);
    this.#drawCharts(canvas);
    this.#drawKept(canvas);
    canvas.restore();
    this.#drawNames(canvas);
    this.#drawOverview(canvas);
  }

  #colour(name) { return this.#colours.of(name); }

  /** Fits all but the worst fiftieth: one bad fix would flatten the others. */
  #findAccuracyTop() {
    const [from, to] = this.#frame.visibleRows();
    const counts = new Uint32Array(ACCURACY_MAX + 1);
    let rest = 0;
    for (let row = from; row < to; row += 1) {
      const accuracy = this.#log.accuracy(row);
      if (accuracy === null) continue;
      counts[Math.min(ACCURACY_MAX, Math.ceil(accuracy))] += 1;
      rest += 0.02;
    }
    let most = ACCURACY_MAX;
    while (most > 20 && (rest -= counts[most]) >= 0) most -= 1;
    return topOf(most);
  }

  /** Those of what is seen, at least 50 m apart: less is noise. */
  #findAltitudes() {
    const [from, to] = this.#frame.visibleRows();
    let [low, high] = [Infinity, -Infinity];
    for (let row = from; row < to; row += 1) {
      const altitude = this.#log.isAdmitted(row) ? this.#log.altitude(row) : null;
      if (altitude === null) continue;
      if (altitude < low) low = altitude;
      if (altitude > high) high = altitude;
    }
    if (low > high) return null;
    const missing = Math.max(0, 50 - (high - low)) / 2;
    return { low: Math.floor(low - missing), high: Math.ceil(high + missing) };
  }

  #drawShortened(canvas, piece) {
    const [left, right] = [this.#frame.xOf(piece.start), this.#frame.xOf(piece.end)];
    canvas.fillStyle = this.#colour("--soft");
    canvas.fillRect(left, this.#frame.rows.axis.bottom, right - left, this.#frame.rows.chartsBottom - this.#frame.rows.axis.bottom);
    canvas.strokeStyle = this.#colour("--mute");
    canvas.lineWidth = 1;
    canvas.beginPath();
    for (let y = this.#frame.rows.speed.top, side = 2.5; y < this.#frame.rows.kept.top; y += 5, side = -side) canvas.lineTo((left + right) / 2 + side, y);
    canvas.stroke();
  }

  #drawTicks(canvas, piece) {
    const [isNarrow, bottom] = [this.#frame.isNarrow, this.#frame.rows.chartsBottom];
    const wanted = this.#frame.perPixel * (isNarrow ? 62 : 84);
    const step = TIME_STEPS.find(tick => tick >= wanted) ?? TIME_STEPS.at(-1);
    const offset = zone.isUTC ? 0 : new Date(piece.from).getTimezoneOffset() * 60_000;
    const first = Math.ceil((Math.max(piece.from, this.#frame.from) - offset) / step) * step + offset;
    canvas.font = `10.5px ${FONT}`;
    canvas.textAlign = "center";
    canvas.strokeStyle = this.#colour("--grid");
    canvas.fillStyle = this.#colour("--mute");
    canvas.lineWidth = 1;
    let labelled = this.#frame.xOf(Math.max(piece.start, this.#frame.start)) - 30;
    for (let time = first; time <= Math.min(piece.to, this.#frame.to); time += step) {
      const x = Math.round(this.#frame.x(time)) + 0.5;
      canvas.beginPath();
      canvas.moveTo(x, this.#frame.rows.axis.bottom);
      canvas.lineTo(x, bottom);
      canvas.stroke();
      if (x - labelled < (isNarrow ? 40 : 50) || x < this.#frame.left + 14 || x > this.#frame.right - 14) continue;
      labelled = x;
      canvas.fillText(step >= 86_400_000 ? day(time).slice(5) : step < 60_000 ? clock(time) : minutes(time), x, 12);
    }
    canvas.textAlign = "left";
  }

  /** A trip fills the band, parking half of it, halts are notches: height says it as well as colour. */
  #drawStates(canvas) {
    const { top, height } = this.#frame.rows.band;
    const { stops, trips, halts } = this.#log;
    canvas.font = `600 11px ${FONT}`;
    canvas.textBaseline = "middle";
    for (const stop of stops) {
      const box = this.#drawBar(canvas, stop, "--parked", top + height * 0.4, height * 0.6);
      const time = shortSpan(stop.to - stop.from);
      if (box) this.#label(canvas, box, [`P ${time}`, time, "P"], top + height * 0.71, "#fff");
    }
    const boxes = trips.map((trip, index) => this.#drawBar(canvas, trip, `--trips/${index}`, top, height));
    canvas.globalAlpha = 0.55;
    for (const halt of halts) if (this.#frame.x(halt.to) - this.#frame.x(halt.from) > 0.7) this.#drawBar(canvas, halt, "--panel", top, height * 0.35);
    canvas.globalAlpha = 1;
    trips.forEach((trip, index) => {
      const name = `${trip.number} · ${length(trip.metres)}`;
      const texts = [`Trip ${name} · ${shortSpan(trip.to - trip.from)}`, name, String(trip.number)];
      if (boxes[index]) this.#label(canvas, boxes[index], texts, top + height * 0.67, this.#colour("--case"));
    });
    canvas.textBaseline = "alphabetic";
  }

  /** @returns {?object} where it lies; null if it is out of sight. */
  #drawBar(canvas, { from, to }, colour, top, height) {
    const [left, right] = [Math.max(this.#frame.x(from), this.#frame.left), Math.min(this.#frame.x(to), this.#frame.right)];
    if (right < this.#frame.left || left > this.#frame.right) return null;
    canvas.fillStyle = this.#colour(colour);
    canvas.fillRect(left, top, Math.max(1.5, right - left), height);
    return { left, width: right - left };
  }

  /** The first text that has room. */
  #label(canvas, { left, width }, texts, y, ink) {
    const text = texts.find(each => canvas.measureText(each).width + 6 < width);
    if (!text) return;
    canvas.fillStyle = ink;
    canvas.fillText(text, left + Math.min(5, (width - canvas.measureText(text).width) / 2), y);
  }

  #drawGap(canvas, gap) {
    const frame = this.#frame;
    const [left, top, bottom] = [frame.x(gap.from), frame.rows.band.top, frame.rows.kept.top];
    const width = Math.max(2, frame.x(gap.to) - left);
    if (left + width < frame.left || left > frame.right) return;
    const [from, to] = [Math.max(left, frame.left), Math.min(left + width, frame.right)];
    canvas.fillStyle = canvas.strokeStyle = this.#colour("--gap");
    canvas.globalAlpha = 0.16;
    canvas.fillRect(from, top, to - from, bottom - top);
    canvas.globalAlpha = 0.8;
    canvas.lineWidth = 1;
    hatch(canvas, from, top, to, bottom, 7);
    canvas.globalAlpha = 1;
  }

  /** With a dotted line to the moment when it was made. */
  #drawDecision(canvas, { kind, time, decided }) {
    const [x, y] = [this.#frame.x(time), this.#frame.rows.decisions.top + 8.5];
    const end = decided === undefined ? x : this.#frame.x(decided);
    if (end < this.#frame.left - 8 || x > this.#frame.right + 8) return;
    if (end - x > 9) {
      canvas.strokeStyle = this.#colour("--mute");
      canvas.lineWidth = 1;
      canvas.setLineDash([2, 2]);
      canvas.beginPath();
      canvas.moveTo(Math.max(x + 6, this.#frame.left), y);
      canvas.lineTo(Math.min(end, this.#frame.right), y);
      canvas.stroke();
      canvas.setLineDash([]);
    }
    if (kind === "crossing") return disc(canvas, x, y, 4, this.#colour("--panel"), this.#colour("--fence"), 2.5);
    const [corners, colour, edge = "--panel"] = GLYPHS[kind];
    shape(canvas, kind === "open" ? Math.min(x, this.#frame.right - 7) : x, y, 0, corners, this.#colour(colour), this.#colour(edge));
  }

  #drawCharts(canvas) {
    const log = this.#log;
    const { speed, accuracy } = this.#frame.rows;
    const speedOf = row => log.isAdmitted(row) ? log.speed(row) : null;
    this.#chart(canvas, speed, speedOf, speedTop(log), "--speed-area", "--moving");
    const top = this.#accuracyTop;
    const accuracyOf = row => log.hasFix(row) && log.accuracy(row) !== null ? Math.min(top, log.accuracy(row)) : null;
    if (log.hasAccuracy) this.#chart(canvas, accuracy, accuracyOf, top, "--accuracy-area", "--accuracy-line");
    if (log.hasAccuracy) this.#drawCut(canvas, top, accuracy.top);
    if (this.#altitudes) {
      const { low, high } = this.#altitudes;
      const altitudeOf = row => log.isAdmitted(row) && log.altitude(row) !== null ? log.altitude(row) - low : null;
      this.#chart(canvas, this.#frame.rows.altitude, altitudeOf, high - low, "--altitude-area", "--altitude-line");
    }
    this.#drawRefused(canvas, (log.hasAccuracy ? accuracy : speed).top + 2);
  }

  /** Marks what lies beyond the scale of accuracy. */
  #drawCut(canvas, most, y) {
    const [[from, to], place] = [this.#frame.visibleRows(), this.#frame.placer()];
    canvas.fillStyle = this.#colour("--accuracy-line");
    canvas.beginPath();
    let last = -Infinity;
    for (let row = from; row < to; row += 1) {
      if (!this.#log.hasFix(row) || !(this.#log.accuracy(row) > most)) continue;
      const x = place(row);
      if (x - last < 7) continue;
      last = x;
      canvas.moveTo(x, y - 1);
      canvas.lineTo(x + 3.5, y + 5);
      canvas.lineTo(x - 3.5, y + 5);
    }
    canvas.fill();
  }

  #drawRefused(canvas, top) {
    canvas.fillStyle = this.#colour("--bad");
    const [[from, to], place] = [this.#frame.visibleRows(), this.#frame.placer()];
    for (const row of this.#log.refused) if (row >= from && row < to) canvas.fillRect(place(row) - 0.75, top, 1.5, 9);
  }

  #chart(canvas, { top, height }, valueOf, most, fill, line) {
    const [base, unit] = [chartBase({ top, height }), chartUnit({ height }, most)];
    canvas.strokeStyle = this.#colour("--grid");
    canvas.lineWidth = 1;
    canvas.beginPath();
    canvas.moveTo(this.#frame.left, base + 0.5);
    canvas.lineTo(this.#frame.right, base + 0.5);
    canvas.stroke();
    for (const columns of envelopes(this.#log.time, this.#frame.placer(), ...this.#frame.visibleRows(), valueOf)) {
      drawEnvelope(canvas, columns, base, unit, this.#colour(fill), this.#colour(line));
    }
  }

  #drawKept(canvas) {
    const [place, rows] = [this.#frame.placer(), this.#frame.visibleRows()];
    const [event, others] = [this.#colour("--event"), { displacement: this.#colour("--displacement"), interval: this.#colour("--interval") }];
    drawDensity(canvas, this.#log.kept.rows, place, ...rows, this.#frame.rows.kept, row => others[this.#log.verdict(row).reason] ?? event, event);
    if (!this.#frame.rows.variant) return;
    const colour = this.#colour("--variant");
    drawDensity(canvas, this.#log.whatIf[this.#variant].rows, place, ...rows, this.#frame.rows.variant, () => colour, colour);
  }

  #drawNames(canvas) {
    const { band, decisions, speed, accuracy, altitude, kept, variant } = this.#frame.rows;
    canvas.font = `10.5px ${FONT}`;
    canvas.textAlign = "right";
    const write = (text, y, colour = "--mute") => {
      canvas.fillStyle = this.#colour(colour);
      canvas.fillText(text, this.#frame.left - 5, y);
    };
    if (!this.#frame.isNarrow) {
      write("state", band.bottom - 7);
      write("why", decisions.top + 12);
      write("kept", kept.top + 10);
      if (variant) write("what if", variant.top + 10, "--variant");
    }
    write(String(Math.round(speedTop(this.#log) * units.chosen.perSecond)), speed.top + 11);
    write(units.chosen.speed, speed.top + speed.height / 2 + 4);
    write("0", speed.bottom - 1);
    if (this.#log.hasAccuracy) {
      write(`±${this.#accuracyTop}`, accuracy.top + 12);
      if (accuracy.height >= 26) write("m", accuracy.bottom - 4);
    }
    if (this.#altitudes) {
      write(`${this.#altitudes.high} m`, altitude.top + 12);
      if (altitude.height >= 26) write(`${this.#altitudes.low}`, altitude.bottom - 2);
    }
    canvas.textAlign = "left";
  }

  #drawOverview(canvas) {
    const { top, height } = this.#frame.rows.overview;
    const bar = ({ from, to }, colour, y, high) => {
      const left = this.#frame.overviewX(from);
      canvas.fillStyle = this.#colour(colour);
      canvas.fillRect(left, y, Math.max(1.5, this.#frame.overviewX(to) - left), high);
    };
    canvas.fillStyle = this.#colour("--soft");
    canvas.fillRect(this.#frame.left, top, this.#frame.right - this.#frame.left, height);
    for (const stop of this.#log.stops) bar(stop, "--parked", top + height / 2, height / 2);
    this.#log.trips.forEach((trip, index) => bar(trip, `--trips/${index}`, top, height));
    for (const gap of this.#log.gaps) bar(gap, "--gap", top, 3);
    const [left, right] = [this.#frame.overviewXOf(this.#frame.start), this.#frame.overviewXOf(this.#frame.end)];
    canvas.fillStyle = this.#colour("--panel");
    canvas.globalAlpha = 0.6;
    canvas.fillRect(this.#frame.left, top, left - this.#frame.left, height);
    canvas.fillRect(right, top, this.#frame.right - right, height);
    canvas.globalAlpha = 1;
    canvas.strokeStyle = this.#colour("--ink");
    canvas.lineWidth = 1.5;
    canvas.strokeRect(left, top - 1, Math.max(3, right - left), height + 2);
  }
}
