import WaypostCore

extension Metric {
    /// All that waypost offers. None is a place, or allows a guess at one.
    public static let all: [Metric] = [
        daemon, motion, source, power, queue, fenceSources, beaconSources, endpoints,
    ].flatMap { $0 }

    private static let daemon: [Metric] = [
        Metric(.gauge, .daemon, "version", as: "build_info", "1 under the version of waypost", samples: version),
        .one(.gauge, .daemon, "health", as: "healthy", "1 = ok, 0 = degraded") { $0.isHealthy },
        .states(
            .daemon, "configuration", as: "configuration_state", ["current", "refused", "last-good"],
            "1 under current, refused or last-good"
        ) { $0.configuration },
        .one(.gauge, .daemon, "uptime_s", unit: "seconds", fleeting: true, "seconds since the start") { $0.uptime },
        .one(.counter, .daemon, "wakeups", fleeting: true, "times that the event loop woke") { $0.wakeups },
        .one(
            .counter, .daemon, "repeated_on_fresh_connection", "requests repeated because a kept connection was dead"
        ) { $0.repeatedOnFreshConnection },
        .one(
            .counter, .daemon, "unasked_answers",
            "answers that no request had asked for, each discarded with its connection"
        ) { $0.unaskedAnswers },
    ]

    private static let motion: [Metric] = [
        .states(
            .motion, "state", ["waiting", "settling", "stationary", "moving", "stopping"],
            "1 under waiting, settling, stationary, moving or stopping"
        ) { $0.motion.state },
        .one(
            .gauge, .motion, "last_fix", as: "last_fix_timestamp", unit: "seconds",
            "UTC of the last fix that was believed, in seconds since 1970"
        ) { $0.motion.lastFixSeconds },
        .one(
            .gauge, .motion, "last_fix_age_s", unit: "seconds", fleeting: true,
            "seconds since it arrived, if it is of this run"
        ) { $0.motion.lastFixAge },
        .one(.gauge, .motion, "odometer", unit: "meters", "metres driven") { $0.motion.odometer },
        .one(.counter, .motion, "trips", "trips begun") { $0.motion.trips },
        .one(.counter, .motion, "stops", "trips ended by a stop") { $0.motion.stops },
        .one(.counter, .motion, "gaps", "gaps in the fixes") { $0.motion.gaps },
        .one(.counter, .motion, "admitted", "fixes that were believed") { $0.motion.admitted },
        Metric(.counter, .motion, "rejected", "fixes that were not believed, by reason", samples: rejections),
        .one(.counter, .motion, "kept", "locations kept") { $0.motion.kept },
    ]

    private static let source: [Metric] = [
        .states(
            .source, "state", ["opening", "receiving", "silent", "unreadable", "lost", "asleep", "ended"],
            "1 under opening, receiving, silent, unreadable, lost, asleep or ended"
        ) { $0.source.state },
        .one(
            .gauge, .source, "last_epoch_age_s", unit: "seconds", fleeting: true, "seconds since the last epoch"
        ) { $0.source.lastEpochAge },
        .one(.counter, .source, "bytes", as: "received", unit: "bytes", "bytes received") { $0.source.bytes },
        .one(.counter, .source, "sentences", "sentences with a good checksum, or lines of gpsd") {
            $0.source.sentences
        },
        .one(.counter, .source, "fixes", "fixes") { $0.source.fixes },
        .one(.counter, .source, "void_epochs", "epochs without a fix") { $0.source.voidEpochs },
        .one(.counter, .source, "checksum_errors", "sentences with a bad checksum") { $0.source.checksumErrors },
        .one(.counter, .source, "too_long", "sentences that were too long") { $0.source.tooLong },
        .one(.counter, .source, "bad_bytes", as: "cut_sentences", "sentences cut off by other bytes") {
            $0.source.badBytes
        },
        .one(
            .counter, .source, "stray_bytes", as: "stray", unit: "bytes", "bytes in no sentence and in no line of gpsd"
        ) {
            $0.source.strayBytes
        },
        .one(.counter, .source, "bad_fields", "fields that could not be read") { $0.source.badFields },
        .one(.counter, .source, "late", "sentences of an epoch that was closed") { $0.source.late },
        .one(.counter, .source, "dateless", "fixes before the first date") { $0.source.dateless },
        .one(.counter, .source, "repeats", "epochs that came again with the time of the one before") {
            $0.source.repeats
        },
        .one(.counter, .source, "disagreeing", "what contradicted the fix beside it") { $0.source.disagreeing },
        .one(.counter, .source, "dates_refused", "dates that were not believed") { $0.source.datesRefused },
    ]

