// What every drawing on the pages needs: a canvas in CSS pixels, colours of the style sheet, one drawing a frame, a few shapes.

export const FONT = "system-ui, \"Segoe UI\", Roboto, \"DejaVu Sans\", sans-serif";

/** Lengths of time that people count in, in milliseconds. */
export const TIME_STEPS = [
  1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 10_800, 21_600, 43_200, 86_400, 172_800, 604_800,
].map(each => each * 1000);

/** A canvas in CSS pixels, whatever the pixels of the screen are. */
export class Surface {
  #canvas;
  #ratio = 0;
  width = 0;
  height = 0;

  constructor(canvas) {
    this.#canvas = canvas;
  }

  /** Takes a size in CSS pixels. More than 2.5 pixels of the screen for one of the page are not seen, but cost time. */
  fit(width, height, ratio = Math.min(2.5, globalThis.devicePixelRatio || 1)) {
    if (width === this.width && height === this.height && ratio === this.#ratio) return;
    [this.width, this.height, this.#ratio] = [width, height, ratio];
    this.#canvas.width = Math.round(width * ratio);
    this.#canvas.height = Math.round(height * ratio);
  }

  begin() {
    const context = this.#canvas.getContext("2d");
    context.setTransform(this.#ratio, 0, 0, this.#ratio, 0, 0);
    return context;
  }

  clear() {
    const context = this.begin();
    context.clearRect(0, 0, this.width, this.height);
    return context;
  }

  image() {
    return this.#canvas.toDataURL("image/png");
  }

  /** A surface that no page shows, to make an image of. */
  static hidden(width, height) {
    const surface = new Surface(document.createElement("canvas"));
    surface.fit(width, height, 3);
    return surface;
  }
}

/** Colours of the style sheet by name: "--gap", or "--trips/3" for a place in one that is a list. Others are CSS colours. */
export class Colours {
  #known = new Map();

  of(name) {
    if (!name.startsWith("--")) return name;
    if (!this.#known.has(name)) {
      const [variable, index] = name.split("/");
      const value = getComputedStyle(document.documentElement).getPropertyValue(variable).trim();
      const list = value.split(" ");
      this.#known.set(name, index === undefined ? value : list[index % list.length]);
    }
    return this.#known.get(name);
  }

  /** To be called when light has become dark. */
  forget() {
    this.#known.clear();
  }
}

/** A function that has `draw` called once before the next frame, however often it is called itself. */
export function oncePerFrame(draw) {
  let isAsked = false;
  return () => {
    if (isAsked) return;
    isAsked = true;
    requestAnimationFrame(() => {
      isAsked = false;
      draw();
    });
  };
}

/** A text that stays readable on anything. */
export function haloText(canvas, text, x, y, ink, ground) {
  canvas.lineJoin = "round";
  canvas.lineWidth = 4;
  canvas.strokeStyle = ground;
  canvas.strokeText(text, x, y);
  canvas.fillStyle = ink;
  canvas.fillText(text, x, y);
}

/** The polygon through `corners`, which are offsets from a point and are turned by `turn` in radians. */
export function shape(canvas, x, y, turn, corners, fill, edge, width = 1.5) {
  canvas.save();
  canvas.translate(x, y);
  canvas.rotate(turn);
  canvas.beginPath();
  for (const [right, down] of corners) canvas.lineTo(right, down);
  canvas.closePath();
  paint(canvas, fill, edge, width);
  canvas.restore();
}

export function disc(canvas, x, y, radius, fill, edge, width = 1.5) {
  canvas.beginPath();
  canvas.arc(x, y, radius, 0, 7);
  paint(canvas, fill, edge, width);
}

export function roundBox(canvas, left, top, width, height, radius, fill, edge) {
  canvas.beginPath();
  canvas.roundRect(left, top, width, height, radius);
  paint(canvas, fill, edge, 1);
}

/** Slanting lines over a rectangle, in the stroke style of the canvas. They stand still when an edge moves. */
export function hatch(canvas, left, top, right, bottom, step) {
  canvas.save();
  canvas.beginPath();
  canvas.rect(left, top, right - left, bottom - top);
  canvas.clip();
  canvas.beginPath();
  for (let x = left - (bottom - top) - left % step; x < right; x += step) {
    canvas.moveTo(x, bottom);
    canvas.lineTo(x + bottom - top, top);
  }
  canvas.stroke();
  canvas.restore();
}

/** Adds a × to the path of the canvas. */
export function traceCross(canvas, x, y, reach) {
  canvas.moveTo(x - reach, y - reach);
  canvas.lineTo(x + reach, y + reach);
  canvas.moveTo(x + reach, y - reach);
  canvas.lineTo(x - reach, y + reach);
}

/** Whether a place on the screen is inside of a view that is `margin` pixels larger on each side. */
export function isInside(x, y, { width, height }, margin = 0) {
  return x >= -margin && y >= -margin && x <= width + margin && y <= height + margin;
}

function paint(canvas, fill, edge, width) {
  canvas.fillStyle = fill;
  canvas.fill();
  if (!edge) return;
  canvas.strokeStyle = edge;
  canvas.lineWidth = width;
  canvas.stroke();
}
