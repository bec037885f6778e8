// A map without tiles: pan, zoom, pinch, keyboard, grid and scale. It knows nothing of what it shows, see `layers.js`.
import { drawLayer, haloText } from "./layers.js";
import { latitudeOf, longitudeOf, metresPerWorld } from "./projection.js";

/**
 * A map that fills a box of the page.
 *
 *     const map = new TrackMap(document.querySelector("#map"), { name: "Map of the drive" });
 *     map.show([{ kind: "line", points, colour: "--accent" }]);
 *     map.fit(points.bounds());
 *
 * The colours `--map`, `--grid`, `--ink`, `--panel`, `--case` and `--gap` come from the style sheet (common.css, map.css). Elements
 * of the box that lie over the map have the class `over-map`: labels keep clear of them.
 *
 * One finger scrolls the page, two move the map. Keys: arrows, + and -, 0 for all.
 */
export class TrackMap {
  #box;
  #canvas;
  #overlayCanvas;
  #layers = [];
  #overlay = [];
  #centreX = 0.5;
  #centreY = 0.5;
  /** Pixels that the side of the world measures. */
  #scale = 256;
  #width = 0;
  #height = 0;
  #isAsked = false;
  #colours = new Map();
  #moved;
  #clicked;
  #all;

  /**
   * @param {HTMLElement} box positioned, with a size of its own.
   * @param {object} options `name` for who cannot see it; `moved()` after a person moved it; `clicked({ x, y, latitude,
   *   longitude })` in pixels of the box and degrees; `all()` shows everything, for the button and the key 0.
   */
  constructor(box, { name, moved = () => {}, clicked = () => {}, all = () => {} }) {
    this.#box = box;
    [this.#moved, this.#clicked, this.#all] = [moved, clicked, all];
    this.#canvas = makeCanvas(box, { role: "img", "aria-label": name, tabindex: "0" });
    this.#overlayCanvas = makeCanvas(box, { "aria-hidden": "true", class: "map-overlay" });
    this.#addButtons();
    this.#listenToMouse();
    this.#listenToTouch();
    this.#listenToKeys();
    new ResizeObserver(() => this.redraw()).observe(box);
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => this.redraw());
  }

  /** What is shown, in order of drawing. */
  show(layers) {
    this.#layers = layers;
    this.redraw();
  }

  /** What is drawn above all, and changes often: a cursor. */
  showOverlay(layers) {
    this.#overlay = layers;
    this.redraw();
  }

