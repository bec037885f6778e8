# An FTDI adapter that is plugged in and pulled out from outside of the guest, against the installed daemon in its sandbox.
. /lab/lib.sh
plug() { echo plug >/lab/wanted; }
unplug() { echo unplug >/lab/wanted; }
descriptors() { ls "/proc/$(get MainPID)/fd" | wc -l; }
rules=/etc/udev/rules.d/69-waypost-local.rules
cycles=${CYCLES:-5}
needs "the driver of FTDI adapters" modinfo ftdi_sio

title install
install_waypost
systemctl stop waypost
# As the shipped rules advise the owner of such an adapter.
echo 'SUBSYSTEM=="tty", SUBSYSTEMS=="usb", ATTRS{idVendor}=="0403", ATTRS{serial}=="LABFTDI", ENV{WAYPOST_GPS}="1"' >$rules
udevadm control --reload

title plug
plug
ok "the rule of the owner names it" within 60 test -e /dev/waypost/gps-LABFTDI
ok "it starts the unit" within 30 is_active
ok "the port opens" within 60 state_is receiving
ok "first fix" within 60 at_least '["source"]["fixes"]' 1
ok "and the upload" within 150 received

title "unplug and plug, $cycles times"
lost=0 back=0
for cycle in $(seq "$cycles"); do
    began=$(uptime_s)
    unplug
    within 30 state_is lost || { ok "unplug $cycle is noticed" false; break; }
    lost=$((lost + $(uptime_s) - began))
    [ "$cycle" != 1 ] || before=$(descriptors)
    fixes=$(status_of '["source"]["fixes"]')
    began=$(uptime_s)
    plug
    within 60 more_fixes || { ok "plug $cycle brings fixes" false; break; }
    back=$((back + $(uptime_s) - began))
done
ok "each was noticed, and fixes came again" test "$cycle" = "$cycles"
echo "      on average lost after $((lost / cycles)) s, fixes again $((back / cycles)) s after the plug"
unplug
within 30 state_is lost
ok "no descriptor is left" test "$(descriptors)" -le "$before"
ok "the journal says why" logged "lost: "

title "by its serial number, without the rule"
rm $rules
udevadm control --reload
sed -i 's#^path = "/dev/waypost/gps"#serial_number = "LABFTDI"#' $configuration
systemctl restart waypost
plug
ok "fixes" within 60 at_least '["source"]["fixes"]' 1
ok "under no name of ours" test ! -e /dev/waypost/gps
unplug
ok "lost again" within 30 state_is lost
ok "it never restarted by itself" is NRestarts 0
finish
