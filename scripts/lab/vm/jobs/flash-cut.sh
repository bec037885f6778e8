# Flash that failed and is sound again, and then the power goes. What a flush that failed leaves in the memory of the kernel
# looks written, is not, and is never written again: nothing that comes later may rest on it.
. /lab/lib.sh
. /scripts/lab/vm/flash.sh
rounds=${ROUNDS:-2}
kept_for_s=12

title install
# Journal and tables of the file system stand at the beginning and stay sound: without them there is nothing to go on with.
install_on_flash -E packed_meta_blocks=1
first_free=$(dumpe2fs "$medium" 2>/dev/null | sed -n 's/^  Free blocks: \([0-9]*\).*/\1/p' | head -n 1)
needs "room for the queue behind the tables of the file system" test "$first_free" -gt 0
systemctl start waypost
ok "the asset moves" within 120 field_is '["motion"]["state"]' moving
ok "commits" within 30 commits_go_on 2

last_sent() { tail -n 1 /lab/sent; }
from=$(last_sent)

# ill OPTION…: flash that fails by these options of dm-flakey, works again, holds some more commits and is cut off.
ill() {
    failed=$(queue commit_failed)
    steady=$((first_free * 8))
    flash "$@" 1 error_writes
    ok "commits fail" within 60 commits_fail $((failed + 1))
    sleep 10
    flash
    recovers "it recovers"
    commits=$(queue commits)
    sleep $kept_for_s
    ok "commits go on" commits_go_on $((commits + 2))
    echo "      $(queue commit_failed) commits failed so far; the log has $(stat -c %s $state/outbox.db-wal) bytes"
    cut=$(last_sent)
    power_cut
    systemctl start waypost
    ok "it starts again" within 30 is_active
    ok "the queue is sound" sound
    ok "no queue had to be replaced" field_is '["queue"]["corrupt_recovered"]' 0
    collector 8181
    waypost flush >/dev/null
    fixes=$(status_of '["source"]["fixes"]')
    ok "all is uploaded" within 60 drained
    no_collector
    # The window, a second until its end is due, and one for the disk.
    ok "nothing is lost that was committed before the cut" holes --sent /lab/sent --after "$from" --until "$cut" --but 4
    ok "fixes come again" within 60 more_fixes 3
    from=$(last_sent)
}
for round in $(seq "$rounds"); do
    title "every write fails for some 15 s, and then the power goes: $round of $rounds"
    ill 0 60
    title "2 s of each 5, and then the power goes: $round of $rounds"
    ill 3 2
done
finish
