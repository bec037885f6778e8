// The line between map and timeline: what is known at the cursor. And the numbers of a range.
import { amount, clock, day, plural, span, speedIn, zone } from "../common/words.js";
import { byId, element } from "./dom.js";
import { climbWords, length, period, verdictWords, zoneName } from "./words.js";

const FAR = 3000; // milliseconds from the nearest epoch

const bit = (text, className = "") => element("span", { className }, text);

export class Readout {
  #log;
  #state;
  #time = document.querySelector(".r-time");
  #rest = document.querySelector(".r-rest");
  #slider = byId("timeline");

  constructor(log, state) {
    [this.#log, this.#state] = [log, state];
    state.on(["cursor", "isUTC", "unit"], () => this.update());
    state.on(["range", "isUTC", "unit"], () => this.#updateRange());
    this.update();
  }

  update() {
    const { cursor } = this.#state;
    const log = this.#log;
    if (cursor === null) {
      this.#time.textContent = `${period(log.first, log.last)} ${zoneName()}`;
      const hint = matchMedia("(hover: hover)").matches
        ? "point at map or timeline; click to hold; drag over time to zoom; ? shows the keys" : "drag on the timeline, tap on the track";
      this.#rest.replaceChildren(bit(hint, "mute"));
    } else {
      const row = log.nearestRow(cursor);
      const isFar = Math.abs(log.time[row] - cursor) > FAR || !log.hasFix(row);
      const time = isFar ? cursor : log.time[row];
      this.#time.textContent = `${day(log.first) === day(log.last) ? "" : `${day(time).slice(5)} `}${clock(time)}${zone.isUTC ? " UTC" : ""}`;
      const isStill = !isFar && log.haltAt(time);
      const bits = isFar ? this.#withoutFix(time, row) : this.#fix(row);
      this.#rest.replaceChildren(bit(this.#stateAt(time, isStill), "strong"), ...bits);
    }
    this.#slider.setAttribute("aria-valuenow", Math.round(((cursor ?? log.first) - log.first) / (log.last - log.first || 1) * 100));
    this.#slider.setAttribute("aria-valuetext", [this.#time, ...this.#rest.children].map(each => each.textContent).join(", "));
  }

  #stateAt(time, isStill) {
    const trip = this.#log.stopAt(time) ? null : this.#log.tripAt(time);
    if (trip) return `trip ${trip.number}, ${isStill ? "halted" : "under way"}`;
    return this.#log.stopAt(time) || this.#log.stops.some(stop => stop.open && stop.from <= time) ? "parked" : "not known yet";
  }

  /** @param {number} near row that is nearest. */
  #withoutFix(time, near) {
    const log = this.#log;
    const gap = log.gapAt(time);
    const row = log.lastFixRow(time);
    const isVoid = !log.hasFix(near) && Math.abs(log.time[near] - time) <= FAR;
    const inView = log.satellites(near);
    return [
      bit(gap ? `gap: ${gap.words}` : "no fix", "bad"),
      isVoid ? bit(inView === null ? "satellites in view: not reported" : `${plural(inView, "satellite")} in view`) : null,
      bit(row < 0 ? "no fix before" : `last fix ${span(time - log.time[row])} before`, "mute"),
    ].filter(Boolean);
  }

  #fix(row) {
    const log = this.#log;
    const [speed, accuracy, satellites, altitude, kind] = [log.speed(row), log.accuracy(row), log.satellites(row), log.altitude(row), log.kind(row)];
    return [
      speed === null ? null : bit(speedIn(speed), "strong"),
      accuracy === null ? null : bit(`±${accuracy.toFixed(accuracy < 10 ? 1 : 0)} m`),
      satellites === null ? null : bit(plural(satellites, "satellite"), "wide"),
      altitude === null ? null : bit(`${altitude} m high`, "wide"),
      bit(verdictWords(log.verdict(row)), kind === "refused" ? "bad" : kind === "kept" ? "strong" : "mute"),
      bit(`${log.latitude(row).toFixed(5)}, ${log.longitude(row).toFixed(5)}`, "mute wide"),
    ].filter(Boolean);
  }

  #updateRange() {
    const { range } = this.#state;
    const box = byId("range");
    box.hidden = !range;
    if (!range) return;
    const numbers = this.#log.measure(range.from, range.to);
    box.firstElementChild.textContent = [
      `${clock(range.from)} – ${clock(range.to)}: ${span(range.to - range.from)}`, length(numbers.metres),
      numbers.average === null ? null : `on average ${speedIn(numbers.average)} under way`,
      numbers.speedMax === null ? null : `at most ${speedIn(numbers.speedMax)}`,
      climbWords(numbers.climb), plural(numbers.fixes, "fix", "fixes"), `${amount(numbers.kept)} kept`, numbers.refused ? `${amount(numbers.refused)} refused` : null,
    ].filter(Boolean).join(", ");
  }
}
