// A map: pan, zoom, pinch, keyboard, grid and scale. It knows nothing of what it shows, see `layers.js`.
import { Colours, FONT, Surface, haloText, isInside, oncePerFrame, shape } from "./canvas.js";
import { watchGestures } from "./gestures.js";
import { drawLayer } from "./layers.js";
import { metresPerWorld } from "./projection.js";
import { Tiles } from "./tiles.js";

const NORTH = [[0, -8], [4.5, 5], [0, 2.5], [-4.5, 5]];

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
  #base;
  #over;
  #layers = [];
  #overlay = [];
  /** What is in the middle of the map, and how many pixels the side of the world measures. */
  #place = { x: 0.5, y: 0.5, scale: 256 };
  #colours = new Colours();
  #badges = [];
  #tiles = null;
  #options;
  #drawSoon = oncePerFrame(() => this.drawNow());
  #drawOverSoon = oncePerFrame(() => this.#drawOverlay());

  /**
   * @param {HTMLElement} box positioned, with a size of its own.
   * @param {object} options `name` for who cannot see it; all others are optional: `moved()` after a person moved it;
   *   `clicked(x, y)` in pixels of the box; `hovered(x, y, event)`, `left()`; `scrolled()` when one finger moves over it; `all()`
   *   shows everything, for the button and the key 0.
   */
  constructor(box, options) {
    this.#box = box;
    this.#options = options;
    this.#over = new Surface(makeCanvas(box, { "aria-hidden": "true", class: "map-overlay" }));
    this.#canvas = makeCanvas(box, { role: "img", "aria-label": options.name, tabindex: "0" });
    this.#base = new Surface(this.#canvas);
    this.#addButtons();
    this.#listen();
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
    this.#drawOverSoon();
  }

  /** Draws once before the next frame, however often it is called. Call it when colours have changed. */
  redraw() {
    this.#drawSoon();
  }

  /**
   * Shows tiles of a server instead of the grid.
   * @param {?string} template address with `{z}`, `{x}` and `{y}`; null shows the grid.
   */
  setTiles(template, attribution = "") {
    this.#tiles = template && new Tiles(template, attribution, () => this.redraw());
    this.redraw();
  }

  /**
   * Shows this part of the world.
   * @param {?object} bounds from `Points.bounds`; null changes nothing.
   * @param {number} metresMin what is smaller is shown in this width.
   * @param {object} edges pixels that stay free around it; by default a part of the box.
   */
  fit(bounds, metresMin = 150, edges = null) {
    if (!bounds) return;
    this.#measure();
    if (!this.#base.width || !this.#base.height) return;
    this.#place = fitting(bounds, metresMin, edges, this.#base);
    this.redraw();
  }

  /** Moves the map if a place of the world is not well inside of it. */
  reveal(x, y) {
    if (this.sees(x, y, 30)) return;
    this.#place = { ...this.#place, x, y };
    this.redraw();
  }

  /** Whether a place of the world is on the map, at least `margin` pixels from its edge. */
  sees(x, y, margin = 0) {
    const view = this.#view(this.#base, this.#place);
    return isInside(view.x(x), view.y(y), view, -margin);
  }

  /** @param {number} factor above 1 shows less in more detail. @param {number} x of the point that stays, in pixels of the box. */
  zoom(factor, x = this.#base.width / 2, y = this.#base.height / 2) {
    const [worldX, worldY] = this.#world(x, y);
    const scale = Math.min(2 ** 31, Math.max(128, this.#place.scale * factor));
    this.#place = { x: worldX - (x - this.#base.width / 2) / scale, y: worldY - (y - this.#base.height / 2) / scale, scale };
    this.redraw();
  }

  /** The index of the point that is nearest to a place on the screen, -1 if none of `from` to `to` is within `limit` pixels. */
  nearest(points, x, y, limit = 20, from = 0, to = points.length, only = () => true) {
    const [atX, atY] = this.#world(x, y);
    let [best, bestSquare] = [-1, (limit / this.#place.scale) ** 2];
    for (let index = from; index < to; index += 1) {
      const square = (points.x(index) - atX) ** 2 + (points.y(index) - atY) ** 2;
      if (square < bestSquare && only(index)) [best, bestSquare] = [index, square];
    }
    return best;
  }

  /** The items of the badge at a place on the screen, see `layers.js`; null if there is none. */
  badgeAt(x, y) {
    const badge = this.#badges.find(each => x >= each.left && x <= each.right && y >= each.top && y <= each.bottom);
    return badge ? badge.items : null;
  }

  /**
   * What is shown as an image for paper, with a size of its own and, if there are bounds, a part of its own. It has the grid: a
   * browser makes no image of a canvas on which tiles of another server were drawn.
   */
  picture(width, height, bounds) {
    const surface = Surface.hidden(width, height);
    const place = bounds ? fitting(bounds, 150, { left: 50, right: 50, top: 40, bottom: 44 }, surface) : this.#place;
    this.#colours.forget();
    this.#draw(surface, this.#view(surface, place, true), null);
    this.#colours.forget();
    return surface.image();
  }

  drawNow() {
    this.#colours.forget();
    this.#measure();
    if (!this.#base.width || !this.#base.height) return;
    const view = this.#view(this.#base, this.#place);
    this.#draw(this.#base, view, this.#tiles);
    this.#badges = view.badges;
    this.#drawOverlay();
  }

  #draw(surface, view, tiles) {
    const canvas = surface.begin();
    canvas.fillStyle = view.colour("--map");
    canvas.fillRect(0, 0, view.width, view.height);
    if (tiles) tiles.draw(canvas, view);
    else this.#drawGrid(canvas, view);
    for (const layer of this.#layers) drawLayer(canvas, layer, view);
    if (this.#layers.length) this.#drawScale(canvas, view);
  }

  #drawOverlay() {
    const canvas = this.#over.clear();
    const view = this.#view(this.#base, this.#place);
    for (const layer of this.#overlay) drawLayer(canvas, layer, view);
  }

  #measure() {
    for (const surface of [this.#base, this.#over]) surface.fit(this.#box.clientWidth, this.#box.clientHeight);
  }

  /** What the layers see of a place of the world on a surface. */
  #view({ width, height }, { x: centreX, y: centreY, scale }, isPicture = false) {
    const [left, top] = [width / 2 - centreX * scale, height / 2 - centreY * scale];
    let taken;
    return {
      scale, left, top, centreX, centreY, width, height, badges: [], isPicture,
      x: x => x * scale + left,
      y: y => y * scale + top,
      colour: name => this.#colours.of(name),
      freeSpot: (x, y, spots, wide, high) =>
        freeSpot(taken ??= this.#takenSpots(height, isPicture), x, y, spots, wide, high, width, height),
    };
  }

  /** Where the scale is, and on the page the controls. */
  #takenSpots(height, isPicture) {
    const origin = this.#box.getBoundingClientRect();
    const spots = [{ left: 0, right: 150, top: height - 34, bottom: height }];
    if (isPicture) return spots;
    for (const element of this.#box.querySelectorAll(".over-map")) {
      const { left, right, top, bottom } = element.getBoundingClientRect();
      spots.push({ left: left - origin.left, right: right - origin.left, top: top - origin.top, bottom: bottom - origin.top });
    }
    return spots;
  }

  #drawGrid(canvas, view) {
    const metresPerPixel = metresPerWorld(view.centreY) / view.scale;
    const step = niceBelow(150 * metresPerPixel) / metresPerPixel;
    canvas.strokeStyle = view.colour("--grid");
    canvas.lineWidth = 1;
    canvas.beginPath();
    for (let x = modulo(view.x(0), step); x < view.width; x += step) {
      canvas.moveTo(Math.round(x) + 0.5, 0);
      canvas.lineTo(Math.round(x) + 0.5, view.height);
    }
    for (let y = modulo(view.y(0), step); y < view.height; y += step) {
      canvas.moveTo(0, Math.round(y) + 0.5);
      canvas.lineTo(view.width, Math.round(y) + 0.5);
    }
    canvas.stroke();
  }

  #drawScale(canvas, view) {
    const [ink, ground] = [view.colour("--ink"), view.colour("--map")];
    canvas.font = `12px ${FONT}`;
    // Where the square of the world ends, all latitudes beyond are drawn on its edge.
    if (Math.abs(view.centreY - 0.5) > 0.498) return haloText(canvas, "no scale beyond 85°", 14, view.height - 14, ink, ground);
    const metresPerPixel = metresPerWorld(view.centreY) / view.scale;
    const metres = niceBelow(110 * metresPerPixel);
    const [length, left, bottom] = [metres / metresPerPixel, 14, view.height - 14];
    for (const [colour, width] of [[ground, 4], [ink, 1.5]]) {
      canvas.strokeStyle = colour;
      canvas.lineWidth = width;
      canvas.beginPath();
      for (const [x, y] of [[left, bottom - 5], [left, bottom], [left + length, bottom], [left + length, bottom - 5]]) canvas.lineTo(x, y);
      canvas.stroke();
    }
    haloText(canvas, metres >= 1000 ? `${metres / 1000} km` : `${metres} m`, left + 5, bottom - 6, ink, ground);
    shape(canvas, left + length + 14, bottom - 5, 0, NORTH, ink, ground);
    haloText(canvas, "N", left + length + 22, bottom, ink, ground);
  }

  #world(x, y) {
    const { x: centreX, y: centreY, scale } = this.#place;
    return [(x - this.#base.width / 2) / scale + centreX, (y - this.#base.height / 2) / scale + centreY];
  }

  #pan(right, down) {
    const { x, y, scale } = this.#place;
    this.#place = { x: x - right / scale, y: Math.max(0, Math.min(1, y - down / scale)), scale };
    this.redraw();
    this.#options.moved?.();
  }

  #zoomByHand(factor, x, y) {
    this.zoom(factor, x, y);
    this.#options.moved?.();
  }

  #addButtons() {
    const group = document.createElement("div");
    group.className = "map-buttons over-map";
    const buttons = [
      ["+", "Zoom in", () => this.#zoomByHand(1.6)], ["−", "Zoom out", () => this.#zoomByHand(1 / 1.6)],
      ["all", "Show all", () => this.#options.all?.()],
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

  #listen() {
    const { clicked, hovered, left, scrolled } = this.#options;
    watchGestures(this.#canvas, {
      hover: hovered,
      leave: left,
      press: (x, y, event) => this.#box.classList.toggle("is-dragged", event.pointerType !== "touch"),
      release: () => this.#box.classList.remove("is-dragged"),
      drag: (right, down, x, y, event) => event.pointerType === "touch" ? scrolled?.() : this.#pan(right, down),
      pinch: (factor, x, y, right, down) => {
        this.#pan(right, down);
        this.#zoomByHand(factor, x, y);
      },
      click: (x, y) => clicked?.(x, y),
      doubleClick: (x, y) => this.#zoomByHand(2, x, y),
      turn: (factor, x, y) => this.#zoomByHand(factor, x, y),
    });
    const step = 60;
    const actions = {
      ArrowLeft: () => this.#pan(step, 0), ArrowRight: () => this.#pan(-step, 0),
      ArrowUp: () => this.#pan(0, step), ArrowDown: () => this.#pan(0, -step),
      "+": () => this.#zoomByHand(1.6), "=": () => this.#zoomByHand(1.6), "-": () => this.#zoomByHand(1 / 1.6),
      0: () => this.#options.all?.(),
    };
    this.#canvas.addEventListener("keydown", event => {
      if (!Object.hasOwn(actions, event.key) || event.ctrlKey || event.metaKey || event.altKey) return;
      event.preventDefault();
      event.stopPropagation();
      actions[event.key]();
    });
  }
}

/** The place that shows bounds on a surface, see `TrackMap.fit`. */
function fitting(bounds, metresMin, edges, { width, height }) {
  const [edgeX, edgeY] = [Math.min(70, width * 0.15), Math.min(64, height * 0.18)];
  const { left, right, top, bottom } = edges ?? { left: edgeX, right: edgeX, top: edgeY, bottom: edgeY };
  const least = metresMin / metresPerWorld((bounds.top + bounds.bottom) / 2);
  const scale = Math.min(
    Math.max(40, width - left - right) / Math.max(least, bounds.right - bounds.left),
    Math.max(40, height - top - bottom) / Math.max(least, bounds.bottom - bounds.top));
  return { x: (bounds.left + bounds.right + (right - left) / scale) / 2, y: (bounds.top + bounds.bottom + (bottom - top) / scale) / 2, scale };
}

/** Below all that is in the box already. */
function makeCanvas(parent, attributes) {
  const canvas = document.createElement("canvas");
  for (const [name, value] of Object.entries(attributes)) canvas.setAttribute(name, value);
  parent.prepend(canvas);
  return canvas;
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

/** The first spot around a place that is free and in sight, which is then taken; null if there is none. */
function freeSpot(taken, x, y, spots, wide, high, width, height) {
  const rectangle = ([right, down]) => ({
    left: x + right - wide / 2, right: x + right + wide / 2, top: y + down - high / 2, bottom: y + down + high / 2,
  });
  const overlaps = (one, other) =>
    one.left < other.right && other.left < one.right && one.top < other.bottom && other.top < one.bottom;
  const chosen = spots.map(rectangle).find(area => area.left >= 0 && area.right <= width && area.top >= 0 && area.bottom <= height
    && !taken.some(each => overlaps(area, each)));
  if (!chosen) return null;
  taken.push(chosen);
  return [(chosen.left + chosen.right) / 2, (chosen.top + chosen.bottom) / 2];
}
