# Whether the wall clock is synchronised, which the daemon asks the kernel under its unit: with chrony and with systemd-timesyncd,
# each as Debian has it. Their server is another chronyd, which serves the time of this guest and does not touch its clock.
. /lab/lib.sh
needs chrony command -v chronyd
needs systemd-timesyncd test -x /lib/systemd/systemd-timesyncd
mark=/run/systemd/timesync/synchronized
commands=0
tool() { PYTHONPATH=/scripts python3 -m lab.tools."$@"; }
serve() {
    chronyd -x 'local stratum 1' 'allow 127.0.0.0/8' 'bindaddress 127.0.0.2' 'cmdport 0' 'bindcmdaddress /' \
        'pidfile /run/server.pid' 'user root'
}
# The host's clock by the daemon and by timedatectl, which must not differ.
both_say() { # yes|no
    clock=no
    [ "$(status_of '["queue"]["clock_untrusted"]')" = 1 ] || clock=yes
    [ "$clock $(timedatectl show -p NTPSynchronized --value)" = "$1 $1" ]
}
# command_is WHAT: what becomes of a command of the server.
command_is() {
    commands=$((commands + 1))
    became=$(tool command http://127.0.0.1:8181/commands/lab-1 c-$commands flush)
    [ "$became" = "$1" ] || { echo "      $became"; return 1; }
}
# signs WHAT: whether the endpoint whose requests are signed with the time sends: None, or the layer of its problem.
signs() { field_is '["endpoints"][1].get("problem_layer")' "$1"; }
seen() { # WHO
    ok "$1: daemon and timedatectl say that it is synchronised" within 90 both_say yes
    echo "      the kernel allows for $(tool kernel_clock) us"
    ok "$1: a command is carried out" command_is "done"
    ok "$1: requests are signed" within 90 signs None
}
unseen() { # WHY
    ok "$1: daemon and timedatectl say that it is not" within 10 both_say no
    ok "$1: a command is refused" command_is clock
    ok "$1: nothing is signed" within 30 signs clock
}
# As by hand: the kernel then knows of no synchronisation.
set_clock() { date -u -s "@$(($(date +%s) + ${1:-1}))" >/dev/null; }

title install
install_for_guest
printf 'whsec_%s\n' "$(head -c 24 /dev/urandom | base64)" >/etc/waypost/key
chown waypost: /etc/waypost/key
chmod 0600 /etc/waypost/key
cat >>$configuration <<'TOML'
name = "main"
[[endpoint]]
name = "signed"
base_url = "http://127.0.0.1:8182"
batch_window = "1s"
sign = { scheme = "standard-webhooks", secret = "file:/etc/waypost/key" }
[remote]
commands = ["flush"]
reported_url = "http://127.0.0.1:8181/reported/lab-1"
TOML
ok "the configuration is valid" quietly waypost check
collector 8181
# A collector of its own: one hands a command out once, with the answer to any batch of the device.
/lab/waypost-collector --port 8182 --quiet &
receiver
systemctl start waypost
ok "it uploads" within 60 received
ok "after a boot: daemon and timedatectl say that it is not" both_say no
# For signatures it is enough that the host is within a minute of the receiver.
set_clock 600
unseen "the clock was set once"

title chrony
serve
echo 'server 127.0.0.2 iburst' >/etc/chrony/sources.d/lab.sources
systemctl unmask -q chrony
ok "Debian's configuration has rtcsync" grep -qx rtcsync /etc/chrony/chrony.conf
systemctl start chrony
seen chrony
systemctl stop chrony
ok "chrony has ended: what it did still holds" both_say yes
# It grows by 500 us a second, by 16 s in nine hours.
tool kernel_clock --set 15999000 >/dev/null
unseen "the error has grown to 16 s"
systemctl start chrony
seen "chrony again"
systemctl stop chrony
set_clock
unseen "chrony has ended and the clock was set"
sed -i /^rtcsync/d /etc/chrony/chrony.conf
systemctl start chrony
seen "chrony without rtcsync"
systemctl stop chrony

title systemd-timesyncd
set_clock
unseen "the clock was set"
mkdir -p /etc/systemd/timesyncd.conf.d
printf '[Time]\nNTP=127.0.0.2\n' >/etc/systemd/timesyncd.conf.d/lab.conf
systemctl unmask -q systemd-timesyncd
ok "no mark yet" test ! -e $mark
systemctl start systemd-timesyncd
seen timesyncd
ok "and there is its mark" test -e $mark
kill "$(cat /run/server.pid)"
set_clock
unseen "the clock was set, and there is no server"
ok "though timesyncd runs" systemctl -q is-active systemd-timesyncd
ok "and has its mark" test -e $mark
systemctl stop systemd-timesyncd
ok "which goes when timesyncd ends" test ! -e $mark
serve
systemctl start systemd-timesyncd
seen "timesyncd again"

ok "it never restarted" is NRestarts 0

title "the unit"
mkdir -p /run/systemd/system/waypost.service.d
printf '[Service]\nProtectClock=yes\n' >/run/systemd/system/waypost.service.d/clock.conf
systemctl daemon-reload
systemctl restart waypost
ok "with ProtectClock= it cannot ask, which is why the unit has it not" field_is '["queue"]["clock_untrusted"]' 1
ok "though the clock is synchronised" test "$(timedatectl show -p NTPSynchronized --value)" = yes
rm /run/systemd/system/waypost.service.d/clock.conf
systemctl daemon-reload
systemctl restart waypost
ok "without, it says so at once" both_say yes
finish
