// The health of the log, what became of its fixes, and the settings in force.
import { byId, cell, element, number, table } from "./dom.js";
import { amount, bytes, clock, length, percent, span } from "./words.js";

/** Above these shares a line stands out. */
const MANY_VOID = 0.05;
const MANY_STANDING = 0.3;
const LONG_SILENCE = 60_000;

export class Health {
  #log;

  constructor(log, state) {
    this.#log = log;
    state.on(["isUTC"], () => this.build());
    this.build();
  }

  build() {
    const { settings, made, tool } = this.#log;
    const sections = [["The log", this.#receiverRows()], ["Its fixes", this.#fixRows()], ["What was kept", this.#keptRows()]];
    const parts = sections.flatMap(([title, rows]) => [element("h2", {}, title), table(title, [], rows.map(row))]);
    const isDefault = ({ origin }) => origin === "default" || origin.startsWith("as [");
    const [chosen, defaults] = [settings.filter(each => !isDefault(each)), settings.filter(isDefault)];
    parts.push(element("h2", {}, "Settings in force"));
    if (chosen.length) parts.push(settingsTable("Settings in force", chosen));
    if (defaults.length) {
      parts.push(element("details", {}, element("summary", {}, `${amount(defaults.length)} at their defaults`), settingsTable("Defaults in force", defaults)));
    }
    parts.push(element("p", {}, `Times are those of the receiver. Made ${made} by ${tool}.`));
    byId("log").replaceChildren(...parts);
  }

  // Rows: name, text, whether it is bad. A count of what is bad is left out where it is 0.

  #receiverRows() {
    const { log } = this.#log;
    const all = log.fixes + log.voidEpochs;
    const satellites = log.voidSatellites == null ? "" : `, ${log.voidSatellites} satellites in view`;
    return [
      ["sentences", amount(log.sentences)],
      ["bytes", bytes(log.bytes)],
      ["bad checksums", amount(log.checksumErrors), log.checksumErrors > 0],
      ...counts([
        ["without a checksum", log.missingChecksums], ["cut short", log.cut], ["too long", log.tooLong], ["bad fields", log.badFields],
        ["late for their epoch", log.late], ["fixes without a date", log.dateless], ["steps of the receiver's time", log.timeSteps],
      ]),
      ["epochs without a fix", `${amount(log.voidEpochs)}${satellites}`, log.voidEpochs > all * MANY_VOID],
    ];
  }

  #fixRows() {
    const { summary, rejected, log } = this.#log;
    const silence = this.#longestSilence();
    const accuracies = this.#accuracies();
    const part = share => `${accuracies[Math.floor((accuracies.length - 1) * share)].toFixed(1)} m`;
    return [
      ["fixes", amount(log.fixes)],
      ["a fix every", `${(this.#usualInterval() / 1000).toFixed(1)} s`],
      ["longest silence", `${span(silence.length)} at ${clock(silence.from)}`, silence.length > LONG_SILENCE],
      ...accuracies.length ? [["accuracy, median", part(0.5)], ["accuracy, 95 %", part(0.95)]] : [],
      ["admitted", amount(summary.admitted)],
      ...counts(Object.entries(rejected).map(([reason, count]) => [`refused: ${reason}`, count])),
    ];
  }

  #keptRows() {
    const { summary, kinds, keptStanding, kept } = this.#log;
    const all = kept.rows.length;
    return [
      ["kept", amount(summary.published)],
      ...Object.entries(kinds).map(([reason, count]) => [`by ${reason}`, amount(count)]),
      ["kept while nothing moved", `${amount(keptStanding)}, ${percent(keptStanding, all)}`, keptStanding > all * MANY_STANDING],
      ["halts on the way", amount(summary.halts)],
      ["odometer", length(summary.odometer)],
    ];
  }

  #usualInterval() {
    const { time, rows } = this.#log;
    const intervals = Array.from({ length: Math.max(0, Math.min(rows, 5000) - 1) }, (_, index) => time[index + 1] - time[index]);
    return intervals.sort((one, other) => one - other)[intervals.length >> 1] ?? 0;
  }

  #longestSilence() {
    const { time, rows, first } = this.#log;
    const longest = { from: first, length: 0 };
    for (let row = 1; row < rows; row += 1) {
      if (time[row] - time[row - 1] > longest.length) Object.assign(longest, { from: time[row - 1], length: time[row] - time[row - 1] });
    }
    return longest;
  }

  #accuracies() {
    const values = new Float64Array(this.#log.rows);
    let count = 0;
    for (let row = 0; row < values.length; row += 1) {
      const accuracy = this.#log.hasFix(row) ? this.#log.accuracy(row) : null;
      if (accuracy === null) continue;
      values[count] = accuracy;
      count += 1;
    }
    return values.subarray(0, count).sort();
  }
}

const counts = rows => rows.filter(([, count]) => count > 0).map(([name, count]) => [name, amount(count), true]);

function settingsTable(caption, settings) {
  const rows = settings.map(({ key, value, origin }) => element("tr", {}, cell(key), cell(value), cell(origin)));
  return table(caption, ["key", "value", "from"], rows, "settings");
}

function row([name, text, isBad = false]) {
  return element("tr", {}, cell(name), number(text, null, isBad ? "bad" : ""));
}
