// Tests of Uplink.
