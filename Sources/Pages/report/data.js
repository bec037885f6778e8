// The log behind the page, read from its bytes, with what the views look up in it.
import { Points, nearX } from "../common/projection.js";

const COLUMNS = ["t", "lat", "lon", "speed", "accuracy", "satellites", "altitude", "verdict"];
const UNKNOWN = -1;
const UNKNOWN_ALTITUDE = -32768;
const CLIMB = 10; // metres: altitudes wander by less

/** @param {Uint8Array} data a head in JSON, and columns. @returns {Log} fails if the bytes are not what they should be. */
export function readLog(data) {
  const headLength = new DataView(data.buffer).getUint32(0);
  const head = JSON.parse(new TextDecoder().decode(data.subarray(4, 4 + headLength)));
  if (head.version !== 1) throw new Error(`its data has version ${head.version}, and the page reads version 1`);
  const reader = new ColumnReader(data, 4 + headLength);
  const columns = Object.fromEntries(head.columns.map(({ name, bytes }) => [name, reader.next(bytes, new Float64Array(head.rows))]));
  for (const name of COLUMNS) if (!columns[name]) throw new Error(`column ${name} is missing`);
  for (const variant of head.whatIf) variant.rows = reader.next(variant.bytesColumn, new Uint32Array(variant.kept));
  return new Log(head, columns);
}

/** Reads columns one after the other: differences, zigzag, LEB128. */
class ColumnReader {
  #data;
  #at;

