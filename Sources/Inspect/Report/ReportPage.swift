import CPages
import Configuration
import Hash
import Network
import WaypostCore

/// Puts the page together: one file that needs nothing else.
struct ReportPage {
    private let template: [UInt8]
    private let style: [UInt8]
    /// Unpacks the program and starts it.
    private let boot: [UInt8]
    private let program: [UInt8]

    /// From the files that are built in.
    init() {
        var (template, style, boot, program): ([UInt8], [UInt8], [UInt8], [UInt8]) = ([], [], [], [])
        var index = 0
        while let part = report_page_part(index)?.pointee {
            index += 1
            let bytes = Array(UnsafeBufferPointer(start: part.bytes, count: part.count))
            let path = String(cString: part.path)
            if path.hasSuffix(".html") {
                template += bytes
            } else if path.hasSuffix(".css") {
                style += bytes
            } else if path.hasSuffix("/boot.js") {
                boot += bytes
            } else {
                program += Self.bundled(bytes)
            }
        }
        self.template = template
        self.style = style
        self.boot = boot
        self.program = program
    }

    /// - Parameter made: when, Unix milliseconds.
    /// - Returns: nil when memory is short.
    func html(_ data: ReportData, made: Int64) -> [UInt8]? {
        var writer = ReportDataWriter(data)
        guard let packed = Deflate.compress(writer.bytes(), as: .zlib, level: 9),
            let packedProgram = Deflate.compress(program, as: .zlib, level: 9)
        else { return nil }
        return Self.filled(
            template,
            with: [
                "CSP": Array(Markup.text(policy(tiles: data.options.tiles)).utf8),
                "TITLE": Array(Markup.text(data.name).utf8),
                "NOTICE": Array(Markup.text(data.notice).utf8),
                "CSS": style,
                "BOOT": boot,
                "PROGRAM": Array(Base64.encode(packedProgram).utf8),
                "DATA": Array(Base64.encode(packed).utf8),
                "STATIC": Array(ReportTables.html(of: data).utf8),
                "WHATIF": Array(WhatIfTables.html(of: data).utf8),
                "LOG": Array(HealthTables.html(of: data, made: made).utf8),
            ])
    }

    /// A module without what only a file of its own needs: pages have one script.
    static func bundled(_ module: [UInt8]) -> [UInt8] {
        let (importing, exporting) = (Array("import ".utf8), Array("export ".utf8))
        var script: [UInt8] = []
        for line in module.split(separator: UInt8(ascii: "\n"), omittingEmptySubsequences: false) {
            if line.starts(with: importing) { continue }
            script += line.starts(with: exporting) ? line.dropFirst(exporting.count) : line
            script.append(UInt8(ascii: "\n"))
        }
        return script
    }

    /// Replaces each `@NAME@` of the template once, without looking at what was put in.
    static func filled(_ template: [UInt8], with parts: [String: [UInt8]]) -> [UInt8] {
        var page: [UInt8] = []
        let pieces = template.split(separator: UInt8(ascii: "@"), omittingEmptySubsequences: false)
        var isAfterPart = true
        for (index, piece) in pieces.enumerated() {
            if !isAfterPart, index < pieces.count - 1, let part = parts[String(decoding: piece, as: UTF8.self)] {
                page += part
                isAfterPart = true
            } else {
                if !isAfterPart { page.append(UInt8(ascii: "@")) }
                page += piece
                isAfterPart = false
            }
        }
        return page
    }

    /// No request leaves the page, but for tiles if there is a server of them; only our own script and style run.
    private func policy(tiles: String?) -> String {
        func hash(_ bytes: [UInt8]) -> String { "'sha256-\(Base64.encode(SHA256.hash(bytes)))'" }
        let images = tiles.flatMap(ReportOptions.origin).map { "data: \($0)" } ?? "data:"
        return
            "default-src 'none'; script-src \(hash(boot)) \(hash(program)); style-src \(hash(style)); img-src \(images); "
            + "base-uri 'none'; form-action 'none'"
    }
}
