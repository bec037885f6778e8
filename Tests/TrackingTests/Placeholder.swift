// Tests of Tracking.
