# What the scenarios with bad flash (dm-flakey under the queue of the installed daemon) share; after lib.sh.
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
commits_fail() { [ "$(queue commit_failed)" -ge "$1" ]; }
sound() { waypost queue verify >/lab/last.log 2>&1 || { cat /lab/last.log; return 1; }; }
# The flash from now on, but for its first sectors that are steady: OPTIONS of dm-flakey for UP seconds well and DOWN seconds ill, or
# nothing: sound.
steady=0
flash() {
    kind=linear
    [ $# = 0 ] || kind=flakey
    {
        [ $steady = 0 ] || echo "0 $steady linear $medium 0"
        echo "$steady $((sectors - steady)) $kind $medium $steady $*"
    } >/run/flash.table
    dmsetup suspend --nolockfs flash && dmsetup load flash </run/flash.table && dmsetup resume flash
}
mount_flash() {
    echo "0 $sectors linear $medium 0" | dmsetup create flash
    mount /dev/mapper/flash $state
}
# What a pulled plug leaves: neither what the daemon nor what the kernel had in memory, and another boot.
power_cut() {
    steady=0
    flash 0 60 1 drop_writes
    systemctl kill -s KILL waypost
    systemctl stop waypost
    umount $state
    dmsetup remove flash
    mount_flash
    mkdir -p /run/systemd/system/waypost.service.d
    printf '[Service]\nEnvironment=WAYPOST_BOOT_ID=%s\n' "$(tr -d - </proc/sys/kernel/random/uuid)" \
        >/run/systemd/system/waypost.service.d/boot.conf
    systemctl daemon-reload
    systemctl reset-failed waypost 2>/dev/null
}

# An empty queue on flash of its own, made with these OPTIONS of mkfs.ext4, and a receiver that drives; not started.
install_on_flash() {
    truncate -s 96M /var/flash.img
    medium=$(losetup -f --show /var/flash.img)
    sectors=$(blockdev --getsz "$medium")
    mkfs.ext4 -q -b 4096 "$@" "$medium"
    install_for_guest
    rm -rf "${state:?}"/*
    mount_flash
    receiver --sent /lab/sent
}
