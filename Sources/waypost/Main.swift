import WaypostCLI

@main
struct Main {
    static func main() { Waypost.start() }
}
