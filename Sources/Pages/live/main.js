// Joins the parts of the page.
import { TrackMap } from "../common/map.js";
import { union } from "../common/projection.js";
import { amount, span, speedIn } from "../common/words.js";
import { Arrivals } from "./arrivals.js";
import { DelayPlot } from "./delays.js";
import { Link } from "./link.js";
import { showRemotes } from "./remotes.js";
import { isQuiet, showDevices, showRequests, stateOf } from "./tables.js";
import { cut } from "./words.js";

const element = id => document.getElementById(id);
const arrivals = new Arrivals();
const plot = new DelayPlot(element("plot"));
/** The device that the map follows, null for all. */
let followed = null;
/** By how much the collector's clock is ahead of the browser's, in milliseconds: they may be on two machines. */
let clockAhead = 0;
let isAsked = false;

const map = new TrackMap(element("map"), {
  name: "Map of the locations that have arrived",
  moved: () => { element("follow").checked = false; },
  all: () => follow(null),
});

const link = new Link({
  reset: (data, isAfterHole) => {
    measureClock(data);
    arrivals.reset(data, isAfterHole);
    ask();
  },
  rows: data => {
    arrivals.rows(data);
    ask();
  },
  request: data => {
    arrivals.request(data);
    ask();
  },
  remote: data => {
    arrivals.remote(data);
    ask();
  },
  beat: measureClock,
  changed: ask,
});

/** Only of an event that says what time it is now: others may come from the past. */
function measureClock({ at }) {
  clockAhead = at - Date.now();
}

function follow(device) {
  followed = device;
  element("follow").checked = true;
  ask();
}

/** Draws once before the next frame, however much arrives. */
function ask() {
  if (isAsked) return;
  isAsked = true;
  requestAnimationFrame(() => {
    isAsked = false;
    draw(Date.now() + clockAhead);
  });
}

function draw(now) {
  showLink();
  showCounters();
  element("empty").hidden = arrivals.devices.size > 0 || arrivals.requests.length > 0;
  showDevices(element("devices"), arrivals, now, follow);
  showRemotes(element("remotes-section"), element("remotes"), arrivals.remotes, now);
  showRequests(element("requests"), arrivals);
  showMap(now);
  element("delay-summary").textContent = plot.draw({
    requests: arrivals.requests, losses: link.losses, starts: arrivals.starts, now,
    colours: new Map([...arrivals.devices.values()].map(device => [device.name, device.colour])),
    reach: Number(element("span").value),
  });
}

function showLink() {
  const words = {
    connecting: "connecting", live: "live", lost: "no connection to the collector",
    silent: `no word from the collector for ${span(link.silence)}`,
  };
  const place = element("link");
  place.dataset.state = link.state;
  if (place.textContent !== words[link.state]) place.textContent = words[link.state];
}

function showCounters() {
  const { counters } = arrivals;
  const bytes = (counters.bytes_bodies ?? 0) + (counters.bytes_heads ?? 0);
  const shown = { ...counters, bytes_each: counters.locations ? Math.round(bytes / counters.locations) : "–" };
  for (const place of document.querySelectorAll("[data-counter]")) place.textContent = amount(shown[place.dataset.counter] ?? 0);
}

function showMap(now) {
  const reach = Number(element("window").value);
  const shown = [...arrivals.devices.values()].filter(device => device.track.length);
  const layers = [];
  let bounds = null;
  for (const device of shown) {
    const from = device.track.since(reach);
    layers.push(...layersOf(device, from, now));
    if (!followed || followed === device) bounds = union(bounds, device.track.points.bounds(from));
  }
  map.show(layers);
  if (element("follow").checked) map.fit(bounds);
}

function layersOf(device, from, now) {
  const { track, last, colour } = device;
  const { latitude, longitude } = last;
  const current = isQuiet(device, now) ? "--mute" : colour;
  const layers = [
    { kind: "line", points: track.points, breaks: track.breaks, from, colour, arrows: true },
    { kind: "dots", points: track.points, from, colour, radius: 2.5, cased: true, only: index => track.location(index).event != null },
  ];
  if (last.accuracy != null) layers.push({ kind: "circle", latitude, longitude, metres: last.accuracy, colour: current });
  const doing = !last.moving ? stateOf(device) : last.speed == null ? "" : speedIn(last.speed);
  layers.push({
    kind: "position", latitude, longitude, colour: current, course: last.moving ? last.course : null,
    label: [cut(device.name, 24), doing].filter(Boolean).join(", "),
  });
  return layers;
}

function sayWhatToDo() {
  const port = location.port || "80";
  element("endpoint").textContent = `[[endpoint]]\nbase_url = "http://127.0.0.1:${port}"`;
  element("tunnel").textContent = `ssh -R ${port}:127.0.0.1:${port} DEVICE`;
}

sayWhatToDo();
for (const id of ["follow", "window", "span"]) element(id).addEventListener("change", ask);
new ResizeObserver(ask).observe(element("plot"));
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", ask);
// "heard 3 s ago" ages by itself.
setInterval(ask, 1000);
