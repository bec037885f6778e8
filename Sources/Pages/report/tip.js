// The small box beside the pointer.
import { byId } from "./dom.js";

const PHONE_WIDTH = 760;

export const isPhone = () => innerWidth <= PHONE_WIDTH;

export class Tip {
  #box = byId("tip");

  /** Over the map, near a place of the window; on a phone at the lower edge of the map, where no finger covers it. */
  show(x, y, ...children) {
    this.#box.replaceChildren(...children);
    this.#box.hidden = false;
    const { width, height } = this.#box.getBoundingClientRect();
    const { right, bottom } = byId("map").getBoundingClientRect();
    if (isPhone()) {
      this.#moveTo(8, Math.max(4, bottom - height - 8));
    } else {
      this.#moveTo(Math.max(6, Math.min(right - width - 6, x + 14)), y - height - 14 > 4 ? y - height - 14 : y + 18);
    }
  }

  hide() {
    this.#box.hidden = true;
  }

  #moveTo(left, top) {
    [this.#box.style.left, this.#box.style.top] = [`${left}px`, `${top}px`];
  }
}
