// How late locations were when they arrived: a bar for each request, from its newest to its oldest location. While nothing
// arrives there is a hatched band, and what was waiting comes after it as a tall bar.
import { Colours, FONT, Surface, TIME_STEPS, hatch, traceCross } from "../common/canvas.js";
import { clock, plural, span } from "../common/words.js";

const [LEFT, RIGHT, TOP, BOTTOM] = [62, 12, 10, 34];
/** A delay beyond this is none of a connection: the device sends an old log, or has a wrong clock. */
const REPLAY_AFTER = 12 * 3600 * 1000;
const AHEAD_AFTER = 60 * 1000;

/** A log that is played this much faster than it was recorded is not played at its own speed. */
const FAST = 3;

/**
 * The devices that send an old log, by name. `offset` is subtracted from their delays; where `isFast`, the log is played faster
 * than it was recorded and there is no delay to speak of.
 * @param {object[]} requests newest first.
 */
export function replays(requests) {
  const found = new Map();
  for (const { device, at, newest, new: stored } of requests) {
    if (!stored) continue;
    const replay = found.get(device) ?? { offset: Infinity, last: { at, newest }, isFast: false };
    replay.offset = Math.min(replay.offset, at - newest);
    replay.isFast = replay.last.newest - newest > FAST * Math.max(1000, replay.last.at - at);
    found.set(device, replay);
  }
  for (const [device, { offset }] of found) {
    if (offset <= REPLAY_AFTER && offset >= -AHEAD_AFTER) found.delete(device);
  }
  return found;
}

/** How late the newest and the oldest location of a request were, in milliseconds; null where that means nothing. */
export function delayOf(request, replay) {
  if (!request.new || replay?.isFast) return null;
  const offset = replay?.offset ?? 0;
  return { least: request.at - request.newest - offset, most: request.at - request.oldest - offset };
}

/** Times in which nothing arrived for much longer than is usual: [{ from, to }], `to` null when it lasts. */
export function pauses(arrivals, now) {
  const times = arrivals.map(each => each.at).sort((one, other) => one - other);
  const steps = times.slice(1).map((time, index) => time - times[index]);
  const usual = [...steps].sort((one, other) => one - other)[Math.floor(steps.length / 2)] ?? 5000;
  const limit = Math.max(8000, 3 * usual);
  const found = steps.flatMap((step, index) => (step > limit ? [{ from: times[index], to: times[index + 1] }] : []));
  if (times.length && now - times.at(-1) > limit) found.push({ from: times.at(-1), to: null });
  return found;
}

export class DelayPlot {
  #box;
  #canvas = document.createElement("canvas");
  #surface = new Surface(this.#canvas);
  #colours = new Colours();

  constructor(box) {
    this.#box = box;
    this.#canvas.setAttribute("role", "img");
    box.append(this.#canvas);
  }

  /**
   * @param {object} state `requests` newest first, `colours` (device → CSS variable), `losses` of the page's link, `starts` of the
   *   collector, `now` by the collector's clock, `reach` in milliseconds.
   * @returns {string} what the plot shows, in words.
   */
  draw({ requests, colours, losses, starts, now, reach }) {
    const seen = requests.filter(request => request.at > now - reach);
    const old = replays(requests);
    const arrivals = seen.filter(request => request.new > 0).map(request => ({
      at: request.at, device: request.device, new: request.new,
      ...(delayOf(request, old.get(request.device)) ?? { least: 0, most: 0 }),
    }));
    const plot = this.#begin(now, reach, Math.max(10000, ...arrivals.map(each => each.most)));
    const stops = pauses(arrivals, now);
    if (plot) {
      for (const pause of stops) plot.pause(pause.from, pause.to ?? now);
      plot.axes();
      for (const start of starts) plot.start(start);
      for (const loss of losses) plot.loss(loss.from, loss.to ?? now);
      for (const arrival of arrivals) plot.bar(arrival, colours.get(arrival.device) ?? "--mute");
      for (const request of seen) if (!request.new && !request.repeated) plot.failure(request.at);
    }
    const words = describe(arrivals, stops, seen, old, now, reach);
    this.#canvas.setAttribute("aria-label", `Delay of locations at their arrival. ${words}`);
    return words;
  }

  #begin(now, reach, most) {
    const [width, height] = [this.#box.clientWidth, this.#box.clientHeight];
    if (!width || !height) return null;
    this.#surface.fit(width, height);
    const canvas = this.#surface.clear();
    canvas.font = `12px ${FONT}`;
    this.#colours.forget();
    return new Drawing(canvas, this.#colours, { width, height, now, reach, most: tickStep(most) * 2 });
  }
}

/** Half the height of an axis on which `most` fits, as a length of time that people count in. */
function tickStep(most) {
  return TIME_STEPS.find(each => 2 * each >= most) ?? Math.ceil(most / 2 / 86400000) * 86400000;
}

/** One drawing of the plot. */
class Drawing {
  #canvas;
  #colours;
  #frame;

  constructor(canvas, colours, frame) {
    [this.#canvas, this.#colours, this.#frame] = [canvas, colours, frame];
  }

  #x(time) {
    const { width, now, reach } = this.#frame;
    return Math.max(LEFT, width - RIGHT - (now - time) / reach * (width - LEFT - RIGHT));
  }

  #y(delay) {
    const { height, most } = this.#frame;
    return height - BOTTOM - Math.max(0, Math.min(1, delay / most)) * (height - TOP - BOTTOM);
  }

  #colour(name) { return this.#colours.of(name); }

  #text(text, x, y, align, colour = "--mute") {
    this.#canvas.fillStyle = this.#colour(colour);
    this.#canvas.textAlign = align;
    this.#canvas.fillText(text, x, y);
  }

