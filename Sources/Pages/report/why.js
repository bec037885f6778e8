// The evidence of a decision, in words and as bars against the threshold.
import { clock, span, speedIn, units } from "../common/words.js";
import { element } from "./dom.js";
import { length } from "./words.js";

/** A bar; the mark is where the threshold lies. */
function meter(name, value, unit, most, threshold = null, relation = "") {
  if (value == null) return null;
  const scale = Math.max(most, threshold == null ? 0 : threshold * 1.5);
  const bar = element("span", { className: "bar" });
  const fill = element("i");
  fill.style.width = `${Math.max(0, Math.min(100, value / scale * 100))}%`;
  bar.append(fill);
  if (threshold != null) {
    const mark = element("b");
    mark.style.left = `${threshold / scale * 100}%`;
    bar.append(mark);
  }
  const text = `${Math.round(value)} ${unit}${threshold == null ? "" : `, ${relation} ${Math.round(threshold)}`}`;
  return element("div", { className: "meter" }, element("span", {}, name), bar, element("span", {}, text));
}

/** The same for paper, where bars are not needed. */
function inWords(why, isEnd) {
  const parts = [];
  const add = (name, value, relation, threshold) => {
    if (value != null) parts.push(`${name} ${Math.round(value)} m${threshold == null ? "" : ` (${relation} ${Math.round(threshold)})`}`);
  };
  add("evidence", why.evidence, isEnd ? "below" : "needs", why.evidenceMin);
  add("distance", why.distance, "circle", why.distanceMax);
  if (why.speed != null) parts.push(speedIn(why.speed));
  if (why.accuracy != null) parts.push(`±${Math.round(why.accuracy)} m`);
  return element("div", { className: "onpaper" }, parts.join(", "));
}

/**
 * @param {number} from when the trip or stop begins, which may lie long before the decision.
 * @param {boolean} isEnd whether a trip ends: evidence then has to stay below its threshold.
 */
export function explain(why, from, isEnd) {
  const late = why.at - from;
  const decided = late >= 1000
    ? `Decided at ${clock(why.at)}, and dated back by ${span(late)}.`
    : `Decided at ${clock(why.at)}, at once.`;
  return [
    element("p", { className: "words" }, why.words),
    element("p", {}, decided),
    meter("evidence", why.evidence, "m", 45, why.evidenceMin, isEnd ? "below" : "needs"),
    meter("distance", why.distance, "m", 45, why.distanceMax, "circle"),
    meter("speed", why.speed == null ? null : why.speed * units.chosen.perSecond, units.chosen.speed, 60),
    meter("accuracy", why.accuracy, "m", 60),
    inWords(why, isEnd),
    why.other == null ? null : element("p", { className: "other" }, why.other),
  ].filter(Boolean);
}

const TITLES = { departure: ({ trip }) => `Trip ${trip.number} departs`, stop: () => "Stops", firstSeen: () => "Parked when first seen" };

const CROSSINGS = { enter: "Enters", exit: "Leaves", dwell: "Stays in" };

/** What a tip over a decision says. */
export function describe(decision, log) {
  if (decision.kind === "gap") return describeGap(decision.gap);
  if (decision.kind === "open") {
    const { number, from, to, metres } = decision.trip;
    return [
      element("div", { className: "title" }, `Trip ${number} is still under way at the end of the log`),
      element("p", {}, `${length(metres)} in ${span(to - from)} so far`),
    ];
  }
  if (decision.kind === "crossing") {
    const { action, id, t } = decision.crossing;
    const verb = CROSSINGS[String(action).toLowerCase()] ?? action;
    return [element("div", { className: "title" }, `${verb} ${log.fenceName(id)}, ${clock(t)}`), element("p", {}, "a geofence")];
  }
  const title = element("div", { className: "title" }, `${TITLES[decision.kind](decision)}, ${clock(decision.time)}`);
  return [title, ...explain(decision.why, decision.time, decision.kind !== "departure")];
}

export function describeGap(gap) {
  return [
    element("div", { className: "title" }, `Gap of ${span(gap.to - gap.from)}`),
    element("p", {}, `${clock(gap.from)} – ${gap.open ? "end of the log" : clock(gap.to)}`),
    element("p", {}, gap.words),
  ];
}
