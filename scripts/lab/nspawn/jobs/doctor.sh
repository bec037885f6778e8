# What `waypost doctor` says about this host, which has one thing wrong at a time.
. /scripts/lab/nspawn/jobs/common.sh
drop_in() { mkdir -p /etc/systemd/system/waypost.service.d; printf '%s\n' "$@" >/etc/systemd/system/waypost.service.d/lab.conf; systemctl daemon-reload; }
# As on a host whose time service keeps the clock: a container may not ask its kernel.
# Outside of /lab, where another user cannot look.
install -m 755 /lab/shim.so /run/shim.so
head -c 64 /dev/zero >/run/shim.right
chmod 666 /run/shim.right
synchronised="env LD_PRELOAD=/run/shim.so WAYPOST_SHIM_CONTROL=/run/shim.right WAYPOST_SHIM_SYNCHRONISED=1"
# examine [COMMAND…]: by it, if need be.
examine() { $synchronised "$@" waypost doctor --json >/lab/doctor.json 2>/lab/doctor.err; exit_status=$?; }
ends_with() { [ "$exit_status" = "$1" ] || { echo "      exit status $exit_status: $(cat /lab/doctor.err)"; python3 -m json.tool /lab/doctor.json | grep -B 3 -A 2 'degraded\|broken'; return 1; }; }
finds() { PYTHONPATH=/scripts python3 -m lab.tools.finding /lab/doctor.json "$@"; }
endpoint() { PYTHONPATH=/scripts python3 -m lab.tools.endpoint --port "$1" --output /dev/null --certificate "/lab/$2.pem" & }
# mute PORT: takes connections and says nothing.
mute() { python3 -c "import socket, time; s = socket.create_server(('127.0.0.1', $1)); time.sleep(999)" & }
source_is() { sed -i "s#^path = .*#path = \"$1\"#" $configuration; systemctl restart waypost; }

printf '127.0.0.1 collector.lab\n::1 tls.lab old.lab\n' >>/etc/hosts
install_for_each_second http://collector.lab:8181 || exit 1
sed -i 's#^base_url = "http://collector#name = "main"\n&#' $configuration
collector 8181
receiver
node=$(realpath /dev/waypost/gps)
systemctl start waypost
within 60 received

title "a host that is well"
examine
ok "all is well, by 0" ends_with 0
# A container has no kernel log, and this receiver reports no antenna.
ok "and what cannot be known here is called unknown" finds unknown 16 19 25
ok "a pseudo-terminal needs no DeviceAllow=" finds 5 ok pseudo-terminals
ok "the queue is on the disk that is mounted there" finds 22 ok "/var/lib/waypost (ext4)"
ok "its watchdog runs" sh -c '! grep -q "without a watchdog" /lab/doctor.json'
ok "each layer has a time" finds failed main -
examine setpriv --reuid nobody --regid nogroup --clear-groups
nothing_wrong() { ! python3 -m json.tool /lab/doctor.json | grep -B 3 -A 2 '"degraded"\|"broken"'; }
ok "what is hidden from another user is not a failure" nothing_wrong

title "a port that is not in the unit"
# The UART of an i.MX board, as far as the name and number go.
mknod -m 660 /dev/ttymxc0 c 207 16 && chgrp dialout /dev/ttymxc0
source_is /dev/ttymxc0
examine
systemctl show waypost -p DevicePolicy,DeviceAllow | sed 's/^/      /'
ok "DeviceAllow= lacks it" finds 5 broken "DeviceAllow=char-207 rw"
ok "which explains that nothing arrives" finds 13 skipped
drop_in '[Service]' 'DeviceAllow=char-207 rw'
examine
ok "with the drop-in of the advice it may be opened" finds 5 ok "major number 207"
drop_in '[Service]'
source_is /dev/waypost/gps

title "a node of another group"
chown root:tape "$node"
examine
ok "the daemon is not in it" finds 6 broken "usermod -aG tape waypost"
usermod -aG tape waypost
examine
ok "it was added, and the daemon is older" finds 6 broken "systemctl restart waypost"
systemctl restart waypost
examine
ok "after a restart it is in it" finds 6 ok "in group tape"
chown waypost:dialout "$node"

title "other readers"
gpsd -N -n "$node" >/lab/gpsd.log 2>&1 &
gpsd=$!
within 10 sh -c "ls -l /proc/$gpsd/fd | grep -q $node"
examine
ok "gpsd has the port open" finds 7 broken gpsd 'kind = "gpsd"'
kill $gpsd
systemd-run --quiet --unit=reader sh -c "exec sleep 999 <$node"
within 10 sh -c "ls -l /proc/[0-9]*/fd | grep -q $node"
/usr/sbin/ModemManager >/lab/mm.log 2>&1 &
modem_manager=$!
within 10 busctl status org.freedesktop.ModemManager1
# As udevd, which does not run in a container, notes it for a port that the rules of ModemManager take.
mkdir -p /run/udev/data
number=$(stat -c '%Hr:%Lr' "$node")
echo E:ID_MM_CANDIDATE=1 >"/run/udev/data/c$number"
# A host with brltty: its rules, and the kernel log in its own form, since a container has none.
echo 'ENV{PRODUCT}=="1a86/7523/*", GOTO="brltty_usb_run"' >/usr/lib/udev/rules.d/85-brltty.rules
rm -f /dev/kmsg
printf "6,339,5140900,-;usb 1-1: usbfs: interface 0 claimed by ch341 while 'brltty' sets config #1\n" >/dev/kmsg
examine
ok "another unit has the port open" finds 7 broken "systemctl disable --now reader.service"
ok "ModemManager takes it for a modem" finds 8 degraded "ModemManager probes $node" 'ENV{WAYPOST_GPS}="1"'
ok "brltty took an adapter" finds 9 broken "apt remove brltty"
systemctl stop reader
echo E:ID_MM_DEVICE_IGNORE=1 >>"/run/udev/data/c$number"
rm /dev/kmsg /usr/lib/udev/rules.d/85-brltty.rules
examine
ok "brltty is gone" finds 9 ok "not installed"
ok "ModemManager runs and leaves it alone" finds 8 ok "leaves $node alone"
ok "nobody else has it open" finds 7 ok "no other program"
kill $modem_manager
rm -r /run/udev/data

