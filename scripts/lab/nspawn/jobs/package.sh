# The life of the package: first.deb and second.deb (a later revision) under dpkg.
. /scripts/lab/nspawn/jobs/common.sh
pristine() { [ ! -e /etc/waypost ] && [ ! -e $state ] && [ ! -e /usr/bin/waypost ] && [ -z "$(find /etc/systemd /var/lib/systemd -name 'waypost*')" ]; }
changed_lines() { dpkg-deb --fsys-tarfile /lab/first.deb | tar -xO ./usr/share/waypost/waypost.toml | diff - $configuration | grep -c '^[<>]'; }
queue_id() { python3 -c "import sqlite3; print([bytes(r[0]).hex() if isinstance(r[0],bytes) else r[0] for r in sqlite3.connect('$state/outbox.db').execute('select uuid from outbox')])" 2>/dev/null || stat -c %i $state/outbox.db; }
echo '127.0.0.1 collector.lab' >>/etc/hosts

title a fresh installation
ok "dpkg installs it" quietly dpkg -i /lab/first.deb
ok "the shipped configuration starts" within 20 is_active
ok "and is valid to its last line" quietly waypost check
ok "it is enabled at boot" quietly systemctl is-enabled waypost
sleep 3
ok "it stays up without receiver and endpoint" is NRestarts 0
ok "the configuration is for the daemon and root alone" test "$(stat -c %U:%G:%a $configuration)" = root:waypost:640
ok "the queue is for the daemon alone" test "$(stat -c %U:%a $state)" = waypost:700
ok "status reports degraded, by exit status 1" sh -c 'waypost status >/dev/null; [ $? = 1 ]'
ok "the catalogue knows its messages" sh -c 'journalctl --list-catalog b3a1c0de5f6a4a0f8c2d1e4b7a905101 | grep -q "waypost started"'
ok "bash completes its commands" bash -c '. /usr/share/bash-completion/completions/waypost; complete -p waypost >/dev/null'
ok "the manual page is there" sh -c 'zcat /usr/share/man/man8/waypost.8.gz | grep -q "^.TH WAYPOST 8"'

title two lines, and the first fix
sed -i 's|^#\[\[endpoint]]$|[[endpoint]]|; s|^#base_url = .*|base_url = "http://collector.lab:8181"|' $configuration
ok "two lines were edited" test "$(changed_lines)" = 4
collector 8181
receiver
systemctl restart waypost
ok "the first fix is uploaded" within 60 received
ok "status says that all is well, by 0" within 20 waypost status

title an upgrade
no_collector
ok "locations wait for the endpoint" within 120 at_least '["queue"]["queue_depth"]' 1
waypost flush --commit >/dev/null
queue=$(queue_id) waiting=$(status_of '["queue"]["queue_depth"]') known=$(wc -l </lab/received.jsonl)
ok "dpkg upgrades" quietly dpkg -i --force-confdef --force-confold /lab/second.deb
ok "the new one runs" within 20 is_active
ok "it is the new one" test "$(dpkg-query -W -f '${Version}' waypost)" = "$(dpkg-deb -f /lab/second.deb Version)"
ok "the edited configuration is kept" test "$(changed_lines)" = 4
ok "with its owner and mode" test "$(stat -c %U:%G:%a $configuration)" = root:waypost:640
ok "the queue is the same" test "$(queue_id)" = "$queue"
ok "nothing that waited is gone" at_least '["queue"]["queue_depth"]' "$waiting"
collector 8181
waypost flush >/dev/null
ok "what waited is uploaded" within 60 received $((known + waiting - 1))
ok "each location once" sh -c '[ "$(sort /lab/received.jsonl | uniq -d | wc -l)" = 0 ]'

title removal
ok "dpkg removes it" quietly dpkg -r waypost
ok "no program is left" test ! -e /usr/bin/waypost
ok "nothing runs" not pgrep -x waypost
ok "the configuration is kept" test -e $configuration
ok "the queue is kept" test -e $state/outbox.db
ok "dpkg installs it again" quietly dpkg -i --force-confold /lab/second.deb
ok "with the old configuration" test "$(changed_lines)" = 4
ok "and the old queue" test "$(queue_id)" = "$queue"
ok "it runs" within 20 is_active
no_receiver

title purge
ok "dpkg purges it" quietly dpkg -P waypost
ok "nothing is left" pristine
ok "but its user, as is the custom" quietly getent passwd waypost

title a second installation
ok "dpkg installs it" quietly dpkg -i /lab/second.deb
ok "it runs" within 20 is_active
ok "with the shipped configuration" test "$(changed_lines)" = 0
ok "and an empty queue" field_is '["queue"]["queue_depth"]' 0

title a configuration that is wrong
ok "the good one is kept" within 10 test -e /var/lib/waypost/last-good.conf
echo 'nonsense = 1' >>$configuration
systemctl restart waypost 2>/dev/null
ok "it runs on the last good one" within 10 is_active
ok "and says so" field_is '["configuration"]' last-good
rm /var/lib/waypost/last-good.conf
systemctl restart waypost 2>/dev/null
ok "the unit fails" within 10 is ActiveState failed
ok "by status 78" is ExecMainStatus 78
sleep 6
ok "and is not tried again" is NRestarts 0
ok "an upgrade succeeds all the same" quietly dpkg -i --force-confold --force-downgrade /lab/first.deb
ok "purge takes it" quietly dpkg -P waypost
finish
