# What the unit promises, under a real systemd and journald.
. /scripts/lab/nspawn/jobs/common.sh
drop_in() { mkdir -p /etc/systemd/system/waypost.service.d; printf '%s\n' "$@" >/etc/systemd/system/waypost.service.d/lab.conf; systemctl daemon-reload; }
main_pid() { get MainPID; }
of_process() { [ "$(awk "/^$1:/ { print \$2 }" "/proc/$(main_pid)/status")" = "$2" ]; }
entries() { journalctl --sync; journalctl -u waypost -o json "$@"; }
has_entry() { [ -n "$(entries -n 1 "$@")" ]; }
said() { get StatusText | grep -q -- "$1"; }
epoch_seconds() { date +%s; }
endpoint() { PYTHONPATH=/scripts python3 -m lab.tools.endpoint --port "$1" --output "/lab/$2" $3 & within 10 test -e "/lab/$2"; }
has_line() { grep -q -- "$2" "/lab/$1"; }

printf '127.0.0.1 collector.lab\n::1 six.lab tls.lab\n' >>/etc/hosts
install_for_each_second http://collector.lab:8181 || exit 1
printf '[[trackable]]\nid = "order-17"\n' >>$configuration

title readiness
systemctl start waypost
ok "ready without receiver and network" is_active
ok "the queue is open by then" test -e $state/outbox.db
ok "the control socket listens by then" test "$(stat -c %U:%G:%a /run/waypost/control.sock)" = waypost:waypost:660
ok "status answers, by 1: something needs attention" sh -c 'waypost status >/dev/null; [ $? = 1 ]'
ok "the status line says what is missing" within 10 said receiver
ok "others are kept out of the control socket" sh -c '! setpriv --reuid nobody --regid nogroup --clear-groups waypost status --socket /run/waypost/control.sock 2>/dev/null'

title sandbox
ok "the user is waypost" of_process Uid "$(id -u waypost)"
ok "no capability" of_process CapBnd 0000000000000000
ok "no new privileges" of_process NoNewPrivs 1
ok "system calls are filtered" of_process Seccomp 2
exposure=$(systemd-analyze security --no-pager waypost | sed -n 's/.*exposure level for waypost.service: \([0-9.]*\).*/\1/p')
ok "exposure $exposure is at most 1.9" awk "BEGIN { exit !($exposure <= 1.9) }"
ok "every library of the program is loaded" sh -c 'ldd /usr/bin/waypost | sed -n "s/.*=> \(.*\) (.*/\1/p" | while read -r library; do grep -q "$(realpath "$library")" /proc/'"$(main_pid)"'/maps || exit 1; done'

title fixes
collector 8181
receiver
ok "the port opens in the sandbox, and fixes arrive" within 30 at_least '["source"]["fixes"]' 1
ok "a name is resolved and the fix uploaded" within 60 received
ok "the asset moves" within 60 field_is '["motion"]["state"]' moving
ok "status says that all is well, by 0" within 20 waypost status
ok "the status line says so" within 10 said "moving, last fix"
# The status line is sent again at a change that comes some seconds after the last one.
sleep 6
waypost pace stationary >/dev/null
ok "a stop by request is logged" within 10 has_entry MESSAGE_ID=b3a1c0de5f6a4a0f8c2d1e4b7a905103 WAYPOST_STATE=stationary
ok "and what it does goes on to be noticed" within 30 field_is '["motion"]["state"]' moving
ok "nothing has restarted it" test "$(get NRestarts)" = 0

title journal
ok "an entry for the start" has_entry MESSAGE_ID=b3a1c0de5f6a4a0f8c2d1e4b7a905101
ok "one for the receiver" has_entry MESSAGE_ID=b3a1c0de5f6a4a0f8c2d1e4b7a905104 WAYPOST_STATE=receiving
ok "one for the motion, with the trackable" has_entry MESSAGE_ID=b3a1c0de5f6a4a0f8c2d1e4b7a905103 WAYPOST_STATE=moving WAYPOST_TRACKABLE=order-17
ok "the catalogue explains" sh -c 'journalctl -u waypost -x MESSAGE_ID=b3a1c0de5f6a4a0f8c2d1e4b7a905103 | grep -q "waypost replay"'
ok "every line of ours has a MESSAGE_ID" test "$(entries _COMM=waypost | grep -vc MESSAGE_ID)" = 0
ok "no coordinate" sh -c '! journalctl -u waypost -o cat | grep -qE "(^|[^0-9])52[.][0-9]{3}"'
systemctl kill -s STOP systemd-journald
fixes=$(status_of '["source"]["fixes"]')
ok "a journal that hangs holds nothing up" within 10 at_least '["source"]["fixes"]' $((fixes + 3))
systemctl kill -s CONT systemd-journald

