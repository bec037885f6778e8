# What the boot after a power cut finds. Drives until the plug is pulled, see scripts/lab/vm/outside/powercut.
. /lab/lib.sh
sound() { waypost queue verify >/lab/last.log 2>&1 || { cat /lab/last.log; return 1; }; }
boots=$(($(cat /lab/boots 2>/dev/null || echo 0) + 1))
echo $boots >/lab/boots

if [ $boots = 1 ]; then
    title install
    install_for_guest
    systemctl enable -q waypost
else
    title "after power cut $((boots - 1))"
    ok "it started by itself" within 60 is_active
    ok "at the first try" is NRestarts 0
    ok "the queue is sound" sound
    ok "no queue had to be replaced" field_is '["queue"]["corrupt_recovered"]' 0
    cat /lab/sent >>/lab/sent.all
    rm -f /lab/received.jsonl
    collector 8181
    waypost flush >/dev/null
    ok "all is uploaded" within 120 drained
    # The window, a second until its end is due, and one for the disk.
    ok "nothing older than the commit window is lost" holes --sent /lab/sent --but 4 --and-no-other /lab/sent.all
    ok "in order, and once" holes --in-order
    no_collector
fi
if [ -e /lab/stay ]; then
    rm -f /lab/sent
    receiver --sent /lab/sent
    systemctl start waypost
    ok "it drives" within 120 field_is '["motion"]["state"]' moving
    sync
    if [ $failures != 0 ]; then
        rm /lab/stay
        finish
    fi
    touch /lab/driving
    sleep infinity
fi
finish
