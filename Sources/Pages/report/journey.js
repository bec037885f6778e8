// Trips, stops and gaps as a table, each with its reason.
import { Colours } from "../common/canvas.js";
import { amount, day, minutes, span, speedIn } from "../common/words.js";
import { byId, cell, element, number, table } from "./dom.js";
import { isPhone } from "./tip.js";
import { averageWords, climbWords, length, longDay, shortSpan, zoneName } from "./words.js";
import { explain } from "./why.js";

const NAMES = { stop: ["Parked", "P"], gap: ["Gap", "!"] };

export class Journey {
  #log;
  #state;
  #navigation;
  #panel = byId("journey");
  #rows = new Map();
  #colours = new Colours();

  constructor(log, state, navigation) {
    [this.#log, this.#state, this.#navigation] = [log, state, navigation];
    state.on(["isUTC", "unit"], () => this.build());
    state.on(["isDark"], () => this.recolour());
    state.on(["cursor", "leg"], () => this.#mark());
    this.build();
  }

  build() {
    const { legs } = this.#log;
    this.#rows.clear();
    if (!legs.length) {
      this.#panel.replaceChildren(element("p", {}, `${capital(this.#log.nothing ?? "no trips, stops or gaps")}.`));
      return;
    }
    const rows = [];
    const isLong = day(this.#log.first) !== day(this.#log.last);
    legs.forEach((leg, index) => {
      if (isLong && (index === 0 || day(legs[index - 1].from) !== day(leg.from))) {
        rows.push(element("tr", { className: "day" }, element("th", { scope: "rowgroup", colSpan: 3 }, longDay(leg.from))));
      }
      const row = this.#row(leg);
      this.#rows.set(leg, row);
      rows.push(row);
    });
    const heads = [`${zoneName()}`, "what", "length, time>"];
    this.#panel.replaceChildren(table("Trips, stops and gaps in the order of time", heads, rows));
    this.recolour();
    this.#mark();
  }

  /** Gives trips the colours of the theme. */
  recolour() {
    this.#colours.forget();
    for (const [{ trip }, row] of this.#rows) {
      if (trip) row.querySelector(".badge").style.background = this.#colours.of(`--trips/${this.#log.trips.indexOf(trip)}`);
    }
  }

  #row(leg) {
    const [name, sign] = leg.trip ? [`Trip ${leg.trip.number}`, String(leg.trip.number)] : NAMES[leg.kind];
    const badge = element("span", { className: `badge ${leg.kind}`, ariaHidden: "true" }, sign);
    const button = element("button", { type: "button" }, name);
    const row = element("tr", { className: "leg" },
      cell(minutes(leg.from), leg.open ? "…" : minutes(leg.to)),
      cell([element("div", { className: "what" }, badge, button), ...this.#notes(leg)]),
      leg.trip ? number(length(leg.trip.metres), shortSpan(leg.to - leg.from)) : number(shortSpan(leg.to - leg.from)));
    row.addEventListener("click", event => {
      if (!event.target.closest("details")) this.#navigation.focus(leg);
    });
    return row;
  }

  #notes(leg) {
    const note = text => element("div", { className: "sub" }, text);
    if (leg.gap) return [note(leg.gap.words)];
    if (leg.stop) return [reason(leg.why.reason === "start" ? "first seen here" : "why it stops", leg.why, leg.from, true)];
    const { metres, maxSpeed, idle, climb, kept, start, end, open, from, to } = leg.trip;
    const facts = [
      averageWords(metres, to - from), maxSpeed == null ? null : `at most ${speedIn(maxSpeed)}`, idle >= 1000 ? `${span(idle)} halted` : null, climbWords(climb), `${amount(kept)} kept`,
    ];
    const endsInStop = this.#log.stops.some(stop => stop.from === to);
    return [
      note(facts.filter(Boolean).join(", ")), open ? note("still under way at the end of the log") : null,
      reason("why it departs", start, leg.from, false), end && !endsInStop ? reason("why it ends", end, to, true) : null,
    ].filter(Boolean);
  }

  /** The row of the leg that is looked at, else of the time that is held. */
  #mark() {
    const { leg, cursor, isHeld } = this.#state;
    const current = leg ?? (isHeld && cursor !== null ? this.#log.legAt(cursor) : null);
    for (const [each, row] of this.#rows) {
      const isNew = each === current && !row.classList.contains("on");
      row.classList.toggle("on", each === current);
      if (isNew && !isPhone() && !this.#panel.hidden) row.scrollIntoView({ block: "nearest" });
    }
  }
}

const capital = text => text.charAt(0).toUpperCase() + text.slice(1);

function reason(title, why, from, isEnd) {
  return element("details", { className: "why" }, element("summary", {}, title), ...explain(why, from, isEnd));
}
