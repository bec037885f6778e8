// Web Mercator: the world is a square whose sides are 1, with x to the east and y to the south.

/** Length of the equator in metres. */
const EQUATOR = 40075016.68;
const LATITUDE_MAX = 85.0511287;

/** @param {number} longitude in degrees. */
export function worldX(longitude) {
  return longitude / 360 + 0.5;
}

/** @param {number} latitude in degrees; beyond 85.05 it is drawn at the edge. */
export function worldY(latitude) {
  const sine = Math.sin(Math.max(-LATITUDE_MAX, Math.min(LATITUDE_MAX, latitude)) * Math.PI / 180);
  return 0.5 - Math.log((1 + sine) / (1 - sine)) / (4 * Math.PI);
}

function latitudeOf(y) {
  return Math.atan(Math.sinh(Math.PI * (1 - 2 * y))) * 180 / Math.PI;
}

/** Metres on the ground that one unit of the square measures at this y. */
export function metresPerWorld(y) {
  return EQUATOR * Math.cos(latitudeOf(y) * Math.PI / 180);
}

/** The x that shows the same place and is nearest to another x. */
export function nearX(x, other) {
  return x - Math.round(x - other);
}

/** Positions in order, projected once. A track over the antimeridian goes on beyond the square instead of around the world. */
export class Points {
  #x;
  #y;
  #count = 0;

  /** @param {number} capacity how many are expected; it grows by itself. */
  constructor(capacity = 64) {
    this.#x = new Float64Array(capacity);
    this.#y = new Float64Array(capacity);
  }

  get length() { return this.#count; }

  x(index) { return this.#x[index]; }
  y(index) { return this.#y[index]; }

  /** @param {number} latitude @param {number} longitude both in degrees. */
  push(latitude, longitude) {
    if (this.#count === this.#x.length) this.#grow();
    const x = worldX(longitude);
    this.#x[this.#count] = this.#count ? nearX(x, this.#x[this.#count - 1]) : x;
    this.#y[this.#count] = worldY(latitude);
    this.#count += 1;
  }

  /** @returns {?{left: number, right: number, top: number, bottom: number}} null where there is none. */
  bounds(from = 0, to = this.#count) {
    if (to <= from) return null;
    const box = { left: Infinity, right: -Infinity, top: Infinity, bottom: -Infinity };
    for (let index = from; index < to; index += 1) {
      box.left = Math.min(box.left, this.#x[index]);
      box.right = Math.max(box.right, this.#x[index]);
      box.top = Math.min(box.top, this.#y[index]);
      box.bottom = Math.max(box.bottom, this.#y[index]);
    }
    return box;
  }

  #grow() {
    const [x, y] = [this.#x, this.#y];
    this.#x = new Float64Array(2 * Math.max(1, x.length));
    this.#y = new Float64Array(this.#x.length);
    this.#x.set(x);
    this.#y.set(y);
  }
}

/** The smallest bounds around two, each of which may be null. */
export function union(one, other) {
  if (!one || !other) return one ?? other;
  const shift = nearX(other.left, one.left) - other.left;
  return {
    left: Math.min(one.left, other.left + shift), right: Math.max(one.right, other.right + shift),
    top: Math.min(one.top, other.top), bottom: Math.max(one.bottom, other.bottom),
  };
}
