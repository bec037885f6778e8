import Positioning
public struct MotionDetector: Sendable {}
