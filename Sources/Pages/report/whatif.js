// What other settings would have done with the same log.
import { amount } from "../common/words.js";
import { byId, cell, element, number, table } from "./dom.js";
import { bytes, length, percent } from "./words.js";

export class WhatIf {
  #log;
  #state;

  constructor(log, state) {
    [this.#log, this.#state] = [log, state];
    byId("whatif").querySelector("table").replaceWith(...this.#content());
    state.on(["variant"], () => this.#mark());
  }

  /** In place of the table that needs no script. */
  #content() {
    const { whatIf, keptStanding, summary } = this.#log;
    const rows = whatIf.map((variant, index) => this.#row(variant, index));
    const share = `${amount(keptStanding)} of ${amount(summary.published)} kept locations (${percent(keptStanding, summary.published)})`;
    return [
      keptStanding > summary.published / 4 ? element("p", {}, element("b", {}, `${share} were taken while nothing moved.`)) : "",
      element("p", {}, "Choose one to lay it over map (dashed) and timeline."),
      table("What other settings would keep", ["settings", "kept>", "worst error>", "upload>"], rows, "variants"),
    ];
  }

  #row(variant, index) {
    const choice = element("input", { type: "radio", name: "variant", checked: index === this.#state.variant });
    choice.addEventListener("change", () => this.#state.set({ variant: index }));
    const most = Math.max(1, ...this.#log.whatIf.map(each => each.kept));
    const share = element("div", { className: "share" });
    share.style.width = `${variant.kept / most * 100}%`;
    const words = index === 0 ? `${variant.words} (in force)` : variant.words;
    const perKm = variant.perKm == null ? null : `${variant.perKm.toFixed(variant.perKm < 9.95 ? 1 : 0)}/km`;
    const row = element("tr", { className: `variant${index === 0 ? " now" : ""}` },
      cell([element("label", {}, choice, variant.label), element("div", { className: "sub" }, words), share]),
      number(amount(variant.kept), perKm),
      number(error(variant.worst), `95 %: ${error(variant.p95)}`),
      number(bytes(variant.bytes), bytes(variant.compact)));
    row.addEventListener("click", event => {
      if (!event.target.closest("label")) this.#state.set({ variant: index });
    });
    row.classList.toggle("on", index === this.#state.variant);
    return row;
  }

  #mark() {
    document.querySelectorAll(".variant").forEach((row, index) => {
      row.classList.toggle("on", index === this.#state.variant);
      row.querySelector("input").checked = index === this.#state.variant;
    });
  }
}

const error = metres => metres == null ? "–" : length(metres);
