// What has arrived, as the collector's events tell it: Sources/Collector/Page/LiveEvents.swift.
import { readLocation, Track } from "./tracks.js";

const REQUESTS_MAX = 3000;
const DEVICES_MAX = 500;

export class Arrivals {
  #devices = new Map();
  #remotes = new Map();
  #requests = [];
  #counters = {};
  #starts = [];
  #run = null;
  #colour = 0;

  /** By name. Each: `name`, `colour`, `track`, `last` (location or null), `locations` (in all, says the collector), `heard`. */
  get devices() { return this.#devices; }

  /** Settings and commands of the devices that have any, by name: see `remote` in LiveEvents.swift. */
  get remotes() { return this.#remotes; }

  /** Newest first. */
  get requests() { return this.#requests; }

  /** As `/stats` says them. */
  get counters() { return this.#counters; }

  /** When the collector began, each of its lives that this page saw; UTC in milliseconds. */
  get starts() { return this.#starts; }

  /**
   * The whole state: the collector was restarted, or this page was away for long. Tracks stay, since they are still true; all
   * that is counted is the collector's. Where events were missed it is not known what a device did meanwhile.
   */
  reset({ run, started, devices, remotes, counters }, isAfterHole) {
    if (run !== this.#run) this.#starts.push(started);
    this.#run = run;
    this.#starts = this.#starts.slice(-50);
    this.#counters = counters;
    // They are in the collector's memory alone.
    this.#remotes = new Map(remotes.map(each => [each.device, each]));
    // What this page has of the same life comes again after this event.
    this.#requests = this.#requests.filter(request => request.run !== run);
    for (const device of this.#devices.values()) {
      device.locations = 0;
      if (isAfterHole) device.track.interrupt();
    }
    for (const each of devices) {
      const device = this.#device(each.device);
      device.locations = each.locations;
      device.heard = Math.max(device.heard, each.heard);
      if (each.last) this.#take(device, each.outbox, [each.last]);
    }
  }

  rows({ device, outbox, locations }) {
    this.#take(this.#device(device), outbox, locations);
  }

  remote(remote) {
    this.#remotes.set(remote.device, remote);
  }

  request(request) {
    this.#counters = request.counters;
    this.#requests.unshift({ ...request, run: this.#run });
    if (this.#requests.length > REQUESTS_MAX) this.#requests.length = REQUESTS_MAX - 200;
    if (request.device === undefined) return;
    const device = this.#device(request.device);
    device.heard = Math.max(device.heard, request.at);
    device.locations = request.device_locations;
  }

  #device(name) {
    const known = this.#devices.get(name);
    if (known) return known;
    const device = { name, colour: `--trips/${this.#colour}`, track: new Track(), last: null, locations: 0, heard: 0 };
    this.#colour += 1;
    this.#devices.set(name, device);
    if (this.#devices.size > DEVICES_MAX) this.#forgetQuietest();
    return device;
  }

  #take(device, outbox, locations) {
    for (const each of locations) device.track.add(outbox, readLocation(each));
    device.track.forgetBeyond(this.#devices.size);
    device.last = device.track.last;
  }

  #forgetQuietest() {
    const [first, ...others] = this.#devices.values();
    const quietest = others.reduce((least, each) => (each.heard < least.heard ? each : least), first);
    this.#devices.delete(quietest.name);
  }
}
