# Flash that fails and flash that lies, under the queue of the installed daemon.
. /lab/lib.sh
. /scripts/lab/vm/flash.sh

title install
# Without a journal: one that cannot be written ends the file system, which no program under it can help.
install_on_flash -O ^has_journal
systemctl start waypost
ok "the asset moves" within 120 field_is '["motion"]["state"]' moving
ok "commits" within 30 commits_go_on 2

title "flash that fails: every write, 40 s long"
fixes=$(status_of '["source"]["fixes"]') since=$(uptime_s)
flash 0 60 1 error_writes
ok "it is reported" within 30 trouble
echo "      after $(($(uptime_s) - since)) s: $(disk_error)"
ok "in the journal too" within 10 logged "outbox.db"
ok "and by the exit status" sh -c 'waypost status >/dev/null; [ $? = 1 ]'
sleep 40
ok "fixes come on" more_fixes 30
echo "      held in memory: $(queue ram_ring_depth), $(queue commit_failed) commits failed"
ok "nothing was dropped" field_is '["queue"]["ram_ring_dropped"]' 0

title "it works again"
flash
recovers "so does the queue, without a restart"
ok "and is sound" sound

title "flash that fails 2 s of each 5, 60 s long"
flash 3 2 1 error_writes
sleep 60
flash
recovers "it recovers"
ok "and is sound" sound
collector 8181
waypost flush >/dev/null
ok "all is uploaded" within 120 drained
ok "nothing is lost" holes --sent /lab/sent --but 4 --and-no-other /lab/sent
ok "in order, and once" holes --in-order
ok "it never restarted" is NRestarts 0

title "flash that fails while the endpoint takes what is in memory"
flash 0 60 1 error_writes
within 30 trouble
rows=$(wc -l </lab/received.jsonl)
ok "locations arrive from memory" within 120 received $((rows + 10))
flash
echo "      $(queue sent_from_ram) sent from memory, $(queue commit_failed) commits failed"
recovers "it recovers"
waypost flush >/dev/null
ok "all is uploaded" within 60 drained
ok "nothing is lost" holes --sent /lab/sent --but 4 --and-no-other /lab/sent
ok "in order, and once" holes --in-order

counted() { python3 -c "import json,urllib.request; print(json.load(urllib.request.urlopen('http://127.0.0.1:8181/stats'))['$1'])"; }
title "flash that lies: every write is dropped, and then the power goes"
flash 0 60 1 drop_writes
rows=$(wc -l </lab/received.jsonl)
ok "it does not show: uploads go on" within 60 received $((rows + 15))
before=$(queue last_seq)
power_cut
systemctl start waypost
ok "it starts again" within 30 is_active
echo "      number of the last record $before before, $(queue last_seq) after; set aside: $(queue corrupt_recovered)"
ok "the queue is sound" sound
# The collector is the same: numbers that it has seen must not hide what is new.
tail -n 1 /lab/sent >/lab/from
fixes=$(status_of '["source"]["fixes"]')
ok "fixes come" within 60 more_fixes 20
waypost flush >/dev/null
ok "all is uploaded" within 60 drained
holes --sent /lab/sent
awk -v from="$(cat /lab/from)" '$1 > from' /lab/sent >/lab/sent.new
ok "from then on nothing is lost" holes --sent /lab/sent.new --but 4
ok "no number was given twice" test "$(counted changed_locations)" = 0
ok "they leapt over those that the flash has lost" test "$(queue last_seq)" -gt "$before"
finish
