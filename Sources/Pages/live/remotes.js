// Settings and commands from afar as a table, of the devices that have any. All text is set as text.
import { amount, clock } from "../common/words.js";
import { cell, detail, isolated, replaceRows } from "./tables.js";
import { cutMiddle } from "./words.js";

const DEVICES_SHOWN = 30;
/** What a command waits for, or why it waits no longer, while the device has not answered. */
const UNANSWERED = { waiting: "waits for a batch", sent: "sent, no answer yet", expired: "expired before a batch came" };
const FAILED = ["rejected", "reverted"];

/** @param {Element} section is hidden where no device has any. */
export function showRemotes(section, body, remotes, now) {
  section.hidden = remotes.size === 0;
  const list = [...remotes.values()].sort((one, other) => other.at - one.at);
  const rows = list.slice(0, DEVICES_SHOWN).map(remote => remoteRow(remote, now));
  if (list.length > DEVICES_SHOWN) rows.push(row(cell([`and ${amount(list.length - DEVICES_SHOWN)} that changed earlier`], "quiet"), cell([]), cell([])));
  replaceRows(body, rows);
}

function remoteRow(remote, now) {
  return row(
    cell([isolated(cutMiddle(remote.device, 64))]),
    cell(settingsOf(remote)),
    cell(remote.commands.length ? remote.commands.flatMap(command => commandLines(command, now)) : ["–"]));
}

function settingsOf({ desired, reported }) {
  if (desired === undefined && !reported) return ["–"];
  const wanted = desired === undefined ? "none wanted" : `version ${desired} wanted`;
  if (!reported) return [line(wanted), detail(["not reported yet"])];
  const { version, state, in_force: inForce, clamped, rejected, is_cut: isCut } = reported;
  // No version was ever judged.
  const found = version === 0 ? "none judged yet" : `${version} ${state === "trial" ? "on trial" : state}`;
  return [
    line(wanted),
    line(found, FAILED.includes(state) ? "bad" : ""),
    detail([inForce !== version && (inForce === undefined ? "the file is in force" : `version ${inForce} is in force`)]),
    ...clamped.map(([key, from, to]) => textLine(`${key} clamped: ${from ?? "?"} → ${to ?? "?"}`)),
    ...rejected.map(([path, reason]) => textLine(path ? `${path}: ${reason}` : reason, "reason")),
    detail([isCut && "and more"]),
  ];
}

function commandLines({ id, do: verb, came, expires, state, done, words }, now) {
  const isLate = state === "waiting" && expires < now;
  const outcome = done === true ? "done" : done === false ? "not done" : UNANSWERED[isLate ? "expired" : state];
  const isBad = done === false || (done === undefined && outcome === UNANSWERED.expired);
  return [line(`${verb}: ${outcome}`, isBad ? "bad" : ""), textLine(`${clock(came)} ${id}`), ...(words ? [textLine(words)] : [])];
}

function row(...cells) {
  const element = document.createElement("tr");
  element.append(...cells);
  return element;
}

function line(text, className = "") {
  const element = document.createElement("div");
  element.className = className;
  element.append(isolated(text));
  return element;
}

/** Smaller text that a device or a person has chosen. */
function textLine(text, className = "") {
  return line(text, `detail ${className}`);
}
