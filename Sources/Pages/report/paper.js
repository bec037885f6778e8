// Printing. A canvas that takes the size of paper prints empty, since the page is laid out again after `beforeprint`; images print.
import { element } from "./dom.js";

const WIDTH = 700;

export class Paper {
  #views;
  #before = null;

  /** @param {object[]} views each with `box`, `name`, `height`, `picture(width, height)` and `redraw()`. */
  constructor(views) {
    this.#views = views;
    addEventListener("beforeprint", () => this.#prepare());
    addEventListener("afterprint", () => this.#restore());
  }

  #prepare() {
    if (this.#before) return;
    const root = document.documentElement;
    const closed = [...document.querySelectorAll("details:not([open])")];
    this.#before = { theme: root.dataset.theme, closed };
    root.dataset.theme = "light";
    for (const { box, name, height, picture } of this.#views) {
      const image = box.querySelector(".paper") ?? box.appendChild(element("img", { className: "paper", alt: name }));
      image.src = picture(WIDTH, height);
    }
    for (const details of closed) details.open = true;
  }

  #restore() {
    const { theme, closed } = this.#before;
    this.#before = null;
    if (theme) document.documentElement.dataset.theme = theme;
    else delete document.documentElement.dataset.theme;
    for (const details of closed) details.open = false;
    for (const { redraw } of this.#views) redraw();
  }
}
