# What a parked asset costs with a receiver on a USB serial adapter (FTDI), which hands its bytes on in small pieces.
. /lab/lib.sh
measured_s=${MEASURED:-300}
wakeups_max=5
# Of all threads: how often one of them slept and was woken.
switches() { cat /proc/"$(get MainPID)"/task/*/status | awk '/^voluntary_ctxt_switches/ { sum += $2 } END { print sum }'; }
needs "the driver of FTDI adapters" modinfo ftdi_sio

title install
install_waypost
sed -i 's|^#stop_timeout = .*|stop_timeout = "30s"|; s|^path = "/dev/waypost/gps"|serial_number = "LABFTDI"|' $configuration
ok "the configuration is valid" quietly waypost check
systemctl restart waypost
echo plug >/lab/wanted
ok "fixes come" within 60 at_least '["source"]["fixes"]' 1
# The system's own start is over, and a first upload has been.
ok "it drives" within 120 field_is '["motion"]["state"]' moving
ok "and is heard of" within 150 received
# Written whole, for it is read meanwhile.
echo 0 >/lab/speed.new && mv /lab/speed.new /lab/speed
ok "it is parked" within 180 field_is '["motion"]["state"]' stationary
sleep 20

title "parked, $measured_s s"
fixes=$(status_of '["source"]["fixes"]') loop=$(status_of '["wakeups"]') start=$(uptime_s) before=$(switches)
sleep "$measured_s"
woke=$(($(switches) - before)) lasted=$(($(uptime_s) - start))
loop=$(($(status_of '["wakeups"]') - loop)) came=$(($(status_of '["source"]["fixes"]') - fixes))
echo "      $came fixes in $lasted s; the loop woke $loop times, all threads slept and woke $woke times: $((woke * 100 / lasted)) in 100 s"
echo "      latency timer of the adapter: $(cat /sys/bus/usb-serial/devices/ttyUSB0/latency_timer) ms"
ok "a fix each second" test "$came" -ge $((lasted - 5))
ok "at most $wakeups_max wake-ups a second" test "$woke" -le $((wakeups_max * lasted))
ok "it is parked still" field_is '["motion"]["state"]' stationary
ok "it never restarted" is NRestarts 0
finish
