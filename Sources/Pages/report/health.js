// The health of the log, what became of its fixes, and the settings in force.
import { amount, clock, plural, span } from "../common/words.js";
import { byId, cell, element, number, table } from "./dom.js";
import { bytes, length, percent } from "./words.js";

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
      const summary = element("summary", {}, plural(defaults.length, "setting has its default", "settings have their default"));
      parts.push(element("details", { className: "defaults" }, summary, settingsTable("Defaults in force", defaults)));
    }
    parts.push(element("p", {}, `Times are those of the receiver. Made ${made} by ${tool}.`));
    byId("log").replaceChildren(...parts);
  }

  // Rows: name, text, whether it is bad. A count of what is bad is left out where it is 0.

  #receiverRows() {
    const { log, summary } = this.#log;
    const all = summary.fixes + summary.void_epochs;
    return [
      [log.isNMEA ? "sentences" : "records", amount(summary.sentences)],
      ["bytes", bytes(summary.bytes)],
      ...log.isNMEA ? [["bad checksums", amount(summary.checksum_errors), summary.checksum_errors > 0]] : [],
      ...counts([
        ["without a checksum", log.missingChecksums], ["cut short", log.cut], ["too long", summary.too_long],
        ["bad fields", summary.bad_fields], ["late for their epoch", summary.late], ["fixes without a date", summary.dateless],
        ["out of the order of time", log.leftOut],
      ]),
      ["epochs without a fix", amount(summary.void_epochs), summary.void_epochs > all * MANY_VOID],
    ];
  }

  #fixRows() {
    const { summary, log } = this.#log;
    const accuracies = this.#accuracies();
    const part = share => `${accuracies[Math.floor((accuracies.length - 1) * share)].toFixed(1)} m`;
    return [
      ["fixes", amount(summary.fixes)],
      ["a fix every", `${(this.#usualInterval() / 1000).toFixed(1)} s`],
      ["longest silence", `${span(log.silence)} at ${clock(log.silenceFrom)}`, log.silence > LONG_SILENCE],
      ...accuracies.length ? [["accuracy, median", part(0.5)], ["accuracy, 95 %", part(0.95)]] : [],
      ["admitted", amount(summary.admitted)],
      ...counts(Object.entries(summary.rejected).map(([reason, count]) => [`refused: ${reason}`, count])),
    ];
  }

  #keptRows() {
    const { summary, kinds, keptStanding } = this.#log;
    const all = summary.published;
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