  constructor(data, at) {
    [this.#data, this.#at] = [data, at];
  }

  /** The next `bytes` bytes as numbers, no more than `values` has room for. */
  next(bytes, values) {
    const [data, end] = [this.#data, this.#at + bytes];
    if (end > data.length) throw new Error("its data is cut short");
    let [at, count, value] = [this.#at, 0, 0];
    while (at < end && count < values.length) {
      let [code, unit, byte] = [0, 1, 0];
      do {
        byte = data[at];
        at += 1;
        code += (byte & 127) * unit;
        unit *= 128;
      } while (byte & 128);
      value += code % 2 ? -(code + 1) / 2 : code / 2;
      values[count] = value;
      count += 1;
    }
    this.#at = end;
    return count === values.length ? values : values.slice(0, count);
  }
}

/** A choice of points by their rows. */
class ChosenPoints {
  #points;
  #rows;

  constructor(points, rows) {
    [this.#points, this.#rows] = [points, rows];
  }

  get length() { return this.#rows.length; }
  x(index) { return this.#points.x(this.#rows[index]); }
  y(index) { return this.#points.y(this.#rows[index]); }
}

/** Rows that some setting keeps, as a track. */
class Track {
  constructor(log, rows) {
    this.rows = rows;
    this.points = new ChosenPoints(log.points, rows);
    /** Indices before which there is a gap. */
    this.breaks = new Set();
    /** Those of them where places were hidden: not even a gap is drawn. */
    this.hidden = new Set();
    for (const gap of log.gaps) {
      const index = lowerBound(rows, log.rowFrom((gap.from + gap.to) / 2));
      if (index > 0 && index < rows.length && log.time[rows[index - 1]] >= gap.from - 60_000) this.breaks.add(index);
    }
    for (const cut of log.cuts) {
      const index = lowerBound(rows, cut);
      if (index === 0 || index >= rows.length) continue;
      this.hidden.add(index);
      this.breaks.add(index);
    }
  }

  /** The indices `[from, to]` (`to` excluded) of a trip. */
  range(trip) {
    return { from: lowerBound(this.rows, trip.firstRow), to: lowerBound(this.rows, trip.lastRow + 1) };
  }
}

/** The index of the first of `values`, which rise, that is not below `value`. */
export function lowerBound(values, value) {
  let [low, high] = [0, values.length];
  while (low < high) {
    const middle = (low + high) >> 1;
    if (values[middle] < value) low = middle + 1;
    else high = middle;
  }
  return low;
}

const EARTH_RADIUS = 6_371_008.8;

/** Metres between two places nearby, in 1e-7 degrees. */
function metresBetween(lat1, lon1, lat2, lon2) {
  const radians = Math.PI / 180e7;
  return EARTH_RADIUS * Math.hypot((lat2 - lat1) * radians, nearX((lon2 - lon1) / 3.6e9, 0) * 2 * Math.PI * Math.cos((lat1 + lat2) / 2 * radians));
}

/** Rows are epochs in the order of time; times are milliseconds UTC. */
export class Log {
  #columns;
  #kinds;
  #verdicts;
  #speeds;
  #accuracies;
  #travelled = null;

  constructor(head, columns) {
    this.#columns = columns;
    [this.#verdicts, this.#speeds, this.#accuracies] = [columns.verdict, columns.speed, columns.accuracy];
    this.#kinds = head.verdicts.map(verdict => verdict.kind);
    Object.assign(this, head);
    this.time = columns.t;
    [this.first, this.last] = [this.summary.first_ms, this.summary.last_ms];
    this.points = new Points(this.rows);
    for (let row = 0; row < this.rows; row += 1) this.points.push(columns.lat[row] / 1e7, columns.lon[row] / 1e7);
    for (const trip of this.trips) [trip.firstRow, trip.lastRow] = [this.rowFrom(trip.from), this.rowFrom(trip.to + 1) - 1];
    const [kept, refused] = [[], []];
    for (let row = 0; row < this.rows; row += 1) {
      if (this.isKept(row)) kept.push(row);
      else if (this.kind(row) === "refused") refused.push(row);
    }
    this.refusedPoints = new ChosenPoints(this.points, refused);
    this.refused = refused;
    this.kept = new Track(this, Uint32Array.from(kept));
    for (const variant of this.whatIf) variant.track = new Track(this, variant.rows);
    this.legs = this.#makeLegs();
    this.decisions = this.#makeDecisions();
    this.speedMax = this.#findSpeedMax();
    this.hasAccuracy = columns.accuracy.some(value => value >= 0);
    this.hasAltitude = columns.altitude.some(value => value !== UNKNOWN_ALTITUDE);
    for (const trip of this.trips) trip.climb = this.climb(trip.firstRow, trip.lastRow);
  }

  // One row.

  kind(row) { return this.#kinds[this.#verdicts[row]]; }
  verdict(row) { return this.verdicts[this.#columns.verdict[row]]; }
  isKept(row) { return this.kind(row) === "kept"; }
  /** Whether the tracker believed its position. */
  isAdmitted(row) { return this.isKept(row) || this.kind(row) === "seen"; }
  hasFix(row) { return this.kind(row) !== "void"; }
  latitude(row) { return this.#columns.lat[row] / 1e7; }
  longitude(row) { return this.#columns.lon[row] / 1e7; }
  /** In m/s; null if it is not known. */
  speed(row) { return known(this.#speeds[row], UNKNOWN, 100); }
  /** In metres; null if it is not known. */
  accuracy(row) { return known(this.#accuracies[row], UNKNOWN, 10); }
  /** That are used; where there is no fix, those in view. */
  satellites(row) { return known(this.#columns.satellites[row], UNKNOWN, 1); }
  altitude(row) { return known(this.#columns.altitude[row], UNKNOWN_ALTITUDE, 1); }

  // Times.

  /** The first row not before a time; the count of rows if there is none. */
  rowFrom(time) { return lowerBound(this.time, time); }

  nearestRow(time) {
    const row = this.rowFrom(time);
    if (row === 0) return 0;
    return row === this.rows || time - this.time[row - 1] < this.time[row] - time ? row - 1 : row;
  }

  /** The last row up to a time that has an admitted fix; -1 if there is none. */
  lastFixRow(time) {
    let row = this.rowFrom(time + 1) - 1;
    while (row >= 0 && !this.isAdmitted(row)) row -= 1;
    return row;
  }

  tripAt(time) { return this.trips.find(trip => trip.from <= time && time <= trip.to); }
  stopAt(time) { return this.stops.find(stop => stop.from <= time && time < stop.to); }
  gapAt(time) { return this.gaps.find(gap => gap.from < time && time < gap.to); }
  haltAt(time) { return this.halts.find(halt => halt.from <= time && time < halt.to); }
  legAt(time) { return this.legs.find(leg => leg.kind !== "gap" && leg.from <= time && time < leg.to); }

  // Ranges.

  /** Bounds of the admitted fixes: what was refused would make the map too wide. Null if there are none. */
  bounds(from = 0, to = this.rows) {
    const box = { left: Infinity, right: -Infinity, top: Infinity, bottom: -Infinity };
    for (let row = from; row < to; row += 1) {
      if (!this.isAdmitted(row)) continue;
      const [x, y] = [this.points.x(row), this.points.y(row)];
      if (x < box.left) box.left = x;
      if (x > box.right) box.right = x;
      if (y < box.top) box.top = y;
      if (y > box.bottom) box.bottom = y;
    }
    return box.left <= box.right ? box : null;
  }

  /** The numbers of a range of time. Distance is that of trips; the average is that of the time under way. */
  measure(from, to) {
    this.#travelled ??= this.#travel();
    const [firstRow, lastRow] = [this.rowFrom(from), this.rowFrom(to + 1) - 1];
    const numbers = { from, to, metres: 0, moving: 0, speedMax: null, fixes: 0, kept: 0, refused: 0 };
    for (let row = firstRow; row <= lastRow; row += 1) {
      if (this.kind(row) === "refused") numbers.refused += 1;
      if (!this.hasFix(row)) continue;
      numbers.fixes += 1;
      if (this.isKept(row)) numbers.kept += 1;
      const speed = this.isAdmitted(row) ? this.speed(row) : null;
      if (speed !== null && speed > (numbers.speedMax ?? -1)) numbers.speedMax = speed;
    }
    for (const trip of this.trips) numbers.moving += Math.max(0, Math.min(to, trip.to) - Math.max(from, trip.from));
    if (lastRow > firstRow) numbers.metres = this.#travelled[lastRow] - this.#travelled[firstRow];
    numbers.climb = this.climb(firstRow, lastRow);
    numbers.average = numbers.moving > 0 ? numbers.metres / numbers.moving * 1000 : null;
    return numbers;
  }

  /** Metres up and down over the believed fixes of some rows; null where none has an altitude. */
  climb(firstRow, lastRow) {
    let [level, up, down] = [null, 0, 0];
    for (let row = firstRow; row <= lastRow; row += 1) {
      const altitude = this.isAdmitted(row) ? this.altitude(row) : null;
      if (altitude === null) continue;
      level ??= altitude;
      if (Math.abs(altitude - level) < CLIMB) continue;
      if (altitude > level) up += altitude - level;
      else down += level - altitude;
      level = altitude;
    }
    return level === null ? null : { up, down };
  }

  /** Metres travelled up to each row. The way within a trip is scaled so that the trip has the length that the tracker gave it. */
  #travel() {
    const { lat, lon } = this.#columns;
    const travelled = new Float64Array(this.rows);
    let total = 0;
    for (const [index, trip] of this.trips.entries()) {
      let [before, way] = [-1, 0];
      for (let row = trip.firstRow; row <= trip.lastRow; row += 1) {
        if (this.isAdmitted(row)) {
          if (before >= 0) way += this.#step(before, row, lat, lon);
          before = row;
        }
        travelled[row] = way;
      }
      const scale = way > 0 ? trip.metres / way : 0;
      for (let row = trip.firstRow; row <= trip.lastRow; row += 1) travelled[row] = total + travelled[row] * scale;
      total += way > 0 ? trip.metres : 0;
      travelled.fill(total, Math.max(trip.firstRow, trip.lastRow + 1), this.trips[index + 1]?.firstRow);
    }
    return travelled;
  }

  /** By speed while fixes are dense: positions wander. */
  #step(before, row, lat, lon) {
    const seconds = (this.time[row] - this.time[before]) / 1000;
    const [one, other] = [this.speed(before), this.speed(row)];
    if (seconds <= 10 && one !== null && other !== null) return (one + other) / 2 * seconds;
    return metresBetween(lat[before], lon[before], lat[row], lon[row]);
  }

  /** Of trips; of all believed fixes where there is no trip, as outside of the hours that are tracked. Not below 3 m/s. */
  #findSpeedMax() {
    let most = this.trips.reduce((top, trip) => Math.max(top, trip.maxSpeed ?? 0), 3);
    for (let row = 0; row < this.rows; row += 1) if (this.isAdmitted(row)) most = Math.max(most, this.speed(row) ?? 0);
    return most;
  }

  /** Trips, stops, and gaps of a minute and more, in the order of time. */
  #makeLegs() {
    const legs = [
      ...this.trips.map(trip => ({ kind: "trip", from: trip.from, to: trip.to, open: trip.open, trip, why: trip.start })),
      ...this.stops.map(stop => ({ kind: "stop", from: stop.from, to: stop.to, open: stop.open, stop, why: stop.why })),
      ...this.gaps.filter(gap => gap.to - gap.from >= 60_000).map(gap => ({ kind: "gap", from: gap.from, to: gap.to, open: gap.open, gap })),
    ];
    return legs.sort((one, other) => one.from - other.from || (one.kind === "gap" ? 1 : -1));
  }

  /** Everything that the tracker decided, in the order of time: { kind, time, decided, why and what it is about }. */
  #makeDecisions() {
    const decisions = [
      ...this.trips.map(trip => ({ kind: "departure", time: trip.from, decided: trip.start.at, why: trip.start, trip })),
      ...this.stops.map(stop => ({ kind: stop.why.reason === "start" ? "firstSeen" : "stop", time: stop.from, decided: stop.why.at, why: stop.why })),
      ...this.gaps.map(gap => ({ kind: "gap", time: gap.from, gap })),
      ...this.trips.filter(trip => trip.open).map(trip => ({ kind: "open", time: trip.to, trip })),
      ...this.crossings.map(crossing => ({ kind: "crossing", time: crossing.t, crossing })),
    ];
    return decisions.sort((one, other) => one.time - other.time);
  }

  fenceName(id) {
    return this.geofences.find(fence => fence.id === id)?.name || id;
  }
}

const known = (value, unknown, unit) => value === unknown ? null : value / unit;
