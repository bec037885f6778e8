import ArgumentParser

@main
struct Collector: ParsableCommand {
    func run() {}
}
