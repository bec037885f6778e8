# DeviceAllow= by number, as the unit has it, against names, for a driver that loads after the unit started.
. /lab/lib.sh
cat >/lab/try.sh <<'TRY'
for i in $(seq 100); do
    [ -e /dev/ttyACM0 ] && { dd if=/dev/ttyACM0 of=/dev/null count=0 2>/tmp/error && echo opens || cat /tmp/error; exit; }
    sleep 0.3
done
echo no device
TRY
try() { # NAME DEVICE
    systemd-run -q --unit="try-$1" -p DevicePolicy=closed -p "DeviceAllow=$2" -p PrivateTmp=yes -p User=nobody \
        -p SupplementaryGroups=dialout -p "StandardOutput=file:/lab/try-$1.txt" -p StandardError=inherit sh /lab/try.sh
}
title before the driver
try number "char-166 rw"
try name "char-ttyACM rw"
ok "the unit names numbers alone" sh -c '! grep "^DeviceAllow=" /lib/systemd/system/waypost.service 2>/dev/null | grep -v "char-[0-9]* rw"'
modprobe dummy_hcd
modprobe g_serial idVendor=0x1546 idProduct=0x01a8 iSerialNumber=LABGPS
ok "a number opens" within 60 grep -q opens /lab/try-number.txt
ok "a name does not, which is why" within 60 grep -q "not permitted" /lab/try-name.txt
finish
