// The map of the report: which layers it shows, and what pointing at it does.
import { TrackMap } from "../common/map.js";
import { Points } from "../common/projection.js";
import { minutes, plural, span } from "../common/words.js";
import { byId, element } from "./dom.js";
import { shortSpan } from "./words.js";

const NAME = "Map of the track: trips as coloured lines, stops as badges. The table of trips and stops says the same.";
/** Upper ends of the bands of accuracy, in metres, and their places in --ramp. */
export const ACCURACY_BANDS = [[5, 0], [10, 2], [20, 4], [50, 6], [Infinity, 7]];
const RAMP = [0, 1, 2, 3, 4, 5, 6, 7].map(index => `--ramp/${index}`);
const UNKNOWN_BAND = 8;
const FENCE_LABELS_MAX = 40;

export class TrackView {
  #log;
  #state;
  #tip;
  #navigation;
  #box = byId("map");
  #hint = byId("hint");
  #hintTimer = 0;
  #fences;
  /** Whether all is shown, and shall be when the page takes another size. */
  #showsAll = false;
  map;

  constructor(log, state, tip, navigation) {
    [this.#log, this.#state, this.#tip, this.#navigation] = [log, state, tip, navigation];
    this.#fences = fenceLayers(log);
    this.map = new TrackMap(this.#box, {
      name: NAME,
      moved: () => {
        this.#showsAll = false;
        tip.hide();
      },
      all: () => this.showAll(),
      hovered: (x, y, event) => this.#hover(x, y, event),
      left: () => navigation.let(),
      clicked: (x, y) => this.#click(x, y),
      scrolled: () => this.#sayTwoFingers(),
    });
    state.on(["colourBy", "showsRaw", "variant", "leg", "isDark"], () => this.update());
    state.on(["cursor"], () => this.#moveCursor());
    new ResizeObserver(() => {
      if (this.#showsAll) this.showAll();
    }).observe(this.#box);
    this.update();
  }

  update() {
    this.map.show(this.#layers());
    this.#moveCursor();
  }

  showAll() {
    this.#showsAll = true;
    this.map.fit(this.#log.bounds(), 150, this.#edges());
  }

  /** The way of a trip, or the place of a stop or gap. */
  showLeg(leg) {
    this.#showsAll = false;
    const to = leg.kind === "trip" ? leg.to : Math.min(leg.to, leg.from + 300_000);
    const bounds = this.#log.bounds(this.#log.rowFrom(leg.from), this.#log.rowFrom(to + 1));
    this.map.fit(bounds, 150, this.#edges());
  }

  reveal(time) {
    const row = this.#log.nearestRow(time);
    this.map.reveal(this.#log.points.x(row), this.#log.points.y(row));
  }

  /** The whole log as an image for paper, whatever part is shown; `update` shows that part again. */
  picture(width, height) {
    this.map.show(this.#layers(null));
    return this.map.picture(width, height, this.#log.bounds());
  }

  /** The controls lie over the upper edge. */
  #edges() {
    const side = Math.min(70, this.#box.clientWidth * 0.13);
    return { left: side, right: side + 20, top: 78, bottom: 50 };
  }

  /** @param {?object} leg that stands out. */
  #layers(leg = this.#state.leg) {
    const log = this.#log;
    const state = this.#state;
    const layers = [];
    if (state.showsRaw) {
      layers.push({ kind: "dots", points: log.points, only: row => log.isAdmitted(row), colour: "--raw", radius: 1.1, alpha: 0.75 });
    }
    layers.push(...this.#gapsWhileParked(), ...log.trips.map((trip, index) => this.#tripLayer(trip, index, leg)));
    layers.push(...this.#fences);
    if (state.showsRaw) layers.push({ kind: "dots", points: log.refusedPoints, cross: true, colour: "--bad" });
    layers.push({ kind: "dots", points: log.kept.points, cased: true, radius: 2.6, colour: "--kept", most: this.#box.clientWidth / 4 });
    if (state.variant) layers.push(...this.#variantLayers(log.whatIf[state.variant].track));
    layers.push(...log.trips.flatMap((trip, index) => this.#openEnd(trip, index)));
    layers.push({
      kind: "badges", sign: "P", items: log.stops.filter(stop => stop.lat != null).map(badgeOf),
      text: items => `${items.length > 1 ? `${items.length}× ` : ""}${shortSpan(items.reduce((sum, item) => sum + item.weight, 0))}`,
    });
    const items = log.trips.map((trip, index) => ({ ...log.kept.range(trip), text: String(trip.number), colour: `--trips/${index}` }));
    layers.push({ kind: "numbers", points: log.kept.points, items });
    return layers;
  }

  #tripLayer(trip, index, leg) {
    const { colourBy } = this.#state;
    const log = this.#log;
    const layer = {
      kind: "line", points: log.kept.points, ...log.kept.range(trip), breaks: log.kept.breaks, hidden: log.kept.hidden, arrows: true, colour: `--trips/${index}`,
      alpha: leg?.trip && leg.trip !== trip ? 0.3 : 1,
    };
    if (colourBy === "trip") return layer;
    const band = colourBy === "speed" ? speedBand : accuracyBand;
    return { ...layer, colour: "--ink", bands: { of: index => band(log, log.kept.rows[index]), colours: [...RAMP, "--raw"] } };
  }

  /** Where a trip goes on when the log ends, unless that place is hidden. */
  #openEnd(trip, index) {
    const [log, row] = [this.#log, trip.lastRow];
    if (!trip.open || log.time[row] !== trip.to) return [];
    const place = { latitude: log.latitude(row), longitude: log.longitude(row) };
    return [{ kind: "position", ...place, outlined: true, colour: `--trips/${index}`, label: "still under way" }];
  }

  /** Trips show their own gaps. */
  #gapsWhileParked() {
    const { points, breaks, hidden } = this.#log.kept;
    const ranges = this.#log.trips.map(trip => this.#log.kept.range(trip));
    return [...breaks].filter(index => !hidden.has(index) && !ranges.some(({ from, to }) => from < index && index < to))
      .map(index => ({ kind: "line", points, from: index - 1, to: index + 1, breaks: new Set([index]), width: 2, colour: "--gap" }));
  }

  #variantLayers(track) {
    const { points, breaks, hidden } = track;
    const lines = this.#log.trips.map(trip => (
      { kind: "line", points, ...track.range(trip), breaks, hidden, width: 2, cased: false, dash: [7, 4], colour: "--variant" }));
    return [...lines, { kind: "dots", points, cased: true, radius: 3, colour: "--variant", most: this.#box.clientWidth / 4 }];
  }

  #moveCursor() {
    const { cursor } = this.#state;
    if (cursor === null) return this.map.showOverlay([]);
    const log = this.#log;
    const row = log.nearestRow(cursor);
    if (!log.hasFix(row)) return this.map.showOverlay([]);
    const place = { latitude: log.latitude(row), longitude: log.longitude(row), colour: "--cursor" };
    const accuracy = log.accuracy(row);
    const around = accuracy === null ? [] : [{ kind: "circle", ...place, metres: accuracy }];
    this.map.showOverlay([...around, { kind: "position", ...place, edge: true }]);
  }

  #nearest(x, y, limit) {
    const [from, to] = this.#navigation.visibleRows();
    return this.map.nearest(this.#log.points, x, y, limit, from, to, row => this.#log.hasFix(row));
  }

  #hover(x, y, event) {
    const stops = this.map.badgeAt(x, y);
    if (stops) return this.#tip.show(event.clientX, event.clientY, ...describeStops(stops.map(item => item.stop)));
    this.#tip.hide();
    const row = this.#nearest(x, y, 26);
    this.#navigation.point(row < 0 ? null : this.#log.time[row]);
  }

  #click(x, y) {
    const stops = this.map.badgeAt(x, y);
    if (stops) return this.#navigation.focus(this.#log.legs.find(leg => leg.stop === stops[0].stop));
    const row = this.#nearest(x, y, 34);
    if (row < 0) this.#navigation.release();
    else this.#navigation.hold(this.#log.time[row]);
  }

  #sayTwoFingers() {
    this.#hint.hidden = false;
    clearTimeout(this.#hintTimer);
    this.#hintTimer = setTimeout(() => { this.#hint.hidden = true; }, 900);
  }
}

function badgeOf(stop) {
  return { latitude: stop.lat / 1e7, longitude: stop.lon / 1e7, weight: stop.to - stop.from, stop };
}

function describeStops(stops) {
  const title = stops.length > 1 ? `${plural(stops.length, "stop")} here` : `Parked ${span(stops[0].to - stops[0].from)}`;
  const lines = [...stops].sort((one, other) => one.from - other.from).slice(0, 6).map(({ from, to, open }) =>
    element("p", {}, `${minutes(from)} – ${open ? "end of the log" : minutes(to)}, ${span(to - from)}`));
  return [element("div", { className: "title" }, title), ...lines];
}

/** Those that were crossed first: with thousands of fences not all have a label. */
function fenceLayers(log) {
  const crossed = new Set(log.crossings.map(crossing => crossing.id));
  const fences = [...log.geofences].sort((one, other) => crossed.has(other.id) - crossed.has(one.id));
  return fences.map((fence, index) => fenceLayer(fence, index < FENCE_LABELS_MAX ? fence.name || fence.id : "", log));
}

function fenceLayer(fence, label, log) {
  const common = { colour: "--fence", label, outlined: true };
  if (!fence.ring) return { kind: "circle", latitude: fence.lat, longitude: fence.lon, metres: fence.radius, ...common };
  const points = new Points(fence.ring.length + 1);
  if (log.rows) points.push(log.latitude(0), log.longitude(0));
  for (const [latitude, longitude] of fence.ring) points.push(latitude, longitude);
  return { kind: "area", points: log.rows ? withoutFirst(points) : points, ...common };
}

/** The first point only says on which side of the antimeridian the track lies. */
function withoutFirst(points) {
  return { length: points.length - 1, x: index => points.x(index + 1), y: index => points.y(index + 1) };
}

function speedBand(log, row) {
  const speed = log.speed(row);
  return speed === null ? UNKNOWN_BAND : Math.min(7, Math.floor(speed / log.speedMax * 8));
}

function accuracyBand(log, row) {
  const accuracy = log.accuracy(row);
  return accuracy === null ? UNKNOWN_BAND : ACCURACY_BANDS.find(([most]) => accuracy <= most)[1];
}