    private static let power: [Metric] = [
        .one(.gauge, .power, "battery", unit: "ratio", "level of the battery, in Prometheus from 0 to 1") {
            $0.power.level
        },
        .one(.gauge, .power, "charging", "whether the battery is being charged") { $0.power.charging },
        .one(.gauge, .power, "external", "whether external power is connected") { $0.power.external },
        .one(.gauge, .power, "low", "whether the level is low") { $0.power.low },
    ]

    private static let queue: [Metric] = [
        .one(.gauge, .queue, "queue_depth", "rows in the queue, on disk and in memory") { $0.queue.depth },
        .one(.gauge, .queue, "queue_bytes", unit: "bytes", "bytes of the database and its log") { $0.queue.bytes },
        .one(.counter, .queue, "commits", "commits since the start") { $0.queue.commits },
        .one(.gauge, .queue, "commit_latency_s", unit: "seconds", "the slowest commit in seconds") {
            $0.queue.commitLatency
        },
        .one(.counter, .queue, "commit_failed", "commits that the disk refused") { $0.queue.commitsFailed },
        .one(.gauge, .queue, "ram_ring_depth", "rows in memory") { $0.queue.held },
        .one(.counter, .queue, "ram_ring_dropped", "rows deleted in memory") { $0.queue.heldDropped },
        .one(.counter, .queue, "sent_from_ram", "rows sent that were never on disk") { $0.queue.sentFromMemory },
        .one(.counter, .queue, "corrupt_recovered", "damaged queues set aside") { $0.queue.corruptRecovered },
        .one(.counter, .queue, "salvaged", "rows recovered from damaged queues") { $0.queue.salvaged },
        .one(.counter, .queue, "salvage_inversions", "recovered rows that are out of order") {
            $0.queue.salvageInversions
        },
        .one(
            .counter, .queue, "lost_rows",
            "rows of damaged queues that could not be recovered, in the life of the queue; for a week a problem of status"
        ) { $0.queue.lostRows },
        .one(
            .counter, .queue, "files_replaced", "times that another program removed, replaced or overwrote the files"
        ) { $0.queue.filesReplaced },
        .one(.counter, .queue, "dropped_oldest", "oldest rows that a full queue deleted") { $0.queue.droppedOldest },
        .one(.counter, .queue, "dropped_newest", "newest rows that a full queue deleted") { $0.queue.droppedNewest },
        .one(.counter, .queue, "thinned", "rows that a full queue left out between others") { $0.queue.thinned },
        .one(.counter, .queue, "events_dropped", "events among the rows that a full queue deleted") {
            $0.queue.eventsDropped
        },
        .one(.counter, .queue, "expired", "rows older than max_age") { $0.queue.expired },
        .one(.gauge, .queue, "last_seq", "the newest sequence number") { $0.queue.lastSeq },
        .one(.gauge, .queue, "clock_untrusted", "1 while the host clock is not synchronised") {
            $0.queue.clockUntrusted
        },
    ]

    private static let fenceSources: [Metric] = [
        .eachFenceSource(.gauge, "fences", "geofences of the list of a server") { $0.fences },
        .eachFenceSource(
            .gauge, "age_s", unit: "seconds", fleeting: true, "seconds since the server gave or confirmed its list"
        ) { $0.age },
        .eachFenceSource(.gauge, "failures", "failures of a server of geofences in a row") { $0.failures },
    ]

    private static let beaconSources: [Metric] = [
        .eachBeaconSource(.gauge, "regions", "beacon regions of the list of a server") { $0.regions },
        .eachBeaconSource(
            .gauge, "age_s", unit: "seconds", fleeting: true,
            "seconds since the server gave or confirmed its beacon regions"
        ) { $0.age },
        .eachBeaconSource(.gauge, "failures", "failures of a server of beacon regions in a row") { $0.failures },
    ]

