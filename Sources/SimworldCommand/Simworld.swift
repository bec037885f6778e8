import Simworld

@main
enum SimworldProgram {
    static func main() {}
}
