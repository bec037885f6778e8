// Tests of Systemd.
