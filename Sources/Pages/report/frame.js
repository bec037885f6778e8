// The geometry of the timeline: which part of the scale it shows, in which size, and where that and its rows lie. Nothing here draws.

const NARROW = 560;
const RIGHT = 8;

/** A part of the scale in a rectangle of some size. It never changes: another part is another frame. */
export class Frame {
  #log;
  #scale;

  /**
   * @param {TimeScale} scale @param {number} start @param {number} end of the part, in lengths of the scale.
   * @param {object} size `width` and `height` in pixels. @param {boolean} hasVariant whether there is a row for another setting.
   */
  constructor(log, scale, start, end, { width, height }, hasVariant) {
    [this.#log, this.#scale] = [log, scale];
    Object.assign(this, { start, end, width, height });
    this.isNarrow = width < NARROW;
    this.left = this.isNarrow ? 34 : 52;
    this.right = width - RIGHT;
    this.perPixel = (end - start) / (this.right - this.left);
    this.rows = rowsOf(height, log, hasVariant);
  }

  /** In milliseconds. */
  get from() { return this.#scale.timeAt(this.start); }
  get to() { return this.#scale.timeAt(this.end); }
  get showsAll() { return this.end - this.start >= this.#scale.whole - 1; }
  /** The pieces of the scale that are in it. */
  get pieces() { return this.#scale.pieces.filter(piece => piece.end >= this.start && piece.start <= this.end); }

  xOf(length) { return this.left + (length - this.start) / this.perPixel; }
  x(time) { return this.xOf(this.#scale.lengthAt(time)); }

  /** The same for a row, as a function that is cheap to call. */
  placer() {
    const [scale, start, left, factor] = [this.#scale, this.start, this.left, 1 / this.perPixel];
    return row => left + (scale.lengthOfRow(row) - start) * factor;
  }

  timeAt(x) {
    const time = this.#scale.timeAt(this.start + (x - this.left) * this.perPixel);
    return Math.max(this.#log.first, Math.min(this.#log.last, time));
  }

  /** Where lengths and times lie in the overview, which shows the whole scale. */
  overviewXOf(length) { return this.left + length / this.#scale.whole * (this.right - this.left); }
  overviewX(time) { return this.overviewXOf(this.#scale.lengthAt(time)); }
  /** The length that a distance in the overview stands for. */
  overviewLength(pixels) { return pixels / (this.right - this.left) * this.#scale.whole; }

  visibleRows() {
    return [Math.max(0, this.#scale.rowFrom(this.start) - 1), Math.min(this.#log.rows, this.#scale.rowFrom(this.end) + 1)];
  }
}

/** Tops and heights of the rows. */
function rowsOf(height, { hasAccuracy, hasAltitude }, hasVariant) {
  const rows = {};
  let top = 0;
  const add = (name, high) => {
    rows[name] = { top, height: high, bottom: top + high };
    top += high;
  };
  add("axis", 18);
  add("band", height < 220 ? 20 : 24);
  add("decisions", 17);
  const rest = height - top - 32 - (hasVariant ? 12 : 0);
  const parts = 0.62 + (hasAccuracy ? 0.38 : 0) + (hasAltitude ? 0.38 : 0);
  const part = Math.round(rest * 0.38 / parts);
  add("speed", rest - (hasAccuracy ? part : 0) - (hasAltitude ? part : 0));
  add("accuracy", hasAccuracy ? part : 0);
  add("altitude", hasAltitude ? part : 0);
  add("kept", 12);
  if (hasVariant) add("variant", 12);
  rows.chartsBottom = top;
  top += 4;
  add("overview", 12);
  return rows;
}
