# Reload, as a part of the job systemd: what the unit, the daemon and the journal make of a changed configuration.
title "reload"
drop_in '[Service]'
cat >$configuration <<'TOML'
[device]
id = "lab-1"
[source]
kind = "serial"
path = "/dev/waypost/gps"
[outbox]
commit_window = "2s"
[[endpoint]]
base_url = "http://collector.lab:8181"
TOML
systemctl restart waypost
pid=$(main_pid)
sed -i 's#^commit_window = .*#commit_window = "7s"#' $configuration
ok "a good configuration is taken" quietly systemctl reload waypost
ok "by the same process" test "$(main_pid)" = "$pid"
ok "the journal names the key" logged "in effect now: .outbox. commit_window"
ok "the unit is active again" within 10 is SubState running
echo 'nonsense = 1' >>$configuration
ok "a bad one is refused" sh -c '! systemctl reload waypost 2>/dev/null'
ok "the same process goes on" test "$(main_pid)" = "$pid"
ok "and is active" within 10 is_active
ok "the journal says where and what" logged "waypost.toml:[0-9]*:[0-9]*: .*nonsense"
ok "status says that it was refused" sh -c 'waypost status --json --socket /run/waypost/control.sock | grep -q "configuration refused"'
ok "the status line too" within 10 said "configuration refused"
systemctl kill -s HUP waypost
sleep 1
ok "SIGHUP with a bad one changes nothing" test "$(main_pid)" = "$pid"
sed -i '/nonsense/d' $configuration
systemctl kill -s HUP waypost
ok "SIGHUP with a good one ends the complaint" within 10 sh -c '! waypost status --json --socket /run/waypost/control.sock | grep -q "configuration refused"'
