// The timeline: its part of the log, the cursor, and what mouse and fingers do.
import { Colours, FONT, Surface, disc, oncePerFrame } from "../common/canvas.js";
import { watchGestures } from "../common/gestures.js";
import { clock } from "../common/words.js";
import { byId } from "./dom.js";
import { Frame } from "./frame.js";
import { drawTimeline, speedY } from "./timelinedrawing.js";
import { describe, describeGap } from "./why.js";

const SHORTEST = 4000; // the least time that is shown, in milliseconds

export class Timeline {
  #log;
  #state;
  #scale;
  #tip;
  #navigation;
  #box = byId("timeline");
  #canvas = this.#box.querySelector(".base");
  #base = new Surface(this.#canvas);
  #over = new Surface(this.#box.querySelector(".over"));
  #colours = new Colours();
  /** The part of the scale that is shown. */
  #start = 0;
  #end;
  /** What is drawn. */
  #frame;
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
    this.#frame = this.#frameOf(this.#base);
    this.#listen();
    new ResizeObserver(() => this.#drawSoon()).observe(this.#box);
    state.on(["isUTC", "isDark", "variant", "unit"], () => this.#drawSoon());
    state.on(["cursor", "leg", "range"], () => this.#drawOverSoon());
  }

  // The part that is shown.

  /** In milliseconds. */
  get from() { return this.#frame.from; }
  get to() { return this.#frame.to; }

  visibleRows() {
    return this.#frame.visibleRows();
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
    const { from, to, showsAll } = this.#frame;
    this.#scale.shorten(isShortened);
    if (showsAll) this.showAll();
    else this.showTimes(from, to);
  }

  /** Tips lie over the map, so that they cover neither the timeline nor the line above it. */
  get #tipTop() { return byId("readout").getBoundingClientRect().top + 8; }

  /** The place of the tip of a decision in pixels of the window. */
  placeOf(decision) {
    return [this.#box.getBoundingClientRect().left + this.#frame.x(decision.time), this.#tipTop];
  }

  #show(start, end) {
    const width = Math.max(SHORTEST, Math.min(this.#scale.whole, end - start));
    this.#start = Math.max(0, Math.min(this.#scale.whole - width, (start + end - width) / 2));
    this.#end = this.#start + width;
    this.#frame = this.#frameOf(this.#base);
    this.#drawSoon();
  }

  // Drawing.

  drawNow() {
    this.#colours.forget();
    for (const surface of [this.#base, this.#over]) surface.fit(this.#box.clientWidth, this.#box.clientHeight);
    if (!this.#base.width || !this.#base.height) return;
    this.#frame = this.#frameOf(this.#base);
    drawTimeline(this.#base, this.#frame, this.#log, this.#state.variant, this.#colours);
    this.#drawOver();
  }

  /** The whole log as an image for paper, whatever part is shown. */
  picture(width, height) {
    const surface = Surface.hidden(width, height);
    const frame = new Frame(this.#log, this.#scale, 0, this.#scale.whole, surface, this.#state.variant > 0);
    this.#colours.forget();
    drawTimeline(surface, frame, this.#log, this.#state.variant, this.#colours);
    this.#colours.forget();
    return surface.image();
  }

  #frameOf(size) {
    return new Frame(this.#log, this.#scale, this.#start, this.#end, size, this.#state.variant > 0);
  }

  // What moves with the cursor.

  #drawOver() {
    const canvas = this.#over.clear();
    const { leg, range, cursor } = this.#state;
    if (leg) this.#shade(canvas, this.#frame.x(leg.from), this.#frame.x(leg.to), "--accent", 0.09);
    if (range) this.#shade(canvas, this.#frame.x(range.from), this.#frame.x(range.to), "--cursor", 0.12);
    if (this.#drag) this.#shade(canvas, ...this.#drag, "--accent", 0.2);
    if (cursor !== null) this.#drawCursor(canvas, cursor);
  }

  #shade(canvas, from, to, colour, alpha) {
    const [left, right] = [Math.max(this.#frame.left, Math.min(from, to)), Math.min(this.#frame.right, Math.max(from, to))];
    if (right <= left) return;
    canvas.fillStyle = this.#colours.of(colour);
    canvas.globalAlpha = alpha;
    canvas.fillRect(left, this.#frame.rows.axis.bottom, right - left, this.#frame.rows.chartsBottom - this.#frame.rows.axis.bottom);
    canvas.globalAlpha = 1;
  }

  #drawCursor(canvas, cursor) {
    const x = this.#frame.x(cursor);
    if (x < this.#frame.left - 1 || x > this.#frame.right + 1) return;
    canvas.strokeStyle = canvas.fillStyle = this.#colours.of("--cursor");
    canvas.lineWidth = 1.5;
    canvas.beginPath();
    canvas.moveTo(x, 14);
    canvas.lineTo(x, this.#frame.rows.chartsBottom);
    canvas.stroke();
    const row = this.#log.nearestRow(cursor);
    const speed = this.#log.speed(row);
    if (speed !== null && this.#log.isAdmitted(row) && !this.#log.gapAt(cursor)) {
      disc(canvas, x, speedY(this.#frame, this.#log, speed), 3.5, this.#colours.of("--cursor"));
    }
    canvas.font = `600 11px ${FONT}`;
    const text = clock(cursor);
    const width = canvas.measureText(text).width + 10;
    const left = Math.max(this.#frame.left, Math.min(this.#base.width - width - 4, x - width / 2));
    canvas.beginPath();
    canvas.roundRect(left, 0, width, 16, 4);
    canvas.fill();
    canvas.fillStyle = this.#colours.of("--case");
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
        this.#show(this.#start - right * this.#frame.perPixel, this.#end - right * this.#frame.perPixel);
        this.zoom(factor, this.#frame.timeAt(x));
      },
      turn: (factor, x, y, event) => {
        if (event.shiftKey || Math.abs(event.deltaX) > Math.abs(event.deltaY)) this.#pan((event.deltaX || event.deltaY) * this.#frame.perPixel);
        else this.zoom(factor, this.#frame.timeAt(x));
      },
    });
  }

  #pan(by) {
    this.#show(this.#start + by, this.#end + by);
  }

  #decisionAt(x, y, reach) {
    const { top, bottom } = this.#frame.rows.decisions;
    if (y < top - 3 || y >= bottom) return null;
    const distance = decision => Math.abs(this.#frame.x(decision.time) - x);
    return this.#log.decisions.filter(each => distance(each) < reach).sort((one, other) => distance(one) - distance(other))[0] ?? null;
  }

  #hover(x, y, event) {
    const decision = this.#decisionAt(x, y, 9);
    const gap = y >= this.#frame.rows.band.top && y < this.#frame.rows.decisions.top ? this.#log.gapAt(this.#frame.timeAt(x)) : null;
    if (decision) this.#tip.show(event.clientX, this.#tipTop, ...describe(decision, this.#log));
    else if (gap) this.#tip.show(event.clientX, this.#tipTop, ...describeGap(gap));
    else this.#tip.hide();
    this.#navigation.point(x < this.#frame.left ? null : decision ? decision.time : this.#frame.timeAt(x));
  }

  #press(x, y, event) {
    this.#tip.hide();
    this.#grabsOverview = y >= this.#frame.rows.overview.top - 4;
    const isDrawing = event.pointerType !== "touch" || this.measures;
    this.#drag = null;
    this.#dragStart = isDrawing && !this.#grabsOverview ? { x, isMeasured: this.measures || event.shiftKey } : null;
    if (!isDrawing && !this.#grabsOverview) this.#navigation.hold(this.#frame.timeAt(x));
  }

  #dragTo(right, x, event) {
    if (this.#grabsOverview) return this.#pan(this.#frame.overviewLength(right));
    if (!this.#dragStart) return this.#navigation.hold(this.#frame.timeAt(x));
    this.#drag = [this.#dragStart.x, x];
    this.#drawOverSoon();
  }

  #release(isDragged) {
    const drag = this.#drag;
    [this.#drag, this.#grabsOverview] = [null, false];
    this.#drawOverSoon();
    if (!isDragged || !drag) return;
    const [from, to] = drag.map(x => this.#frame.timeAt(x)).sort((one, other) => one - other);
    if (this.#dragStart.isMeasured) this.#state.set({ range: { from, to } });
    else this.showTimes(from, to);
  }

  #click(x, y) {
    if (y >= this.#frame.rows.overview.top - 4) {
      return this.#pan(this.#frame.overviewLength(x - this.#frame.left) - (this.#start + this.#end) / 2);
    }
    const decision = this.#decisionAt(x, y, 12);
    if (decision) return this.#navigation.showDecision(decision);
    const time = this.#frame.timeAt(x);
    if (y >= this.#frame.rows.band.top && y < this.#frame.rows.decisions.top && this.#log.legAt(time)) this.#navigation.focus(this.#log.legAt(time));
    else this.#navigation.hold(time);
  }
}
