// Tests of Sensors.
