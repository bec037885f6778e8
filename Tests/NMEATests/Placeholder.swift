// Tests of NMEA.