  /** Draws once before the next frame, however often it is called. Call it when colours have changed. */
  redraw() {
    if (this.#isAsked) return;
    this.#isAsked = true;
    requestAnimationFrame(() => this.drawNow());
  }

  /**
   * Shows this part of the world.
   * @param {?object} bounds from `Points.bounds`; null changes nothing.
   * @param {number} metresMin what is smaller is shown in this width.
   */
  fit(bounds, metresMin = 150) {
    if (!bounds) return;
    this.#measure();
    if (!this.#width || !this.#height) return;
    this.#centreX = (bounds.left + bounds.right) / 2;
    this.#centreY = (bounds.top + bounds.bottom) / 2;
    const least = metresMin / metresPerWorld(this.#centreY);
    const [edgeX, edgeY] = [Math.min(70, this.#width * 0.15), Math.min(64, this.#height * 0.18)];
    this.#scale = Math.min(
      (this.#width - 2 * edgeX) / Math.max(least, bounds.right - bounds.left),
      (this.#height - 2 * edgeY) / Math.max(least, bounds.bottom - bounds.top));
    this.redraw();
  }

  /** @param {number} factor above 1 shows less in more detail. @param {number} x of the point that stays, in pixels of the box. */
  zoom(factor, x = this.#width / 2, y = this.#height / 2) {
    const [worldX, worldY] = this.#world(x, y);
    this.#scale = Math.min(2 ** 31, Math.max(128, this.#scale * factor));
    this.#centreX = worldX - (x - this.#width / 2) / this.#scale;
    this.#centreY = worldY - (y - this.#height / 2) / this.#scale;
    this.redraw();
  }

  /** The index of the point that is nearest to a place on the screen, -1 if none is within `limit` pixels. */
  nearest(points, x, y, limit = 20) {
    const view = this.#view();
    let [best, bestDistance] = [-1, limit];
    for (let index = 0; index < points.length; index += 1) {
      const distance = Math.hypot(view.x(points.x(index)) - x, view.y(points.y(index)) - y);
      if (distance < bestDistance) [best, bestDistance] = [index, distance];
    }
    return best;
  }

  drawNow() {
    this.#isAsked = false;
    this.#colours.clear();
    this.#measure();
    if (!this.#width || !this.#height) return;
    const view = this.#view();
    const base = this.#begin(this.#canvas);
    base.fillStyle = view.colour("--map");
    base.fillRect(0, 0, this.#width, this.#height);
    this.#drawGrid(base, view);
    for (const layer of this.#layers) drawLayer(base, layer, view);
    this.#drawScale(base, view);
    const over = this.#begin(this.#overlayCanvas);
    over.clearRect(0, 0, this.#width, this.#height);
    for (const layer of this.#overlay) drawLayer(over, layer, view);
  }

  #measure() {
    [this.#width, this.#height] = [this.#box.clientWidth, this.#box.clientHeight];
    for (const canvas of [this.#canvas, this.#overlayCanvas]) {
      const [width, height] = [this.#width, this.#height].map(side => Math.round(side * pixelRatio()));
      if (canvas.width !== width) canvas.width = width;
      if (canvas.height !== height) canvas.height = height;
    }
  }

  #begin(canvas) {
    const context = canvas.getContext("2d");
    context.setTransform(pixelRatio(), 0, 0, pixelRatio(), 0, 0);
    return context;
  }

  /** What the layers see of the map. */
  #view() {
    const [scale, centreX, centreY, width, height] = [this.#scale, this.#centreX, this.#centreY, this.#width, this.#height];
    const taken = this.#takenSpots();
    return {
      scale, centreX, width, height,
      x: x => (x - centreX) * scale + width / 2,
      y: y => (y - centreY) * scale + height / 2,
      colour: name => this.#colour(name),
      freeSpot: (x, y, spots, wide, high) => freeSpot(taken, x, y, spots, wide, high, width, height),
    };
  }

  #takenSpots() {
    const origin = this.#box.getBoundingClientRect();
    const spots = [{ left: 0, right: 150, top: this.#height - 34, bottom: this.#height }];
    for (const element of this.#box.querySelectorAll(".over-map")) {
      const { left, right, top, bottom } = element.getBoundingClientRect();
      spots.push({ left: left - origin.left, right: right - origin.left, top: top - origin.top, bottom: bottom - origin.top });
    }
    return spots;
  }

  #colour(name) {
    if (!name.startsWith("--")) return name;
    if (!this.#colours.has(name)) {
      const [variable, index] = name.split("/");
      const value = getComputedStyle(this.#box).getPropertyValue(variable).trim();
      const list = value.split(" ");
      this.#colours.set(name, index === undefined ? value : list[index % list.length]);
    }
    return this.#colours.get(name);
  }

  #drawGrid(canvas, view) {
    const step = niceBelow(150 / this.#scale * metresPerWorld(this.#centreY)) / metresPerWorld(this.#centreY) * this.#scale;
    canvas.strokeStyle = view.colour("--grid");
    canvas.lineWidth = 1;
    canvas.beginPath();
    for (let x = modulo(this.#width / 2 - this.#centreX * this.#scale, step); x < this.#width; x += step) {
      canvas.moveTo(Math.round(x) + 0.5, 0);
      canvas.lineTo(Math.round(x) + 0.5, this.#height);
    }
    for (let y = modulo(this.#height / 2 - this.#centreY * this.#scale, step); y < this.#height; y += step) {
      canvas.moveTo(0, Math.round(y) + 0.5);
      canvas.lineTo(this.#width, Math.round(y) + 0.5);
    }
    canvas.stroke();
  }

  #drawScale(canvas, view) {
    const metresPerPixel = metresPerWorld(this.#centreY) / this.#scale;
    const metres = niceBelow(110 * metresPerPixel);
    const [length, left, bottom] = [metres / metresPerPixel, 14, this.#height - 14];
    for (const [colour, width] of [["--map", 4], ["--ink", 1.5]]) {
      canvas.strokeStyle = view.colour(colour);
      canvas.lineWidth = width;
      canvas.beginPath();
      for (const [x, y] of [[left, bottom - 5], [left, bottom], [left + length, bottom], [left + length, bottom - 5]]) canvas.lineTo(x, y);
      canvas.stroke();
    }
    canvas.font = "12px system-ui, \"DejaVu Sans\", sans-serif";
    haloText(canvas, `${metres >= 1000 ? `${metres / 1000} km` : `${metres} m`}   N ↑`, left + 5, bottom - 6, view);
  }

  #world(x, y) {
    return [(x - this.#width / 2) / this.#scale + this.#centreX, (y - this.#height / 2) / this.#scale + this.#centreY];
  }

  #pan(right, down) {
    this.#centreX -= right / this.#scale;
    this.#centreY = Math.max(0, Math.min(1, this.#centreY - down / this.#scale));
    this.redraw();
    this.#moved();
  }

  #zoomByHand(factor, x, y) {
    this.zoom(factor, x, y);
    this.#moved();
  }

  #addButtons() {
    const group = document.createElement("div");
    group.className = "map-buttons over-map";
    const buttons = [
      ["+", "Zoom in", () => this.#zoomByHand(1.6)], ["−", "Zoom out", () => this.#zoomByHand(1 / 1.6)],
      ["all", "Show all", () => this.#all()],
    ];
    for (const [text, name, action] of buttons) {
      const button = document.createElement("button");
      button.type = "button";
      button.textContent = text;
      button.setAttribute("aria-label", name);
      button.title = name;
      button.addEventListener("click", action);
      group.append(button);
    }
    this.#box.append(group);
  }

  #listenToMouse() {
    const canvas = this.#canvas;
    let held = null;
    canvas.addEventListener("pointerdown", event => {
      if (event.pointerType === "touch" || event.button !== 0) return;
      held = { x: event.clientX, y: event.clientY, travelled: 0 };
      canvas.setPointerCapture(event.pointerId);
    });
    canvas.addEventListener("pointermove", event => {
      if (!held) return;
      const [right, down] = [event.clientX - held.x, event.clientY - held.y];
      held = { x: event.clientX, y: event.clientY, travelled: held.travelled + Math.abs(right) + Math.abs(down) };
      if (held.travelled > 3) this.#pan(right, down);
    });
    canvas.addEventListener("pointerup", () => { held = null; });
    canvas.addEventListener("pointercancel", () => { held = null; });
    this.#listenToClicks();
    canvas.addEventListener("wheel", event => {
      event.preventDefault();
      const pixels = event.deltaMode === WheelEvent.DOM_DELTA_LINE ? event.deltaY * 30 : event.deltaY;
      this.#zoomByHand(Math.exp(-Math.max(-400, Math.min(400, pixels)) * 0.0016), event.offsetX, event.offsetY);
    }, { passive: false });
    canvas.addEventListener("dblclick", event => this.#zoomByHand(2, event.offsetX, event.offsetY));
  }

  /** A press that moved the map is no click. */
  #listenToClicks() {
    let pressed = null;
    this.#canvas.addEventListener("pointerdown", event => { pressed = [event.offsetX, event.offsetY]; });
    this.#canvas.addEventListener("click", event => {
      if (!pressed || Math.hypot(event.offsetX - pressed[0], event.offsetY - pressed[1]) > 4) return;
      const [x, y] = this.#world(event.offsetX, event.offsetY);
      this.#clicked({ x: event.offsetX, y: event.offsetY, latitude: latitudeOf(y), longitude: longitudeOf(x) });
    });
  }

  #listenToTouch() {
    let last = null;
    const grip = touches => {
      const origin = this.#box.getBoundingClientRect();
      const [one, two] = touches;
      return {
        x: (one.clientX + two.clientX) / 2 - origin.left, y: (one.clientY + two.clientY) / 2 - origin.top,
        span: Math.max(1, Math.hypot(one.clientX - two.clientX, one.clientY - two.clientY)),
      };
    };
    const begin = event => {
      last = event.touches.length === 2 ? grip(event.touches) : null;
      if (last) event.preventDefault();
    };
    this.#canvas.addEventListener("touchstart", begin, { passive: false });
    this.#canvas.addEventListener("touchend", begin, { passive: false });
    this.#canvas.addEventListener("touchcancel", () => { last = null; });
    this.#canvas.addEventListener("touchmove", event => {
      if (!last || event.touches.length !== 2) return;
      event.preventDefault();
      const now = grip(event.touches);
      this.#pan(now.x - last.x, now.y - last.y);
      this.#zoomByHand(now.span / last.span, now.x, now.y);
      last = now;
    }, { passive: false });
  }

  #listenToKeys() {
    const step = 60;
    const actions = {
      ArrowLeft: () => this.#pan(step, 0), ArrowRight: () => this.#pan(-step, 0),
      ArrowUp: () => this.#pan(0, step), ArrowDown: () => this.#pan(0, -step),
      "+": () => this.#zoomByHand(1.6), "=": () => this.#zoomByHand(1.6), "-": () => this.#zoomByHand(1 / 1.6),
      0: () => this.#all(),
    };
    this.#canvas.addEventListener("keydown", event => {
      if (!Object.hasOwn(actions, event.key) || event.ctrlKey || event.metaKey || event.altKey) return;
      event.preventDefault();
      actions[event.key]();
    });
  }
}

function makeCanvas(parent, attributes) {
  const canvas = document.createElement("canvas");
  for (const [name, value] of Object.entries(attributes)) canvas.setAttribute(name, value);
  parent.append(canvas);
  return canvas;
}

/** More than this many pixels for one of the page are not seen, but cost time. */
function pixelRatio() {
  return Math.min(2.5, globalThis.devicePixelRatio || 1);
}

function modulo(value, step) {
  return (value % step + step) % step;
}

/** The largest of 1, 2, 5, 10, 20, … that is not above a value. */
function niceBelow(value) {
  const power = 10 ** Math.floor(Math.log10(value));
  const [digit] = [5, 2, 1].filter(each => each * power <= value * 1.000001);
  return Number(((digit ?? 1) * power).toPrecision(3));
}

/** The first spot around a place that is free and in sight, which is then taken; the first one if there is none. */
function freeSpot(taken, x, y, spots, wide, high, width, height) {
  const rectangle = ([right, down]) => ({
    left: x + right - wide / 2, right: x + right + wide / 2, top: y + down - high / 2, bottom: y + down + high / 2,
  });
  const overlaps = (one, other) =>
    one.left < other.right && other.left < one.right && one.top < other.bottom && other.top < one.bottom;
  const isFree = spot => {
    const area = rectangle(spot);
    return area.left >= 0 && area.right <= width && area.top >= 0 && area.bottom <= height && !taken.some(each => overlaps(area, each));
  };
  const chosen = spots.find(isFree) ?? spots[0];
  taken.push(rectangle(chosen));
  return [x + chosen[0], y + chosen[1]];
}
