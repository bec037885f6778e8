import CSimDisk

extension Schedule {
    static func disk(_ dice: Dice) -> Fault.Kind {
        func one(_ setting: Int, _ value: Int64) -> Fault.Kind { .disk([(Int32(setting), value)]) }
        let share = Int64(dice.pick([20_000, 200_000, 1_000_000]))
        return switch dice.below(9) {
        case 0: one(simdisk_fail_write, share)
        case 1: one(simdisk_fail_read, share / 10)
        case 2, 3: one(simdisk_fail_sync, share)
        case 4: one(simdisk_short_write, share)
        case 5: one(simdisk_read_only, 1)
        case 6: one(simdisk_capacity, dice.pick([1, 1, 60_000]))
        case 7: .disk([(Int32(simdisk_fail_write), share / 2), (Int32(simdisk_fail_sync), share / 2)])
        default: .slowDisk(seconds: dice.pick([2, 10, 30]))
        }
    }

    static func command(_ dice: Dice) -> String {
        let name = dice.pick(["alpha", "beta", "gamma"])
        return switch dice.below(27) {
        case 0, 1: #"{"do":"flush"}"#
        case 2: #"{"do":"flush","commit":true}"#
        case 3: #"{"do":"flush","panic":true}"#
        case 4: #"{"do":"pace","moving":true}"#
        case 5: #"{"do":"pace","moving":false}"#
        case 6: #"{"do":"pace"}"#
        case 7, 8: #"{"do":"endpoint","action":"resume","endpoint":"\#(name)"}"#
        case 9, 23: #"{"do":"endpoint","action":"bind","endpoint":"\#(name)","force":\#(dice.chance(0.5))}"#
        case 10, 24: #"{"do":"endpoint","action":"drop","endpoint":"\#(name)"}"#
        case 11: #"{"do":"endpoint","action":"forget","endpoint":"\#(name)"}"#
        case 12: #"{"do":"quarantine","action":"retry","all":true}"#
        case 13: #"{"do":"quarantine","action":"retry","endpoint":"\#(name)","all":true}"#
        case 14: #"{"do":"quarantine","action":"drop","all":true}"#
        case 15: #"{"do":"engine","set":{"priority":"high","interval_ms":1000,"displacement":0}}"#
        case 16: #"{"do":"status"}"#
        case 17: #"{"do":"engine","clear":true}"#
        case 18: #"{"do":"subscriber","add":"\#(name)","resolution":\#(resolution(dice))}"#
        case 19: #"{"do":"power","external":\#(dice.chance(0.5)),"percent":\#(dice.from(0...100))}"#
        case 20: #"{"do":"subscriber","remove":"\#(name)"}"#
        case 21: #"{"do":"boost","resolution":\#(resolution(dice)),"seconds":\#(dice.from(1...3600))}"#
        case 22: #"{"do":"refresh"}"#
        case 25: #"{"do":"movement","source":"gpio","moving":\#(dice.chance(0.5))}"#
        default: #"{"do":"odometer","metres":\#(dice.below(100_000))}"#
        }
    }

    private static func resolution(_ dice: Dice) -> String {
        #"{"priority":"high","interval_ms":\#(dice.pick([0, 1000, 60_000])),"displacement":0}"#
    }
}
