// The timeline: states, decisions, speed, accuracy and what was kept, with the cursor, a zoom and an overview of the whole log.
import { Colours, FONT, Surface, disc, oncePerFrame, shape } from "../common/canvas.js";
import { watchGestures } from "../common/gestures.js";
import { drawDensity, drawEnvelope, envelopes } from "./charts.js";
import { byId } from "./dom.js";
import { describe, describeGap } from "./why.js";
import { clock, day, length, minutes, shortSpan, zone } from "./words.js";

const SHORTEST = 4000; // the least time that is shown, in milliseconds
const NARROW = 560;
const RIGHT = 8;
const TICKS = [
  1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 10_800, 21_600, 43_200, 86_400, 172_800, 604_800,
].map(each => each * 1000);
const SPEED_TOPS = [10, 20, 30, 50, 60, 80, 100, 120, 150, 200, 300, 400, 600, 1000];
const SPEED_UNIT = 3.6;

const TRIANGLE = [[-4, -6], [7, 0], [-4, 6]];
const SQUARE = [[-5, -5], [5, -5], [5, 5], [-5, 5]];
const DIAMOND = [[0, -6], [6, 0], [0, 6], [-6, 0]];
const GLYPHS = {
  departure: [TRIANGLE, "--moving"], stop: [SQUARE, "--ink"], firstSeen: [SQUARE, "--parked"], gap: [DIAMOND, "--gap"],
};

const topOf = value => SPEED_TOPS.find(top => value <= top) ?? Math.ceil(value / 500) * 500;

export class Timeline {
  #log;
  #state;
  #scale;
  #tip;
  #navigation;
  #box = byId("timeline");
  #canvas = this.#box.querySelector(".base");
  #base = new Surface(this.#canvas);
  #shown = this.#base;
  #over = new Surface(this.#box.querySelector(".over"));
  #colours = new Colours();
  /** The part of the scale that is shown. */
  #start = 0;
  #end;
  #rows = {};
  /** The upper end of the scale of accuracy, in metres. */
  #accuracyTop = 20;
  /** While a range is drawn: its ends in pixels. */
  #drag = null;
  /** Where it began, and whether it measures. */
  #dragStart = null;
  #grabsOverview = false;
  #drawSoon = oncePerFrame(() => this.drawNow());
  #drawOverSoon = oncePerFrame(() => this.#drawOver());
  /** Whether dragging measures a range instead of zooming into it. */
  measures = false;

