// Where the views look: one cursor for map and timeline, and the ways to move it.
import { describe } from "./why.js";

const NEAR = 3000; // milliseconds
const LINK = /^#t=(\d+|\d{4}-\d\d-\d\dT\d\d:\d\d(?::\d\d)?Z)$/;

export class Navigation {
  #log;
  #state;
  #tip;
  #track;
  #timeline;

  constructor(log, state, tip) {
    [this.#log, this.#state, this.#tip] = [log, state, tip];
  }

  /** The views need this object, so they come after it is made. */
  connect(track, timeline) {
    [this.#track, this.#timeline] = [track, timeline];
  }

  visibleRows() {
    return this.#timeline.visibleRows();
  }

  /** The time of the epoch that is near, else the time itself: a gap has times of its own. */
  #atEpoch(time) {
    const near = this.#log.time[this.#log.nearestRow(time)];
    return Math.abs(near - time) <= NEAR ? near : time;
  }

  /** The pointer is at a time, or nowhere. */
  point(time) {
    if (!this.#state.isHeld && !this.#state.isPlaying) this.#state.set({ cursor: time === null ? null : this.#atEpoch(time) });
  }

  /** The pointer has left. */
  let() {
    this.#tip.hide();
    this.point(null);
  }

  /** The cursor stays at a time, which the address of the page then names. */
  hold(time, isRevealed = false) {
    this.#tip.hide();
    const cursor = Math.round(this.#atEpoch(Math.max(this.#log.first, Math.min(this.#log.last, time))));
    this.#state.set({ cursor, isHeld: true });
    if (isRevealed) this.reveal();
    if (!this.#state.isPlaying) writeLink(`#t=${cursor}`);
  }

  reveal() {
    this.#timeline.reveal(this.#state.cursor);
    this.#track.reveal(this.#state.cursor);
  }

  release() {
    this.#tip.hide();
    this.#state.set({ cursor: null, isHeld: false });
    writeLink("#");
  }

  /** By some rows. */
  step(rows) {
    const row = this.#state.cursor === null ? 0 : this.#log.nearestRow(this.#state.cursor) + rows;
    this.hold(this.#log.time[Math.max(0, Math.min(this.#log.rows - 1, row))], true);
  }

  /** To the next decision, or with -1 to the one before. */
  jump(direction) {
    const time = this.#state.cursor ?? this.#log.first - 1;
    const { decisions } = this.#log;
    const decision = direction > 0 ? decisions.find(each => each.time > time) : decisions.findLast(each => each.time < time);
    if (decision) this.showDecision(decision);
  }

  showDecision(decision) {
    this.hold(decision.time, true);
    const { cursor } = this.#state;
    // The timeline may have moved, and by then the cursor may be elsewhere.
    requestAnimationFrame(() => requestAnimationFrame(() => {
      if (!this.#state.isHeld || this.#state.cursor !== cursor) return;
      this.#tip.show(...this.#timeline.placeOf(decision), ...describe(decision, this.#log));
      this.#tip.reveal();
    }));
  }

  /** Looks at a trip, stop or gap; a second time at the whole log again. */
  focus(leg) {
    if (!leg || leg === this.#state.leg) return this.showWhole();
    const edge = Math.max(6000, (leg.to - leg.from) * 0.06);
    this.#timeline.showTimes(leg.from - edge, leg.to + edge);
    this.#track.showLeg(leg);
    this.#state.set({ leg });
    this.hold(leg.from);
  }

  showWhole() {
    this.#timeline.showAll();
    this.#track.showAll();
    this.#state.set({ leg: null });
    this.release();
  }

  /** The address of this page at the cursor. */
  get link() {
    return `${location.href.split("#")[0]}#t=${Math.round(this.#state.cursor)}`;
  }

  /** To the time in the address of the page; returns whether it has one. */
  followLink() {
    const found = LINK.exec(location.hash);
    const time = found ? (/^\d+$/.test(found[1]) ? Number(found[1]) : Date.parse(found[1])) : NaN;
    if (!Number.isFinite(time)) return false;
    this.hold(time, true);
    return true;
  }
}

function writeLink(hash) {
  if (location.hash === hash || (hash === "#" && !location.hash)) return;
  try {
    history.replaceState(null, "", hash === "#" ? location.href.split("#")[0] : hash);
  } catch {
    // Some viewers of files allow no address of their own; the page works without.
  }
}
