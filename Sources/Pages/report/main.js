// Reads the log and connects the views. Until that has succeeded the page is the tables that need no script.
import { UNITS, units } from "../common/words.js";
import { Controls } from "./controls.js";
import { readLog } from "./data.js";
import { byId } from "./dom.js";
import { Journey } from "./journey.js";
import { Navigation } from "./navigation.js";
import { Paper } from "./paper.js";
import { Player } from "./player.js";
import { Readout } from "./readout.js";
import { State } from "./state.js";
import { Summary } from "./summary.js";
import { Timeline } from "./timeline.js";
import { TimeScale } from "./timescale.js";
import { Tip } from "./tip.js";
import { TrackView } from "./track.js";
import { WhatIf } from "./whatif.js";

function build(log) {
  const state = new State();
  state.unit = Math.max(0, UNITS.findIndex(unit => unit.name === log.units));
  units.chosen = UNITS[state.unit];
  byId("unit").textContent = units.chosen.speed;
  const tip = new Tip();
  const scale = new TimeScale(log);
  const navigation = new Navigation(log, state, tip);
  const track = new TrackView(log, state, tip, navigation);
  const timeline = new Timeline(log, state, scale, tip, navigation);
  navigation.connect(track, timeline);
  const player = new Player(log, state, navigation, scale, timeline);
  new Readout(log, state);
  const journey = new Journey(log, state, navigation);
  new WhatIf(log, state);
  const summary = new Summary(log, state);
  new Controls(log, state, { navigation, timeline, track, player, scale });
  new Paper([
    { box: byId("map"), name: "Map of the track", height: 430, picture: (...size) => track.picture(...size), redraw: () => track.update() },
    { box: byId("timeline"), name: "Timeline", height: 230, picture: (...size) => timeline.picture(...size), redraw: () => timeline.drawNow() },
  ], () => [journey, summary].forEach(view => view.recolour()));
  track.showAll();
  navigation.followLink();
}

async function start() {
  const root = document.documentElement;
  const tables = byId("static");
  try {
    // boot.js, a script of its own, has `unpack` and `giveUp`.
    const log = readLog(new Uint8Array(await unpack("data").arrayBuffer()));
    tables.remove();
    build(log);
    requestAnimationFrame(() => requestAnimationFrame(() => { root.dataset.ready = Math.round(performance.now()); }));
  } catch (error) {
    if (!tables.isConnected) byId("side").prepend(tables);
    giveUp(error);
  }
}

start();