    private static let endpoints: [Metric] = [
        Metric(
            .gauge, .endpoint, "state", "1 under active, paused, stopped, taken or rebind", samples: endpointStates),
        .each(.gauge, "waiting", "rows not accepted yet") { $0.waiting },
        .each(
            .gauge, "queue_oldest_age_s", unit: "seconds", "seconds from the oldest row not accepted to the newest fix"
        ) { $0.oldestAge },
        .each(.counter, "acked", "rows accepted") { $0.accepted },
        .each(.counter, "stored", "rows that the server reports as stored") { $0.stored },
        .each(.counter, "batches", "batches accepted") { $0.batches },
        .each(.counter, "requests", "requests") { $0.requests },
        .each(.counter, "retries", "requests after the first of their batch") { $0.retries },
        .each(.counter, "connections", "connections opened") { $0.connections },
        .byReason(
            .counter, "failed", by: "reason",
            "failures by reason: dns, connect, link (gone under a request), tls, clock, timeout, reset, closed, "
                + "credential (no token could be had), status NNN"
        ) { $0.failed },
        .each(.counter, "retry_after_honoured", "pauses that the server asked for") { $0.retryAfterHonoured },
        .each(.gauge, "consecutive_failures", "failures in a row") { $0.consecutiveFailures },
        .each(
            .gauge, "next_attempt_s", unit: "seconds", fleeting: true,
            "seconds to the next attempt, also in a pause"
        ) { $0.nextAttempt },
        .each(
            .gauge, "last_success_age_s", unit: "seconds", fleeting: true, "seconds since the last acceptance"
        ) { $0.lastSuccessAge },
        .byReason(
            .gauge, "contact", by: "contact",
            "1 under how far it has come with the server since the start: never, reached or accepted"
        ) { $0.contact.map { Named([($0, 1)]) } },
        .each(.gauge, "contact_age_s", unit: "seconds", fleeting: true, "seconds since then") { $0.contactAge },
        .each(
            .gauge, "token_expires_s", unit: "seconds", fleeting: true,
            "seconds until the token of the endpoint expires, negative afterwards"
        ) { $0.tokenExpires },
        .byReason(.gauge, "paused", by: "reason", "1 under the reason while the endpoint is paused") {
            $0.paused
        },
        .byReason(.gauge, "stopped", by: "reason", "1 under the reason while the endpoint is stopped") {
            $0.stopped
        },
        .each(.counter, "bisects", "batches split to find a bad row") { $0.bisects },
        .each(.gauge, "suspects", "rows that fail alone while others are accepted: tried last") { $0.suspects },
        .each(.counter, "quarantined", "rows put into quarantine") { $0.quarantined },
        .each(.gauge, "quarantine_depth", "rows in quarantine, without those that will be sent again") {
            $0.quarantineDepth
        },
        .each(
            .counter, "quarantine_overflow",
            "oldest rows of the quarantine, deleted because it was full (1000 rows or 4 MiB)"
        ) { $0.quarantineOverflow },
        .each(.counter, "batches_repeated", "batches sent again that may have been stored") { $0.batchesRepeated },
        .each(
            .counter, "stray_answers", "answers to requests that had been abandoned; they change nothing"
        ) { $0.strayAnswers },
        .each(.counter, "coalesced", "rows superseded by newer ones") { $0.coalesced },
        .each(
            .counter, "preview_sent",
            "newest rows sent ahead of their turn, and requests with newest positions from memory"
        ) { $0.previewSent },
        .each(.counter, "dropped", "rows deleted by command") { $0.dropped },
        .each(.counter, "expired", "rows older than max_age") { $0.expired },
        .each(.counter, "evicted", "rows that the limits of the queue deleted before this endpoint had them") {
            $0.evicted
        },
        .each(.counter, "bytes_sent", as: "sent", unit: "bytes", "bytes of heads and bodies sent") { $0.bytesSent },
        .each(.counter, "bytes_received", as: "received", unit: "bytes", "bytes of heads and bodies received") {
            $0.bytesReceived
        },
        .each(.gauge, "wire_bytes_per_fix", "bytes sent per accepted row") { $0.bytesPerFix },
        .byReason(.counter, "profile_rejected", by: "rule", "rows that a rule of the profile excluded, by rule") {
            $0.profileRejected
        },
    ]
}

// Values that are not a member as it is.
extension Metric {
    @Sendable private static func version(_ status: Status) -> [Sample] {
        [Sample(labels: [Label(name: "version", value: status.version)], value: 1)]
    }

    @Sendable private static func rejections(_ status: Status) -> [Sample] {
        status.motion.rejected.entries.map {
            Sample(labels: [Label(name: "reason", value: $0.name)], value: Double($0.value))
        }
    }

    @Sendable private static func endpointStates(_ status: Status) -> [Sample] {
        status.endpoints.flatMap { Sample.states(of: $0, ["active", "paused", "stopped", "taken", "rebind"]) }
    }
}

extension Status {
    fileprivate var isHealthy: Bool { health == "ok" }
}

extension MotionStatus {
    fileprivate var lastFixSeconds: Double? {
        lastFix.flatMap(UTCTime.milliseconds(iso8601:)).map { Double($0) / 1000 }
    }
}

extension PowerStatus {
    fileprivate var level: Double? { battery.map { Double($0) / 100 } }
}
