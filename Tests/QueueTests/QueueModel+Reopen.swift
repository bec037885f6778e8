import Profiles

extension QueueModel {
    mutating func reopen(_ configured: [EndpointSettings]) {
        var known = endpoints
        endpoints = []
        for settings in configured {
            guard let index = known.firstIndex(where: { $0.settings.name == settings.name }) else {
                let backfills = settings.backfill && settings.backupFor == nil
                let formed = backfills ? (rows.first?.seq ?? lastSeq + 1) - 1 : lastSeq
                var new = Endpoint(settings: settings, fingerprint: settings.fingerprint, formed: formed)
                if hasForgotten { new.takenBackThrough = lastSeq }
                endpoints.append(new)
                continue
            }
            endpoints.append(reconcile(known.remove(at: index), with: settings))
        }
        for var endpoint in known {
            if endpoint.removedAt == nil { endpoint.removedAt = lastSeq }
            endpoints.append(endpoint)
        }
        for index in endpoints.indices where endpoints[index].removedAt == nil { checkBatches(of: index) }
    }

    private func reconcile(_ known: Endpoint, with settings: EndpointSettings) -> Endpoint {
        var endpoint = known
        let wasSpare = endpoint.isSpare
        endpoint.settings = settings
        endpoint.removedAt = nil
        if endpoint.isSpare != wasSpare {
            endpoint.formed = lastSeq
            endpoint.batches = []
            endpoint.had = []
            for place in endpoint.quarantine.indices { endpoint.quarantine[place].isRetried = false }
        }
        let isSameDevice = endpoint.fingerprint.split(separator: "\n")[1] == settings.device
        if endpoint.fingerprint == settings.fingerprint || unsent(endpoint).isEmpty
            || (isSameDevice && !endpoint.hasAccepted)
        {
            endpoint.takeBinding()
        } else if endpoint.wanted != settings.fingerprint {
            endpoint.wanted = settings.fingerprint
            endpoint.boundThrough = lastSeq
        }
        return endpoint
    }

    /// Rows may have gone that a removed endpoint could not hold back, and so may a spare.
    private mutating func checkBatches(of index: Int) {
        let present = Set(rows.map(\.seq))
        for place in endpoints[index].batches.indices {
            if !endpoints[index].batches[place].isRetry {
                endpoints[index].batches[place].rows.removeAll { !present.contains($0) }
            }
            guard let route = endpoints[index].batches[place].route else { continue }
            let spare = self.index(of: route).map { endpoints[$0] }
            if spare?.settings.backupFor != endpoints[index].settings.name {
                endpoints[index].batches[place].route = nil
            }
        }
        endpoints[index].batches.removeAll(where: \.rows.isEmpty)
    }
}
