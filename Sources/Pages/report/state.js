// What the views share, and who wants to know when it changes.

export class State {
  #listeners = [];

  /** In milliseconds UTC; null while nothing is pointed at. */
  cursor = null;
  /** Whether the cursor stays where it is when the pointer goes on. */
  isHeld = false;
  isPlaying = false;
  /** The trip, stop or gap that is looked at; null for the whole log. */
  leg = null;
  /** `{ from, to }` in milliseconds, whose numbers are shown; or null. */
  range = null;
  /** Index in `whatIf`; 0 is what is in force. */
  variant = 0;
  /** "trip", "speed" or "accuracy". */
  colourBy = "trip";
  showsRaw = true;
  isUTC = true;
  /** Of speeds and lengths: a place in `UNITS`. */
  unit = 0;
  isDark = false;

  /** Calls `react` after one of `names` has changed. */
  on(names, react) {
    this.#listeners.push({ names, react });
  }

  set(changes) {
    const changed = Object.keys(changes).filter(name => this[name] !== changes[name]);
    Object.assign(this, changes);
    for (const { names, react } of this.#listeners) {
      if (names.some(name => changed.includes(name))) react();
    }
  }
}