title "a watchdog that had to act"
drop_in '[Service]' WatchdogSec=2 RestartSec=200ms
systemctl restart waypost
restarts=$(get NRestarts)
kill -STOP "$(get MainPID)"
within 15 more_restarts_than "$restarts"
within 10 waypost status --json
journalctl --sync
examine
ok "it hung, and runs again" finds 2 degraded "its watchdog ended it"
drop_in '[Service]'

title "credentials"
cp /lab/ca.pem /etc/waypost/
endpoint 8443 tls
endpoint 8444 old
mute 8183
# server NAME URL [LINE…]
server() {
    printf '[[endpoint]]\nname = "%s"\nbase_url = "%s"\n' "$1" "$2" >>$configuration
    shift 2
    [ $# = 0 ] || printf '%s\n' "$@" >>$configuration
}
server tls https://tls.lab:8443 'tls = { ca = "/etc/waypost/ca.pem" }' 'auth = { kind = "bearer", token = "credential:fleet-token" }'
install -m 600 /dev/null /etc/waypost/fleet-token
echo sesame >/etc/waypost/fleet-token
systemctl restart waypost
examine
ok "the unit was given none" finds 21 broken "LoadCredential=fleet-token:/etc/waypost/fleet-token"
drop_in '[Service]' LoadCredential=other:/etc/waypost/fleet-token
systemctl restart waypost
examine
ok "it was given another" finds 21 broken "does not load credential fleet-token"
drop_in '[Service]' LoadCredential=fleet-token:/etc/waypost/fleet-token
systemctl restart waypost
examine
ok "it was given what it needs" finds 21 ok "1 secret in place"
drop_in '[Service]' LoadCredential=fleet-token:/etc/waypost/fleet-token LoadCredential=ca:/etc/waypost/ca.pem
sed -i 's#"/etc/waypost/ca.pem"#"credential:ca"#' $configuration
systemctl restart waypost
examine
ok "an authority that the unit was given is trusted" finds failed tls -
sed -i 's#"credential:ca"#"/etc/waypost/ca.pem"#' $configuration

title "servers"
sed -i '/^auth = /d' $configuration
cp -p $configuration /lab/well.toml
server old https://old.lab:8444 'tls = { ca = "/etc/waypost/ca.pem" }'
server nowhere http://nowhere.lab
server gone http://127.0.0.1:8
server mute http://127.0.0.1:8183
systemctl reload waypost
examine
ok "one that is well" finds failed main -
ok "one whose certificate will expire" finds failed tls -
ok "one whose certificate has expired" finds failed old tls
ok "one whose name does not exist" finds failed nowhere "no route"
ok "one that refuses" finds failed gone connect
ok "one that says nothing" finds failed mute answer
ok "the first failure has the words" finds 20 degraded "old: tls" "certificate has expired" "openssl s_client -connect old.lab:8444"
cp /lab/well.toml $configuration
systemctl reload waypost
examine
ok "an expiry is told in time" finds 20 degraded "tls: the certificate of tls.lab:8443 expires in 3 days"

title "a clock of 1970"
head -c 64 /dev/zero >/lab/shim.control
python3 -c "import struct, time; open('/lab/shim.control', 'r+b').write(struct.pack('q', 60 - int(time.time())))"
examine env LD_PRELOAD=/lab/shim.so WAYPOST_SHIM_CONTROL=/lab/shim.control
ok "is what is wrong" finds 18 broken 1970-01-01 "timedatectl set-ntp true"
ok "and explains that certificates are not valid yet" finds 20 skipped

title "a disk that is read-only"
systemctl stop waypost
mount -o remount,ro /var/lib/waypost
systemctl start waypost
examine
waypost status --json 2>/dev/null | grep -o '"disk_error":"[^"]*"' | sed 's/^/      /'
ok "is named, with its mount" finds 22 broken "/var/lib/waypost is mounted read-only" "mount -o remount,rw /var/lib/waypost"
mount -o remount,rw /var/lib/waypost

title "no daemon"
systemctl stop waypost
examine
ok "is an exit status of its own" ends_with 2
ok "with the command that starts it" finds 2 broken "sudo systemctl start waypost"
ok "and its queue is sound" finds 24 ok queue
no_receiver
no_collector
finish
