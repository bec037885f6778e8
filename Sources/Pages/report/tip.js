// The small box beside the pointer.
import { byId } from "./dom.js";

const PHONE_WIDTH = 760;

export const isPhone = () => innerWidth <= PHONE_WIDTH;

export class Tip {
  #box = byId("tip");

  constructor() {
    // It explains what was chosen before the focus went on.
    addEventListener("focusin", () => this.hide());
  }

  /** Over the map, near a place of the window; on a phone the style sheet puts it below the timeline. */
  show(x, y, ...children) {
    this.#box.replaceChildren(...children);
    this.#box.hidden = false;
    const { width, height } = this.#box.getBoundingClientRect();
    const { right } = byId("map").getBoundingClientRect();
    this.#box.style.left = `${Math.max(6, Math.min(right - width - 6, x + 14))}px`;
    this.#box.style.top = `${y - height - 14 > 4 ? y - height - 14 : y + 18}px`;
  }

  /** Scrolls to it where it has a place in the page. */
  reveal() {
    if (isPhone()) this.#box.scrollIntoView({ block: "nearest" });
  }

  hide() {
    this.#box.hidden = true;
  }
}
