// The heading's figures and the legend of the map.
import { Colours } from "../common/canvas.js";
import { amount, speedIn } from "../common/words.js";
import { byId, element } from "./dom.js";
import { ACCURACY_BANDS } from "./track.js";
import { bytes, length, percent, period, shortSpan, zoneName } from "./words.js";

const sum = (items, value) => items.reduce((total, item) => total + value(item), 0);

export class Summary {
  #log;
  #state;
  #colours = new Colours();

  constructor(log, state) {
    [this.#log, this.#state] = [log, state];
    state.on(["isUTC"], () => this.#showPeriod());
    state.on(["variant", "colourBy", "showsRaw", "isDark", "unit"], () => this.recolour());
    state.on(["unit"], () => this.#showFigures());
    byId("name").textContent = log.name;
    this.#showFigures();
    if (log.tiles) byId("notice").append(" If you switch map tiles on, their server learns where you look.");
    this.#showPeriod();
    this.recolour();
  }

  #showFigures() {
    byId("figures").replaceChildren(...this.#figures());
  }

  #showPeriod() {
    const { first, last } = this.#log;
    byId("when").textContent = `${period(first, last)} ${zoneName()}, ${shortSpan(last - first)}`;
  }

  #figures() {
    const { summary, trips, whatIf } = this.#log;
    const figure = (name, value, note = "", className = "") =>
      element("div", { className }, element("dt", {}, name), element("dd", {}, value, " ", element("small", {}, note)));
    const upload = whatIf[0]?.bytes;
    const climbed = { up: sum(trips, trip => trip.climb?.up ?? 0), down: sum(trips, trip => trip.climb?.down ?? 0) };
    return [
      figure("distance", length(sum(trips, trip => trip.metres))),
      figure(summary.trips === 1 ? "trip" : "trips", amount(summary.trips)),
      figure(summary.stops === 1 ? "stop" : "stops", amount(summary.stops)),
      figure("under way", shortSpan(sum(trips, trip => trip.to - trip.from))),
      climbed.up || climbed.down ? figure("climb", `${Math.round(climbed.up)} m`, `${Math.round(climbed.down)} m down`, "wide") : null,
      figure("fixes", amount(summary.fixes), "", "wide"),
      figure("kept", amount(summary.published), percent(summary.published, summary.fixes)),
      upload == null ? null : figure("upload", bytes(upload), whatIf[0].kept ? `${Math.round(upload / whatIf[0].kept)} B each` : ""),
      figure(summary.gaps === 1 ? "gap" : "gaps", amount(summary.gaps), "", "wide"),
    ].filter(Boolean);
  }

  /** The legend, in the colours of the theme. */
  recolour() {
    this.#colours.forget();
    const { colourBy, showsRaw, variant } = this.#state;
    const { gaps, refused, geofences, whatIf } = this.#log;
    const key = (colour, text) => {
      const line = element("i");
      line.style.background = this.#colours.of(colour);
      return element("span", {}, line, text);
    };
    const parts = [];
    if (showsRaw) parts.push(key("--raw", "fix"));
    if (colourBy === "trip") parts.push(key("--trips/0", "kept"));
    if (colourBy === "speed") parts.push(...this.#ramp());
    if (colourBy === "accuracy") {
      parts.push(...ACCURACY_BANDS.map(([most, place]) => key(`--ramp/${place}`, most === Infinity ? "more" : `≤ ${most} m`)));
    }
    if (variant) parts.push(key("--variant", whatIf[variant].label));
    if (gaps.length) parts.push(key("--gap", "gap"));
    if (showsRaw && refused.length) parts.push(key("--bad", "refused"));
    if (geofences.length) parts.push(key("--fence", "geofence"));
    byId("legend").replaceChildren(...parts);
  }

  #ramp() {
    const ramp = element("span", { className: "ramp" });
    ramp.style.background = `linear-gradient(90deg, ${this.#colours.of("--ramp").replaceAll(" ", ",")})`;
    return ["0", ramp, speedIn(this.#log.speedMax)];
  }
}
