# A USB receiver out of kernel parts (dummy_hcd and g_serial) against the installed daemon in its sandbox.
. /lab/lib.sh
plug() { modprobe g_serial idVendor=0x1546 idProduct=0x01a8 iSerialNumber=LABGPS iManufacturer=u-blox iProduct=GNSS; }
unplug() { modprobe -r g_serial; }
feed() { PYTHONPATH=/lab/scripts python3 -m lab.tools.feed /dev/ttyGS0 & feeder=$!; }
descriptors() { ls "/proc/$(get MainPID)/fd" | wc -l; }
cycles=${CYCLES:-10}

title install
install_waypost
ok "it waits for a receiver" within 30 is_active
ok "the driver is not there yet" sh -c '! grep -q ttyACM /proc/devices'

title plug
modprobe dummy_hcd
plug
ok "the rules name it" within 30 test -e /dev/waypost/gps
ok "and its serial number" test -e /dev/waypost/gps-LABGPS
udevadm info -q property /dev/ttyACM0 >/tmp/properties
ok "ModemManager keeps away" grep -q '^ID_MM_PORT_IGNORE=1' /tmp/properties
ok "gpsd's wish and ours both survive" sh -c 'grep "^SYSTEMD_WANTS=" /tmp/properties | grep gpsdctl | grep -q waypost.service'
feed
ok "its group is that of gpsd, and the daemon is not in it" sh -c '[ "$(stat -c %G:%a /dev/ttyACM0)" = dialout:660 ] && ! id -Gn waypost | grep -qw dialout'
ok "the port opens, though its driver came after the unit" within 30 state_is receiving
ok "no other user can open it meanwhile" sh -c '! setpriv --reuid waypost --regid dialout --clear-groups dd if=/dev/ttyACM0 of=/dev/null count=0 2>/dev/null'
ok "fixes arrive" within 30 at_least '["source"]["fixes"]' 2
ok "and are uploaded" within 150 received

title "unplug and plug, $cycles times"
for cycle in $(seq "$cycles"); do
    kill $feeder
    unplug
    within 30 state_is lost || { ok "unplug $cycle is noticed" false; break; }
    # The first is the measure: the connection to the collector is open by then.
    [ "$cycle" != 1 ] || before=$(descriptors)
    fixes=$(status_of '["source"]["fixes"]')
    plug
    within 30 test -e /dev/ttyACM0
    feed
    within 60 at_least '["source"]["fixes"]' $((fixes + 1)) || { ok "plug $cycle brings fixes" false; break; }
done
ok "each was noticed, and fixes came again" test "$cycle" = "$cycles"
ok "the receiver kept its number" test ! -e /dev/ttyACM1
kill $feeder
unplug
within 30 state_is lost
ok "no descriptor is left" test "$(descriptors)" -le "$before"
ok "the journal says why" logged "lost: "

title "without udevd"
systemctl stop systemd-udevd systemd-udevd-kernel.socket systemd-udevd-control.socket
sed -i 's#^path = "/dev/waypost/gps"#path = "/dev/ttyACM0"#' $configuration
systemctl restart waypost
plug
sleep 1
chown waypost:dialout /dev/ttyACM0 && chmod 660 /dev/ttyACM0
feed
ok "a receiver is found all the same" within 60 state_is receiving
ok "it never restarted by itself" is NRestarts 0
finish