  axes() {
    const { width, height, now, reach, most } = this.#frame;
    const canvas = this.#canvas;
    canvas.strokeStyle = this.#colour("--rule");
    canvas.lineWidth = 1;
    canvas.beginPath();
    for (const delay of [0, most / 2, most]) {
      const y = Math.round(this.#y(delay)) + 0.5;
      canvas.moveTo(LEFT, y);
      canvas.lineTo(width - RIGHT, y);
      this.#text(delay ? span(delay).replace(" 00 s", "").replace(" 00 min", "") : "0", LEFT - 8, y + 4, "right");
    }
    canvas.stroke();
    const marks = width < 500 ? 2 : 5;
    for (let mark = 0; mark < marks; mark += 1) {
      const time = now - reach * (1 - mark / marks);
      this.#text(clock(time), Math.max(LEFT, this.#x(time)), height - 4, "left");
    }
    this.#text("now", width - RIGHT, height - 4, "right");
  }

  bar({ at, least, most }, colour) {
    const [top, bottom] = [this.#y(most), this.#y(least)];
    this.#canvas.fillStyle = this.#colour(colour);
    this.#canvas.fillRect(this.#x(at) - 2, top - 2, 4, Math.max(4, bottom - top + 2));
  }

  /** Nothing arrived. */
  pause(from, to) {
    const canvas = this.#canvas;
    const [left, right, top, bottom] = [this.#x(from), this.#x(to), TOP, this.#frame.height - BOTTOM];
    if (right - left < 4) return;
    canvas.fillStyle = this.#colour("--soft");
    canvas.fillRect(left, top, right - left, bottom - top);
    canvas.strokeStyle = this.#colour("--rule");
    canvas.lineWidth = 1.5;
    hatch(canvas, left, top, right, bottom, 9);
    const wide = text => canvas.measureText(text).width + 10;
    const text = [`nothing for ${span(to - from)}`, span(to - from)].find(each => wide(each) <= right - left);
    if (!text) return;
    const width = wide(text);
    canvas.fillStyle = this.#colour("--panel");
    canvas.fillRect((left + right - width) / 2, top + 6, width, 18);
    this.#text(text, (left + right) / 2, top + 19, "center", "--ink");
  }

  /** A request after which nothing was stored. */
  failure(at) {
    const [x, y] = [this.#x(at), this.#frame.height - BOTTOM + 9];
    if (x <= LEFT) return;
    const canvas = this.#canvas;
    canvas.strokeStyle = this.#colour("--bad");
    canvas.lineWidth = 2;
    canvas.beginPath();
    traceCross(canvas, x, y, 4);
    canvas.stroke();
  }

  /** This page had no connection: what arrived then was seen later. */
  loss(from, to) {
    const [left, right] = [this.#x(from), this.#x(to)];
    this.#canvas.fillStyle = this.#colour("--bad");
    this.#canvas.fillRect(left, TOP - 6, Math.max(2, right - left), 3);
  }

  start(at) {
    const x = this.#x(at);
    if (x <= LEFT) return;
    const canvas = this.#canvas;
    canvas.strokeStyle = this.#colour("--mute");
    canvas.lineWidth = 1;
    canvas.setLineDash([2, 3]);
    canvas.beginPath();
    canvas.moveTo(x, TOP);
    canvas.lineTo(x, this.#frame.height - BOTTOM);
    canvas.stroke();
    canvas.setLineDash([]);
    // To the left: what arrived since is to the right.
    const hasRoom = x > LEFT + 110;
    this.#text("collector started", x + (hasRoom ? -4 : 4), this.#frame.height - BOTTOM - 5, hasRoom ? "right" : "left");
  }
}

function describe(arrivals, stops, seen, old, now, reach) {
  if (!arrivals.length) return `Nothing was stored in the last ${span(reach).replace(" 00 s", "").replace(" 00 min", "")}.`;
  const total = arrivals.reduce((sum, each) => sum + each.new, 0);
  const isFast = old.get(arrivals[0].device)?.isFast;
  const sentences = [
    plural(total, "location", "locations") + (isFast ? "." : `, the latest of them at most ${span(Math.max(0, arrivals[0].most))} late.`)];
  const failures = seen.filter(request => !request.new && !request.repeated).length;
  for (const { from, to } of stops.slice(-2)) {
    if (to === null) {
      sentences.push(`Nothing since ${clock(from)}, for ${span(now - from)}.`);
    } else {
      const after = arrivals.filter(each => each.at >= to && each.at < to + 10000);
      const late = after.reduce((most, each) => Math.max(most, each.most), 0);
      const count = after.reduce((sum, each) => sum + each.new, 0);
      const lateness = late > 0 ? ` up to ${span(late)} late` : "";
      sentences.push(`Nothing from ${clock(from)} to ${clock(to)} (${span(to - from)}), then ${plural(count, "location", "locations")}${lateness}.`);
    }
  }
  if (failures) sentences.push(`${plural(failures, "request was", "requests were")} not stored (×).`);
  const kinds = [...old.values()];
  if (kinds.some(each => each.isFast)) sentences.push("A log that is played faster than it was recorded has no delay.");
  if (kinds.some(each => !each.isFast)) sentences.push("Of a replayed log the smallest delay counts as none.");
  return sentences.join(" ");
}