  constructor(log, state, scale, tip, navigation) {
    [this.#log, this.#state, this.#scale, this.#tip, this.#navigation] = [log, state, scale, tip, navigation];
    this.#end = scale.whole;
    this.#listen();
    new ResizeObserver(() => this.#drawSoon()).observe(this.#box);
    state.on(["isUTC", "isDark", "variant"], () => this.#drawSoon());
    state.on(["cursor", "leg", "range"], () => this.#drawOverSoon());
  }

  // The part that is shown.

  /** In milliseconds. */
  get from() { return this.#scale.timeAt(this.#start); }
  get to() { return this.#scale.timeAt(this.#end); }
  get showsAll() { return this.#end - this.#start >= this.#scale.whole - 1; }

  visibleRows() {
    return [Math.max(0, this.#scale.rowFrom(this.#start) - 1), Math.min(this.#log.rows, this.#scale.rowFrom(this.#end) + 1)];
  }

  showAll() {
    this.#show(0, this.#scale.whole);
  }

  showTimes(from, to) {
    this.#show(this.#scale.lengthAt(from), this.#scale.lengthAt(to));
  }

  /** @param {number} factor above 1 shows less. @param {?number} time stays where it is; null is the middle. */
  zoom(factor, time = null) {
    const at = time === null ? (this.#start + this.#end) / 2 : this.#scale.lengthAt(time);
    this.#show(at - (at - this.#start) / factor, at + (this.#end - at) / factor);
  }

  reveal(time) {
    const at = this.#scale.lengthAt(time);
    const half = (this.#end - this.#start) / 2;
    if (at < this.#start || at > this.#end) this.#show(at - half, at + half);
  }

  shorten(isShortened) {
    const [from, to, all] = [this.from, this.to, this.showsAll];
    this.#scale.shorten(isShortened);
    if (all) this.showAll();
    else this.showTimes(from, to);
  }

  /** Tips lie over the map, so that they cover neither the timeline nor the line above it. */
  get #tipTop() { return byId("readout").getBoundingClientRect().top + 8; }

  /** The place of the tip of a decision in pixels of the window. */
  placeOf(decision) {
    return [this.#box.getBoundingClientRect().left + this.#x(decision.time), this.#tipTop];
  }

  #show(start, end) {
    const width = Math.max(SHORTEST, Math.min(this.#scale.whole, end - start));
    this.#start = Math.max(0, Math.min(this.#scale.whole - width, (start + end - width) / 2));
    this.#end = this.#start + width;
    this.#drawSoon();
  }

  // Places.

  get #left() { return this.#base.width < NARROW ? 34 : 52; }
  get #right() { return this.#base.width - RIGHT; }
  get #perPixel() { return (this.#end - this.#start) / (this.#right - this.#left); }
  #xOf(at) { return this.#left + (at - this.#start) / this.#perPixel; }
  /** The same for a row, as a function that is cheap to call. */
  #placer() {
    const [scale, start, left, factor] = [this.#scale, this.#start, this.#left, 1 / this.#perPixel];
    return row => left + (scale.lengthOfRow(row) - start) * factor;
  }
  #x(time) { return this.#xOf(this.#scale.lengthAt(time)); }
  #lengthAt(x) { return this.#start + (x - this.#left) * this.#perPixel; }
  #timeAt(x) { return Math.max(this.#log.first, Math.min(this.#log.last, this.#scale.timeAt(this.#lengthAt(x)))); }
  #overviewX(at) { return this.#left + at / this.#scale.whole * (this.#right - this.#left); }

  /** Tops and heights of the rows. */
  #layOut() {
    const rows = {};
    let top = 0;
    const add = (name, height) => {
      rows[name] = { top, height, bottom: top + height };
      top += height;
    };
    const hasVariant = this.#state.variant > 0;
    add("axis", 18);
    add("band", this.#base.height < 220 ? 20 : 24);
    add("decisions", 17);
    const rest = this.#base.height - top - 32 - (hasVariant ? 12 : 0);
    add("speed", this.#log.hasAccuracy ? Math.round(rest * 0.62) : rest);
    add("accuracy", rest - rows.speed.height);
    add("kept", 12);
    if (hasVariant) add("variant", 12);
    rows.chartsBottom = top;
    top += 4;
    add("overview", 12);
    this.#rows = rows;
  }

  // Drawing.

  drawNow() {
    this.#colours.forget();
    for (const surface of [this.#base, this.#over]) surface.fit(this.#box.clientWidth, this.#box.clientHeight);
    if (!this.#base.width || !this.#base.height) return;
    this.#drawBase();
    this.#drawOver();
  }

  /** What is shown as an image for paper. */
  picture(width, height) {
    this.#base = Surface.hidden(width, height);
    this.#colours.forget();
    this.#drawBase();
    const image = this.#base.image();
    this.#base = this.#shown;
    this.#colours.forget();
    this.#drawSoon();
    return image;
  }

  #colour(name) { return this.#colours.of(name); }

  #drawBase() {
    this.#layOut();
    this.#findAccuracyTop();
    const canvas = this.#base.begin();
    canvas.fillStyle = this.#colour("--panel");
    canvas.fillRect(0, 0, this.#base.width, this.#base.height);
    canvas.save();
    canvas.beginPath();
    canvas.rect(this.#left, 0, this.#right - this.#left, this.#base.height);
    canvas.clip();
    for (const piece of this.#scale.pieces) {
      if (piece.end < this.#start || piece.start > this.#end) continue;
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

  #drawShortened(canvas, piece) {
    const [left, right] = [this.#xOf(piece.start), this.#xOf(piece.end)];
    canvas.fillStyle = this.#colour("--soft");
    canvas.fillRect(left, this.#rows.axis.bottom, right - left, this.#rows.chartsBottom - this.#rows.axis.bottom);
    canvas.strokeStyle = this.#colour("--mute");
    canvas.lineWidth = 1;
    canvas.beginPath();
    for (let y = this.#rows.speed.top, side = 2.5; y < this.#rows.kept.top; y += 5, side = -side) canvas.lineTo((left + right) / 2 + side, y);
    canvas.stroke();
  }

  #drawTicks(canvas, piece) {
    const [isNarrow, bottom] = [this.#base.width < NARROW, this.#rows.chartsBottom];
    const wanted = this.#perPixel * (isNarrow ? 62 : 84);
    const step = TICKS.find(tick => tick >= wanted) ?? TICKS.at(-1);
    const offset = zone.isUTC ? 0 : new Date(piece.from).getTimezoneOffset() * 60_000;
    const first = Math.ceil((Math.max(piece.from, this.from) - offset) / step) * step + offset;
    canvas.font = `10.5px ${FONT}`;
    canvas.textAlign = "center";
    canvas.strokeStyle = this.#colour("--grid");
    canvas.fillStyle = this.#colour("--mute");
    canvas.lineWidth = 1;
    let labelled = this.#xOf(Math.max(piece.start, this.#start)) - 30;
    for (let time = first; time <= Math.min(piece.to, this.to); time += step) {
      const x = Math.round(this.#x(time)) + 0.5;
      canvas.beginPath();
      canvas.moveTo(x, this.#rows.axis.bottom);
      canvas.lineTo(x, bottom);
      canvas.stroke();
      if (x - labelled < (isNarrow ? 40 : 50) || x < this.#left + 14 || x > this.#right - 14) continue;
      labelled = x;
      canvas.fillText(step >= 86_400_000 ? day(time).slice(5) : step < 60_000 ? clock(time) : minutes(time), x, 12);
    }
    canvas.textAlign = "left";
  }

  /** A trip fills the band, parking half of it, halts are notches: height says it as well as colour. */
  #drawStates(canvas) {
    const { top, height } = this.#rows.band;
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
    for (const halt of halts) if (this.#x(halt.to) - this.#x(halt.from) > 0.7) this.#drawBar(canvas, halt, "--panel", top, height * 0.35);
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
    const [left, right] = [Math.max(this.#x(from), this.#left), Math.min(this.#x(to), this.#right)];
    if (right < this.#left || left > this.#right) return null;
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
    const [left, top, height] = [this.#x(gap.from), this.#rows.band.top, this.#rows.kept.top - this.#rows.band.top];
    const width = Math.max(2, this.#x(gap.to) - left);
    if (left + width < this.#left || left > this.#right) return;
    const [from, to] = [Math.max(left, this.#left), Math.min(left + width, this.#right)];
    canvas.save();
    canvas.beginPath();
    canvas.rect(from, top, to - from, height);
    canvas.clip();
    canvas.fillStyle = canvas.strokeStyle = this.#colour("--gap");
    canvas.globalAlpha = 0.16;
    canvas.fillRect(from, top, to - from, height);
    canvas.globalAlpha = 0.8;
    canvas.lineWidth = 1;
    canvas.beginPath();
    for (let x = from - height - from % 7; x < to; x += 7) {
      canvas.moveTo(x, top + height);
      canvas.lineTo(x + height, top);
    }
    canvas.stroke();
    canvas.restore();
  }

  /** With a dotted line to the moment when it was made. */
  #drawDecision(canvas, { kind, time, decided }) {
    const [x, y] = [this.#x(time), this.#rows.decisions.top + 8.5];
    const end = decided === undefined ? x : this.#x(decided);
    if (end < this.#left - 8 || x > this.#right + 8) return;
    if (end - x > 9) {
      canvas.strokeStyle = this.#colour("--mute");
      canvas.lineWidth = 1;
      canvas.setLineDash([2, 2]);
      canvas.beginPath();
      canvas.moveTo(Math.max(x + 6, this.#left), y);
      canvas.lineTo(Math.min(end, this.#right), y);
      canvas.stroke();
      canvas.setLineDash([]);
    }
    if (kind === "crossing") return disc(canvas, x, y, 4, this.#colour("--panel"), this.#colour("--fence"), 2.5);
    const [corners, colour] = GLYPHS[kind];
    shape(canvas, x, y, 0, corners, this.#colour(colour), this.#colour("--panel"));
  }

  #drawCharts(canvas) {
    const log = this.#log;
    const { speed, accuracy } = this.#rows;
    const speedOf = row => log.isAdmitted(row) ? log.speed(row) : null;
    this.#chart(canvas, speed, speedOf, topOf(log.speedMax * SPEED_UNIT) / SPEED_UNIT, "--speed-area", "--moving");
    const top = this.#accuracyTop;
    const accuracyOf = row => log.hasFix(row) && log.accuracy(row) !== null ? Math.min(top, log.accuracy(row)) : null;
    if (log.hasAccuracy) this.#chart(canvas, accuracy, accuracyOf, top, "--accuracy-area", "--accuracy-line");
    this.#drawRefused(canvas, (log.hasAccuracy ? accuracy : speed).top + 2);
  }

  #drawRefused(canvas, top) {
    canvas.fillStyle = this.#colour("--bad");
    const [[from, to], place] = [this.visibleRows(), this.#placer()];
    for (const row of this.#log.refused) if (row >= from && row < to) canvas.fillRect(place(row) - 0.75, top, 1.5, 9);
  }

  #findAccuracyTop() {
    const [from, to] = this.visibleRows();
    let most = 20;
    for (let row = from; row < to; row += 1) {
      const accuracy = this.#log.accuracy(row);
      if (accuracy > most && accuracy <= 100) most = accuracy;
    }
    this.#accuracyTop = topOf(most);
  }

  #chart(canvas, { top, height }, valueOf, most, fill, line) {
    const [base, unit] = [top + height - 2, (height - 6) / most];
    canvas.strokeStyle = this.#colour("--grid");
    canvas.lineWidth = 1;
    canvas.beginPath();
    canvas.moveTo(this.#left, base + 0.5);
    canvas.lineTo(this.#right, base + 0.5);
    canvas.stroke();
    for (const columns of envelopes(this.#log.time, this.#placer(), ...this.visibleRows(), valueOf)) {
      drawEnvelope(canvas, columns, base, unit, this.#colour(fill), this.#colour(line));
    }
  }

  #drawKept(canvas) {
    const [place, rows] = [this.#placer(), this.visibleRows()];
    const [event, others] = [this.#colour("--event"), { displacement: this.#colour("--displacement"), interval: this.#colour("--interval") }];
    drawDensity(canvas, this.#log.kept.rows, place, ...rows, this.#rows.kept, row => others[this.#log.verdict(row).reason] ?? event, event);
    if (!this.#rows.variant) return;
    const colour = this.#colour("--variant");
    drawDensity(canvas, this.#log.whatIf[this.#state.variant].rows, place, ...rows, this.#rows.variant, () => colour, colour);
  }

  #drawNames(canvas) {
    const { band, decisions, speed, accuracy, kept, variant } = this.#rows;
    canvas.font = `10.5px ${FONT}`;
    canvas.textAlign = "right";
    const write = (text, y, colour = "--mute") => {
      canvas.fillStyle = this.#colour(colour);
      canvas.fillText(text, this.#left - 5, y);
    };
    if (this.#base.width >= NARROW) {
      write("state", band.bottom - 7);
      write("why", decisions.top + 12);
      write("kept", kept.top + 10);
      if (variant) write("what if", variant.top + 10, "--variant");
    }
    write(String(topOf(this.#log.speedMax * SPEED_UNIT)), speed.top + 11);
    write("km/h", speed.top + speed.height / 2 + 4);
    write("0", speed.bottom - 1);
    if (this.#log.hasAccuracy) {
      write(`±${this.#accuracyTop}`, accuracy.top + 12);
      write("m", accuracy.bottom - 4);
    }
    canvas.textAlign = "left";
  }

  #drawOverview(canvas) {
    const { top, height } = this.#rows.overview;
    const bar = ({ from, to }, colour, y, high) => {
      const left = this.#overviewX(this.#scale.lengthAt(from));
      canvas.fillStyle = this.#colour(colour);
      canvas.fillRect(left, y, Math.max(1.5, this.#overviewX(this.#scale.lengthAt(to)) - left), high);
    };
    canvas.fillStyle = this.#colour("--soft");
    canvas.fillRect(this.#left, top, this.#right - this.#left, height);
    for (const stop of this.#log.stops) bar(stop, "--parked", top + height / 2, height / 2);
    this.#log.trips.forEach((trip, index) => bar(trip, `--trips/${index}`, top, height));
    for (const gap of this.#log.gaps) bar(gap, "--gap", top, 3);
    const [left, right] = [this.#overviewX(this.#start), this.#overviewX(this.#end)];
    canvas.fillStyle = this.#colour("--panel");
    canvas.globalAlpha = 0.6;
    canvas.fillRect(this.#left, top, left - this.#left, height);
    canvas.fillRect(right, top, this.#right - right, height);
    canvas.globalAlpha = 1;
    canvas.strokeStyle = this.#colour("--ink");
    canvas.lineWidth = 1.5;
    canvas.strokeRect(left, top - 1, Math.max(3, right - left), height + 2);
  }

  // What moves with the cursor.

  #drawOver() {
    if (!this.#rows.band) return;
    const canvas = this.#over.clear();
    const { leg, range, cursor } = this.#state;
    if (leg) this.#shade(canvas, this.#x(leg.from), this.#x(leg.to), "--accent", 0.09);
    if (range) this.#shade(canvas, this.#x(range.from), this.#x(range.to), "--cursor", 0.12);
    if (this.#drag) this.#shade(canvas, ...this.#drag, "--accent", 0.2);
    if (cursor !== null) this.#drawCursor(canvas, cursor);
  }

  #shade(canvas, from, to, colour, alpha) {
    const [left, right] = [Math.max(this.#left, Math.min(from, to)), Math.min(this.#right, Math.max(from, to))];
    if (right <= left) return;
    canvas.fillStyle = this.#colour(colour);
    canvas.globalAlpha = alpha;
    canvas.fillRect(left, this.#rows.axis.bottom, right - left, this.#rows.chartsBottom - this.#rows.axis.bottom);
    canvas.globalAlpha = 1;
  }

  #drawCursor(canvas, cursor) {
    const x = this.#x(cursor);
    if (x < this.#left - 1 || x > this.#right + 1) return;
    canvas.strokeStyle = canvas.fillStyle = this.#colour("--cursor");
    canvas.lineWidth = 1.5;
    canvas.beginPath();
    canvas.moveTo(x, 14);
    canvas.lineTo(x, this.#rows.chartsBottom);
    canvas.stroke();
    const row = this.#log.nearestRow(cursor);
    const [speed, { bottom, height }] = [this.#log.speed(row), this.#rows.speed];
    if (speed !== null && this.#log.isAdmitted(row) && !this.#log.gapAt(cursor)) {
      disc(canvas, x, bottom - 2 - speed * SPEED_UNIT * (height - 6) / topOf(this.#log.speedMax * SPEED_UNIT), 3.5, this.#colour("--cursor"));
    }
    canvas.font = `600 11px ${FONT}`;
    const text = clock(cursor);
    const width = canvas.measureText(text).width + 10;
    const left = Math.max(this.#left, Math.min(this.#base.width - width - 4, x - width / 2));
    canvas.beginPath();
    canvas.roundRect(left, 0, width, 16, 4);
    canvas.fill();
    canvas.fillStyle = this.#colour("--case");
    canvas.fillText(text, left + 5, 12);
  }

  // Mouse and touch.

  #listen() {
    watchGestures(this.#canvas, {
      hover: (x, y, event) => this.#hover(x, y, event),
      leave: () => this.#navigation.let(),
      press: (x, y, event) => this.#press(x, y, event),
      drag: (right, down, x, y, event) => this.#dragTo(right, x, event),
      release: (x, y, isDragged) => this.#release(isDragged),
      click: (x, y) => this.#click(x, y),
      doubleClick: () => this.#navigation.showWhole(),
      pinch: (factor, x, y, right) => {
        this.#show(this.#start - right * this.#perPixel, this.#end - right * this.#perPixel);
        this.zoom(factor, this.#timeAt(x));
      },
      turn: (factor, x, y, event) => {
        if (event.shiftKey || Math.abs(event.deltaX) > Math.abs(event.deltaY)) this.#pan((event.deltaX || event.deltaY) * this.#perPixel);
        else this.zoom(factor, this.#timeAt(x));
      },
    });
  }

  #pan(by) {
    this.#show(this.#start + by, this.#end + by);
  }

  #decisionAt(x, y, reach) {
    const { top, bottom } = this.#rows.decisions;
    if (y < top - 3 || y >= bottom) return null;
    const distance = decision => Math.abs(this.#x(decision.time) - x);
    return this.#log.decisions.filter(each => distance(each) < reach).sort((one, other) => distance(one) - distance(other))[0] ?? null;
  }

  #hover(x, y, event) {
    const decision = this.#decisionAt(x, y, 9);
    const gap = y >= this.#rows.band.top && y < this.#rows.decisions.top ? this.#log.gapAt(this.#timeAt(x)) : null;
    if (decision) this.#tip.show(event.clientX, this.#tipTop, ...describe(decision, this.#log));
    else if (gap) this.#tip.show(event.clientX, this.#tipTop, ...describeGap(gap));
    else this.#tip.hide();
    this.#navigation.point(x < this.#left ? null : decision ? decision.time : this.#timeAt(x));
  }

  #press(x, y, event) {
    this.#tip.hide();
    this.#grabsOverview = y >= this.#rows.overview.top - 4;
    const isDrawing = event.pointerType !== "touch" || this.measures;
    this.#drag = null;
    this.#dragStart = isDrawing && !this.#grabsOverview ? { x, isMeasured: this.measures || event.shiftKey } : null;
    if (!isDrawing && !this.#grabsOverview) this.#navigation.hold(this.#timeAt(x));
  }

  #dragTo(right, x, event) {
    if (this.#grabsOverview) return this.#pan(right / (this.#right - this.#left) * this.#scale.whole);
    if (!this.#dragStart) return this.#navigation.hold(this.#timeAt(x));
    this.#drag = [this.#dragStart.x, x];
    this.#drawOverSoon();
  }

  #release(isDragged) {
    const drag = this.#drag;
    [this.#drag, this.#grabsOverview] = [null, false];
    this.#drawOverSoon();
    if (!isDragged || !drag) return;
    const [from, to] = drag.map(x => this.#timeAt(x)).sort((one, other) => one - other);
    if (this.#dragStart.isMeasured) this.#state.set({ range: { from, to } });
    else this.showTimes(from, to);
  }

  #click(x, y) {
    if (y >= this.#rows.overview.top - 4) {
      const at = (x - this.#left) / (this.#right - this.#left) * this.#scale.whole;
      return this.#pan(at - (this.#start + this.#end) / 2);
    }
    const decision = this.#decisionAt(x, y, 12);
    if (decision) return this.#navigation.showDecision(decision);
    const time = this.#timeAt(x);
    if (y >= this.#rows.band.top && y < this.#rows.decisions.top && this.#log.legAt(time)) this.#navigation.focus(this.#log.legAt(time));
    else this.#navigation.hold(time);
  }
}
