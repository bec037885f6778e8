// Buttons, tabs and keys.
import { UNITS, units, zone } from "../common/words.js";
import { byId, element } from "./dom.js";
import { gpxOf } from "./gpx.js";

export class Controls {
  #state;
  #navigation;
  #timeline;
  #track;
  #player;

  constructor(log, state, { navigation, timeline, track, player, scale }) {
    [this.#state, this.#navigation, this.#timeline, this.#track, this.#player] = [state, navigation, timeline, track, player];
    this.#watchView(log);
    this.#watchTime(scale);
    this.#watchTabs();
    this.#watchKeys();
    byId("help").addEventListener("click", () => byId("keys").showModal());
    byId("keysClose").addEventListener("click", () => byId("keys").close());
    this.#watchLink();
    addEventListener("hashchange", () => navigation.followLink());
  }

  #watchView(log) {
    const state = this.#state;
    byId("zone").addEventListener("click", ({ target }) => {
      zone.isUTC = !zone.isUTC;
      target.textContent = zone.isUTC ? "UTC" : "local";
      state.set({ isUTC: zone.isUTC });
    });
    byId("unit").addEventListener("click", ({ target }) => {
      const unit = (state.unit + 1) % UNITS.length;
      units.chosen = UNITS[unit];
      target.textContent = units.chosen.speed;
      state.set({ unit });
    });
    byId("gpx").addEventListener("click", () => save(gpxOf(log, log.whatIf[state.variant]?.track ?? log.kept), `${log.name}.gpx`));
    byId("scheme").addEventListener("click", () => {
      document.documentElement.dataset.theme = state.isDark ? "light" : "dark";
      state.set({ isDark: !state.isDark });
    });
    const system = matchMedia("(prefers-color-scheme: dark)");
    state.set({ isDark: system.matches });
    system.addEventListener("change", () => {
      if (!document.documentElement.dataset.theme) state.set({ isDark: system.matches });
    });
    byId("colour").addEventListener("click", ({ target }) => {
      if (target.type !== "button") return;
      for (const button of byId("colour").querySelectorAll("button")) button.setAttribute("aria-pressed", button === target);
      state.set({ colourBy: target.value });
    });
    byId("raw").addEventListener("change", ({ target }) => state.set({ showsRaw: target.checked }));
    if (!log.tiles) return;
    byId("tilesLabel").hidden = false;
    byId("tiles").addEventListener("change", ({ target }) => this.#track.map.setTiles(target.checked ? log.tiles : null, log.attribution ?? ""));
  }

  #watchTime(scale) {
    const [state, navigation, timeline] = [this.#state, this.#navigation, this.#timeline];
    const onClick = (id, action) => byId(id).addEventListener("click", action);
    onClick("play", () => this.#player.toggle());
    onClick("before", () => navigation.jump(-1));
    onClick("next", () => navigation.jump(1));
    onClick("all", () => navigation.showWhole());
    onClick("measure", ({ target }) => {
      timeline.measures = !timeline.measures;
      target.setAttribute("aria-pressed", timeline.measures);
    });
    onClick("rangeZoom", () => timeline.showTimes(state.range.from, state.range.to));
    onClick("rangeClear", () => state.set({ range: null }));
    byId("shorten").checked = scale.isShortened;
    byId("shorten").addEventListener("change", ({ target }) => timeline.shorten(target.checked));
    state.on(["isPlaying"], () => {
      byId("play").setAttribute("aria-label", state.isPlaying ? "Pause" : "Play");
      byId("play").querySelector("path").setAttribute("d", state.isPlaying ? "M3 2h3.5v12H3zM9.5 2H13v12H9.5z" : "M3 2l11 6-11 6z");
    });
  }

  #watchLink() {
    const button = byId("link");
    this.#state.on(["cursor", "isHeld"], () => {
      button.disabled = !this.#state.isHeld;
      button.textContent = "copy link";
    });
    button.addEventListener("click", async () => {
      try {
        await navigator.clipboard.writeText(this.#navigation.link);
        button.textContent = "copied";
      } catch {
        // Not every browser lets a page write there; the address has the moment too.
        button.textContent = "see address";
      }
    });
  }

  #watchTabs() {
    const tabs = [...document.querySelectorAll("[role=tab]")];
    const choose = chosen => {
      for (const tab of tabs) {
        tab.setAttribute("aria-selected", tab === chosen);
        tab.tabIndex = tab === chosen ? 0 : -1;
        byId(tab.getAttribute("aria-controls")).hidden = tab !== chosen;
      }
    };
    tabs.forEach((tab, index) => {
      tab.addEventListener("click", () => choose(tab));
      tab.addEventListener("keydown", event => {
        const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
        if (!step) return;
        const next = tabs[(index + step + tabs.length) % tabs.length];
        choose(next);
        next.focus();
        event.preventDefault();
      });
    });
  }

  /** One end of the range is at the cursor, the other stays, or is the end of what is shown. */
  #setRange(end) {
    const { cursor, range } = this.#state;
    if (cursor === null) return;
    const [from, to] = end === "from"
      ? [cursor, range && range.to > cursor ? range.to : this.#timeline.to]
      : [range && range.from < cursor ? range.from : this.#timeline.from, cursor];
    if (to > from) this.#state.set({ range: { from, to } });
  }

  #letGo() {
    this.#state.set({ range: null, isPlaying: false });
    this.#navigation.release();
  }

  #watchKeys() {
    const [navigation, timeline, state] = [this.#navigation, this.#timeline, this.#state];
    const onTimeline = {
      ArrowLeft: event => navigation.step(event.shiftKey ? -10 : -1),
      ArrowRight: event => navigation.step(event.shiftKey ? 10 : 1),
      Home: () => navigation.hold(-Infinity, true),
      End: () => navigation.hold(Infinity, true),
    };
    const everywhere = {
      n: () => navigation.jump(1), p: () => navigation.jump(-1), 0: () => navigation.showWhole(),
      "+": () => timeline.zoom(2, state.cursor), "=": () => timeline.zoom(2, state.cursor), "-": () => timeline.zoom(0.5, state.cursor),
      "[": () => this.#setRange("from"), "]": () => this.#setRange("to"), " ": () => this.#player.toggle(),
      Escape: () => this.#letGo(), "?": () => byId("keys").showModal(),
    };
    addEventListener("keydown", event => {
      const { target, key } = event;
      if (event.ctrlKey || event.metaKey || event.altKey || document.querySelector("dialog[open]")) return;
      if (key !== "Escape" && target.matches?.("input, select")) return;
      if (key === " " && target.matches?.("button, summary, [role=tabpanel]")) return;
      const isFree = target === document.body || target.id === "timeline";
      const action = everywhere[key] ?? (isFree ? onTimeline[key] : undefined);
      if (!action) return;
      action(event);
      event.preventDefault();
    });
  }
}

/** As a download of the browser: nothing leaves the page. */
function save(text, name) {
  const link = element("a", { href: URL.createObjectURL(new Blob([text], { type: "application/gpx+xml" })), download: name });
  link.click();
  URL.revokeObjectURL(link.href);
}