title kill -9
sleep 4
# No server takes the fixes, so that what is lost cannot have been sent.
no_collector
sleep 6
ok "the failed uploads, with the endpoint" has_entry MESSAGE_ID=b3a1c0de5f6a4a0f8c2d1e4b7a905105 WAYPOST_ENDPOINT=main
ok "severities" sh -c 'journalctl -u waypost -p warning -o json | grep -q WAYPOST_ENDPOINT'
restarts=$(get NRestarts) killed=$(epoch_seconds)
systemctl kill -s KILL waypost
ok "back within RestartSec + 2 s" within 7 more_restarts_than "$restarts"
back=$(epoch_seconds)
collector 8181
ok "fixes arrive again" within 30 at_least '["source"]["fixes"]' 3
waypost flush >/dev/null
ok "and are uploaded" within 30 sh -c "tail -n 1 /lab/received.jsonl | PYTHONPATH=/scripts python3 -m lab.tools.holes --later-than $back"
ok "nothing older than the commit window is lost" sh -c "PYTHONPATH=/scripts python3 -m lab.tools.holes --none-before $((killed - 3)) </lab/received.jsonl"

title "a loop that hangs"
drop_in '[Service]' WatchdogSec=3 RestartSec=200ms
systemctl restart waypost
restarts=$(get NRestarts)
kill -STOP "$(main_pid)"
ok "is noticed and restarted" within 15 more_restarts_than "$restarts"
ok "the journal names the watchdog" logged "Watchdog timeout"
sleep 7
ok "one that works is left alone" test "$(get NRestarts)" = $((restarts + 1))

title "a crash loop"
for crash in 1 2 3 4 5 6 7 8 9 10 11 12; do
    within 10 is_active
    systemctl kill -s KILL waypost
    sleep 0.3
done
ok "it comes back each time" within 10 is_active
sleep 2
ok "and stays" is_active

title "a stop"
systemctl stop waypost
ok "is clean" is Result success
ok "everything is on disk and the socket gone" test ! -e /run/waypost/control.sock

title "credentials, TLS and IPv6"
cp /lab/ca.pem /etc/waypost/ca.pem
install -m 600 /dev/null /etc/waypost/fleet.token
echo sesame >/etc/waypost/fleet.token
cat >>$configuration <<'TOML'
[[endpoint]]
name = "safe"
base_url = "https://tls.lab:8443"
batch_window = "1s"
tls = { ca = "/etc/waypost/ca.pem" }
auth = { kind = "bearer", token = "credential:fleet-token" }
[[endpoint]]
name = "six"
base_url = "http://six.lab:8282"
batch_window = "1s"
TOML
sed -i 's#^base_url = "http://collector#name = "main"\n&#' $configuration
systemctl start waypost
ok "with a credential that is missing it starts on the last good configuration" within 10 is_active
ok "and says so in an entry that -p warning finds" within 10 \
    sh -c 'journalctl --sync; journalctl -u waypost -p warning | grep -q "refused.*fleet-token"'
systemctl stop waypost
mv /var/lib/waypost/last-good.conf /tmp/
ok "without one it stops the start" sh -c 'systemctl start waypost; [ "$(systemctl show waypost -p ExecMainStatus --value)" = 78 ]'
ok "and is an entry that -p crit finds" sh -c 'journalctl --sync; journalctl -u waypost -p crit | grep -q fleet-token'
drop_in '[Service]' LoadCredential=fleet-token:/etc/waypost/fleet.token
endpoint 8443 safe.txt "--certificate /lab/server.pem"
endpoint 8282 six.txt
systemctl start waypost
ok "it starts with LoadCredential=" within 10 is_active
ok "the credential arrives, over TLS" within 60 has_line safe.txt "Bearer sesame"
ok "IPv6 works" within 60 has_line six.txt "POST /locations"
no_receiver
no_collector
. /scripts/lab/nspawn/jobs/reload.sh
finish
