// Plays the log by its clock, not by its fixes: a gap lasts as long as it did.
import { byId } from "./dom.js";

const LONGEST_FRAME = 100; // milliseconds; a page that was hidden does not jump

export class Player {
  #log;
  #state;
  #navigation;
  #scale;
  #timeline;
  #last = 0;

  constructor(log, state, navigation, scale, timeline) {
    [this.#log, this.#state, this.#navigation, this.#scale, this.#timeline] = [log, state, navigation, scale, timeline];
  }

  toggle() {
    if (this.#state.isPlaying) return this.#stop();
    const { cursor } = this.#state;
    const isAtEnd = cursor === null || cursor >= this.#log.last - 1000;
    this.#state.set({ isPlaying: true });
    this.#navigation.hold(isAtEnd ? Math.max(this.#log.first, this.#timeline.from) : cursor);
    this.#last = performance.now();
    requestAnimationFrame(now => this.#tick(now));
  }

  #tick(now) {
    const { isPlaying, cursor } = this.#state;
    if (!isPlaying || cursor === null) return this.#stop();
    const step = Math.max(0, Math.min(LONGEST_FRAME, now - this.#last)) * Number(byId("rate").value);
    this.#last = now;
    // Shortened parking passes faster.
    const time = this.#scale.timeAt(this.#scale.lengthAt(cursor) + step);
    this.#state.set({ cursor: Math.min(time, this.#log.last), isHeld: true });
    this.#navigation.reveal();
    if (time >= this.#log.last) return this.#stop();
    requestAnimationFrame(next => this.#tick(next));
  }

  #stop() {
    this.#state.set({ isPlaying: false });
    if (this.#state.cursor !== null) this.#navigation.hold(this.#state.cursor);
  }
}
