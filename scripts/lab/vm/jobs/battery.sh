# A real power supply without hardware: an SBS gauge on i2c-stub, against the installed daemon in its sandbox.
. /lab/lib.sh
register() { i2cset -f -y "$bus" 0x0b "$1" "$2" w; }
battery_is() { field_is '["power"]["battery"]' "$1"; }
unknown() { waypost status --json | python3 -c 'import json,sys; sys.exit(json.load(sys.stdin)["power"].get("battery") is not None)'; }

title install
install_waypost
ok "it runs" within 30 is_active
ok "without any battery the level is unknown" unknown

title "a gauge appears"
modprobe i2c-dev
modprobe i2c-stub chip_addr=0x0b
bus=$(grep -l 'SMBus stub' /sys/class/i2c-adapter/*/name)
bus=${bus%/name}
bus=${bus##*-}
udevadm settle
# 0x0d percent, 0x16 status (0x00c0 discharging, 0x0080 charging), 0x09 mV, 0x0a mA, 0x0f, 0x10 and 0x18 charges, 0x08 0.1 K
register 0x0d 64
register 0x16 0x00c0
register 0x09 12100
register 0x0a 0xfc18
register 0x03 0
register 0x1a 0x0031
register 0x0f 2000
register 0x10 3000
register 0x18 3500
register 0x08 2981
modprobe sbs-battery
echo sbs-battery 0x0b >"/sys/bus/i2c/devices/i2c-$bus/new_device"
ok "its level is known, though no event says add" within 70 battery_is 64
ok "the journal names the supply" logged "power supply sbs-"

title "values out of range"
register 0x0d 104
ok "more than full is full" within 70 battery_is 100
register 0x0d 9
ok "a low battery is seen without an event, by the poll" within 70 battery_is 9
ok "and counts as low" within 30 field_is '["power"]["low"]' True
register 0x16 0x0080
ok "charging is seen" within 70 field_is '["power"]["charging"]' True

title "the gauge goes"
echo 0x0b >"/sys/bus/i2c/devices/i2c-$bus/delete_device"
ok "the level is unknown again, not 0" within 70 unknown
ok "it never restarted" is NRestarts 0
finish
