// Devices and requests as tables. All text is set as text: names come from whoever sends.
import { Colours } from "../common/canvas.js";
import { amount, clock, day, span, speedIn } from "../common/words.js";
import { delayOf, replays } from "./delays.js";
import { compass, cutMiddle } from "./words.js";

const colours = new Colours();
const DEVICES_SHOWN = 100;
const REQUESTS_SHOWN = 60;
const QUIET_AFTER = 180000;
const LATE_AFTER = 60000;
/** Events that the state says already. */
const SAID_BY_STATE = ["gap", "motionchange"];

/** What a device does, in a word or two. */
export function stateOf({ last }) {
  if (!last) return "unknown";
  if (last.event === "gap") return `gap: ${last.reason ?? "unknown"}`;
  if (last.moving == null) return "unknown";
  return last.moving ? "moving" : "parked";
}

/** Whether what it said may no longer hold: it was not heard for minutes. */
export function isQuiet(device, now) {
  return now - device.heard > QUIET_AFTER;
}

/** @param {function} focus is called with the device whose name was pressed. */
export function showDevices(body, arrivals, now, focus) {
  colours.forget();
  const devices = [...arrivals.devices.values()].sort((one, other) => other.heard - one.heard);
  const old = replays(arrivals.requests);
  const rows = devices.slice(0, DEVICES_SHOWN).map(device => deviceRow(device, old.has(device.name), now, focus));
  if (devices.length > DEVICES_SHOWN) rows.push(noteRow(`and ${amount(devices.length - DEVICES_SHOWN)} that were heard earlier`));
  replaceRows(body, rows);
}

export function showRequests(body, arrivals) {
  const old = replays(arrivals.requests);
  const rows = arrivals.requests.slice(0, REQUESTS_SHOWN).map(request => requestRow(request, old.get(request.device)));
  if (arrivals.requests.length > REQUESTS_SHOWN) rows.push(noteRow("older ones are in the plot"));
  replaceRows(body, rows);
}

/** Keeps the focus where it is: rows are replaced while a person reads. */
export function replaceRows(body, rows) {
  const focused = body.contains(document.activeElement) ? document.activeElement.dataset.device : null;
  body.replaceChildren(...(rows.length ? rows : [noteRow("none")]));
  if (focused != null) [...body.querySelectorAll("[data-device]")].find(each => each.dataset.device === focused)?.focus();
}

function deviceRow(device, isReplay, now, focus) {
  const { last, track } = device;
  const row = document.createElement("tr");
  row.dataset.points = track.length;
  row.dataset.locations = device.locations;
  const place = last ? [`${last.latitude.toFixed(5)}, ${last.longitude.toFixed(5)}`, last.accuracy != null && `±${Math.round(last.accuracy)}\u00a0m`] : [];
  const motion = last ? [last.moving && last.speed != null && speedIn(last.speed), last.moving && last.course != null && compass(last.course)] : [];
  row.append(
    cell([deviceButton(device, focus), detail(place), detail([`${amount(device.locations)} stored`])]),
    cell([stateOf(device), detail(motion), detail([!SAID_BY_STATE.includes(last?.event) && last?.event])]),
    cell(last ? [clock(last.time), ...lateness(device, isReplay)] : ["–"], "number"),
    cell([device.heard ? `${span(now - device.heard)} ago` : "–"], isQuiet(device, now) ? "number late" : "number"));
  return row;
}

function lateness({ last, heard }, isReplay) {
  if (isReplay) return [detail([day(last.time)]), detail(["replayed"])];
  const delay = heard - last.time;
  const note = detail([`${span(delay)} late`]);
  if (delay > LATE_AFTER) note.classList.add("late");
  return [note];
}

function deviceButton(device, focus) {
  const button = document.createElement("button");
  button.type = "button";
  button.className = "device";
  button.dataset.device = device.name;
  button.title = "Show on the map";
  const dot = document.createElementNS("http://www.w3.org/2000/svg", "svg");
  dot.setAttribute("viewBox", "0 0 10 10");
  dot.setAttribute("aria-hidden", "true");
  const disc = document.createElementNS("http://www.w3.org/2000/svg", "circle");
  for (const [name, value] of [["cx", 5], ["cy", 5], ["r", 5], ["fill", colours.of(device.colour)]]) disc.setAttribute(name, value);
  dot.append(disc);
  button.append(dot, isolated(cutMiddle(device.name, 64)));
  button.addEventListener("click", () => focus(device));
  return button;
}

function requestRow(request, replay) {
  const row = document.createElement("tr");
  const { oldest, newest } = request;
  const fixes = oldest === undefined ? ["–"] : [newest > oldest ? `${clock(oldest)} – ${clock(newest)}` : clock(newest)];
  const delay = delayOf(request, replay);
  if (delay) fixes.push(detail([`up to ${span(delay.most)} late`], delay.most > LATE_AFTER && !replay));
  row.append(
    cell([clock(request.at), isolatedDetail(cutMiddle(request.device ?? "not readable", 40))]),
    cell([amount(request.rows), detail([request.repeated > 0 && `${amount(request.repeated)} known`]), detail([`${amount(request.bytes)} B`])], "number"),
    cell(fixes),
    cell(answerOf(request)));
  return row;
}

function answerOf({ status, fault, problem, repeated, new: stored }) {
  const isGood = status >= 200 && status < 300;
  const answer = document.createElement("div");
  answer.className = isGood ? "" : "bad";
  answer.textContent = status ?? "none";
  const kept = fault && stored ? "stored, " : "";
  return [answer, detail([fault && `${kept}injected: ${fault}`]), detail([problem]), detail([isGood && repeated > 0 && !stored && "a repeat"])];
}

function noteRow(text) {
  const row = document.createElement("tr");
  const note = cell([text], "quiet");
  note.colSpan = 4;
  row.append(note);
  return row;
}

export function cell(parts, className = "") {
  const element = document.createElement("td");
  element.className = className;
  element.append(...parts.filter(part => part !== ""));
  return element;
}

/** A line of smaller text from the parts that are there; empty parts leave no line. */
export function detail(parts, isLate = false) {
  const text = parts.filter(Boolean).join(" ");
  const line = document.createElement(text ? "div" : "span");
  line.className = isLate ? "detail late" : "detail";
  line.textContent = text;
  return line;
}

function isolatedDetail(text) {
  const line = document.createElement("div");
  line.className = "detail";
  line.append(isolated(text));
  return line;
}

/** A text that does not change the direction of what stands beside it. */
export function isolated(text) {
  const element = document.createElement("bdi");
  element.textContent = text;
  return element;
}
