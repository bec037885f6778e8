# Flash that fails and flash that lies (dm-flakey), under the queue of the installed daemon.
. /lab/lib.sh
needs "dm-flakey" modprobe dm_flakey
needs "loop devices" modprobe loop
needs dmsetup command -v dmsetup
queue() { status_of "[\"queue\"][\"$1\"]"; }
disk_error() { status_of '["queue"].get("disk_error")'; }
trouble() { [ "$(disk_error)" != None ]; }
all_well() { ! trouble && [ "$(queue ram_ring_depth)" -le 5 ]; }
recovers() {
    since=$(uptime_s)
    ok "$1" within 90 all_well
    all_well && echo "      after $(($(uptime_s) - since)) s" && return
    echo "      $(disk_error), $(queue ram_ring_depth) in memory, $(queue commit_failed) commits failed"
    grep " $state " /proc/mounts
    dmesg | tail -n 5
}
commits_go_on() { [ "$(queue commits)" -gt "$1" ]; }
sound() { waypost queue verify >/lab/last.log 2>&1 || { cat /lab/last.log; return 1; }; }
# The flash from now on: OPTIONS of dm-flakey for UP seconds well and DOWN seconds ill, or nothing: sound.
flash() {
    table="0 $sectors linear $medium 0"
    [ $# = 0 ] || table="0 $sectors flakey $medium 0 $*"
    dmsetup suspend --nolockfs flash && echo "$table" | dmsetup load flash && dmsetup resume flash
}
mount_flash() {
    echo "0 $sectors linear $medium 0" | dmsetup create flash
    mount /dev/mapper/flash $state
}
# What a pulled plug leaves: neither what the daemon nor what the kernel had in memory.
power_cut() {
    systemctl kill -s KILL waypost
    systemctl stop waypost
    umount $state
    dmsetup remove flash
    mount_flash
    systemctl reset-failed waypost 2>/dev/null
}

title install
truncate -s 96M /var/flash.img
medium=$(losetup -f --show /var/flash.img)
sectors=$(blockdev --getsz "$medium")
# Without a journal: one that cannot be written ends the file system, which no program under it can help.
mkfs.ext4 -q -O ^has_journal "$medium"
install_for_guest
rm -rf "${state:?}"/*
mount_flash
receiver --told /lab/told
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
ok "nothing is lost" holes --told /lab/told --but 4 --and-no-other /lab/told
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
ok "nothing is lost" holes --told /lab/told --but 4 --and-no-other /lab/told
ok "in order, and once" holes --in-order

title "flash that lies: every write is dropped, and then the power goes"
flash 0 60 1 drop_writes
rows=$(wc -l </lab/received.jsonl)
ok "nobody can tell: uploads go on" within 60 received $((rows + 15))
before=$(queue last_seq)
power_cut
systemctl start waypost
ok "it starts again" within 30 is_active
echo "      number of the last record $before before, $(queue last_seq) after; set aside: $(queue corrupt_recovered)"
ok "the queue is sound" sound
# The collector is the same: numbers that it has seen must not hide what is new.
tail -n 1 /lab/told >/lab/from
fixes=$(status_of '["source"]["fixes"]')
ok "fixes come" within 60 more_fixes 20
waypost flush >/dev/null
ok "all is uploaded" within 60 drained
holes --told /lab/told
awk -v from="$(cat /lab/from)" '$1 > from' /lab/told >/lab/told.new
ok "from then on nothing is lost" holes --told /lab/told.new --but 4
finish
