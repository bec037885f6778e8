// The page's own connection to the collector: whether what is shown is still true.

/** The collector says something at least every two seconds. */
const SILENT_AFTER = 6000;
const RENEW_AFTER = 15000;

/**
 * Keeps a stream of events open, and continues where it broke off.
 *
 * States: `connecting` at first, `live`, `silent` when the connection stands but nothing is heard, `lost` when there is none.
 */
export class Link {
  #source;
  #state = "connecting";
  #heard = performance.now();
  #opened = 0;
  /** Id of the last event, `RUN-NUMBER`. */
  #last = "";
  #handlers;
  #losses = [];

  /**
   * @param {object} handlers `reset`, `rows`, `request`, `remote`, `beat`: each is given the data of its event, and `reset` whether events
   *   were missed before it; `changed` after a new state.
   */
  constructor(handlers) {
    this.#handlers = handlers;
    this.#open();
    setInterval(() => this.#watch(), 1000);
  }

  get state() { return this.#state; }

  /** Milliseconds since the collector was heard. */
  get silence() { return performance.now() - this.#heard; }

  /** When there was no connection: [{ from, to }] in UTC milliseconds, `to` null while it lasts. */
  get losses() { return this.#losses; }

  #open() {
    this.#source?.close();
    this.#opened = performance.now();
    // A new EventSource does not say by itself where the old one was.
    const source = new EventSource(this.#last ? `events?after=${encodeURIComponent(this.#last)}` : "events");
    this.#source = source;
    source.addEventListener("open", () => this.#hear());
    source.addEventListener("error", () => this.#enter("lost"));
    source.addEventListener("beat", event => {
      this.#hear();
      this.#handlers.beat(JSON.parse(event.data));
    });
    for (const name of ["reset", "rows", "request", "remote"]) {
      source.addEventListener(name, event => {
        this.#hear();
        if (name !== "reset" && !isLater(event.lastEventId, this.#last)) return;
        const isAfterHole = this.#last !== "" && isLater(event.lastEventId, this.#last, 0);
        this.#last = event.lastEventId;
        this.#handlers[name](JSON.parse(event.data), isAfterHole);
      });
    }
  }

  #hear() {
    this.#heard = performance.now();
    this.#enter("live");
  }

  #watch() {
    const waited = performance.now() - Math.max(this.#heard, this.#opened);
    if (this.#state === "live" && waited > SILENT_AFTER) this.#enter("silent");
    // A browser gives up after some errors, and does not notice a connection that leads nowhere.
    if (waited > RENEW_AFTER || (this.#source.readyState === EventSource.CLOSED && waited > 2000)) this.#open();
    if (this.#state !== "live") this.#handlers.changed();
  }

  #enter(state) {
    if (state === this.#state) return;
    const last = this.#losses.at(-1);
    if (state === "live" && last && last.to === null) last.to = Date.now();
    if (state !== "live" && this.#state === "live") this.#losses.push({ from: Date.now(), to: null });
    if (this.#losses.length > 100) this.#losses.shift();
    this.#state = state;
    this.#handlers.changed();
  }
}

/** Whether an event is not one that was handled before; of another life of the collector, one with a number above `least`. */
function isLater(id, last, least = -1) {
  const [run, number] = id.split("-");
  const [lastRun, lastNumber] = last.split("-");
  return Number(number) > (run === lastRun ? Number(lastNumber) : least);
}
