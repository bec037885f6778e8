// Printing. A canvas that takes the size of paper prints empty, since the page is laid out again after `beforeprint`; images print.
import { element } from "./dom.js";

const WIDTH = 700;

export class Paper {
  #views;
  #recolour;
  #before = null;

  /**
   * @param {object[]} views each with `box`, `name`, `height`, `picture(width, height)` and `redraw()`.
   * @param {function} recolour gives what has colours of its own those of the theme.
   */
  constructor(views, recolour) {
    [this.#views, this.#recolour] = [views, recolour];
    addEventListener("beforeprint", () => this.#prepare());
    addEventListener("afterprint", () => this.#restore());
  }

  #prepare() {
    if (this.#before) return;
    const root = document.documentElement;
    const closed = [...document.querySelectorAll("details:not([open], .defaults)")];
    this.#before = { theme: root.dataset.theme, closed };
    root.dataset.theme = "light";
    this.#recolour();
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
    this.#recolour();
    for (const details of closed) details.open = false;
    for (const { redraw } of this.#views) redraw();
  }
}
