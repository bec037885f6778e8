import ArgumentParser
import Foundation
import TestSupport
import Testing

@testable import WaypostCLI

/// `docs/waypost.8` against the commands as they are declared.
@Suite struct ManualTests {
    struct Command: CustomTestStringConvertible, Sendable {
        var path: [String]
        var type: any ParsableCommand.Type

        var testDescription: String { path.joined(separator: " ") }
    }

    static let commands = leaves([], Waypost.self)

    private static func leaves(_ path: [String], _ type: any ParsableCommand.Type) -> [Command] {
        let below = type.configuration.subcommands
        if below.isEmpty { return [Command(path: path, type: type)] }
        return below.flatMap { leaves(path + [$0.configuration.commandName ?? "?"], $0) }
    }

    private static let manual = try? String(
        contentsOf: BuiltProducts.repository.appendingPathComponent("docs/waypost.8"), encoding: .utf8
    ).replacing("\\-", with: "-")

    /// In its lines of the synopsis or in its section, not only somewhere.
    @Test(arguments: commands)
    func theManualHasEachOption(_ command: Command) throws {
        let manual = try #require(Self.manual)
        let synopsis = manual.components(separatedBy: ".SH DESCRIPTION")[0].components(separatedBy: "\n.br\n")
            .filter { $0.contains(".B waypost \(command.path[0])\n") || $0.contains(".B waypost \(command.path[0]) ") }
        let section = try #require(
            manual.components(separatedBy: "\n.SS ").first { $0.hasPrefix("\(command.path[0])\n") }, "no .SS section")
        let text = synopsis.joined(separator: "\n") + section
        #expect(!synopsis.isEmpty)
        for word in command.path.dropFirst() { #expect(text.contains(word), "\(word)") }
        for option in command.type.helpMessage().matches(of: /--[a-z-]+/) where option.output != "--help" {
            #expect(text.contains(option.output), "\(option.output)")
        }
    }

    @Test(arguments: commands)
    func theHelpSaysWhatACommandDoes(_ command: Command) {
        #expect(command.type.configuration.abstract.hasSuffix("."), "an abstract that is a sentence")
    }
}
