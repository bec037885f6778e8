import ArgumentParser

@main
struct Simulate: ParsableCommand {
    func run() {}
}
