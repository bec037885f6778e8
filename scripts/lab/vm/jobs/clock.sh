# The wall clock of the guest is set while fixes come; the receiver has a clock of its own.
. /lab/lib.sh
real_now() { echo $((booted + $(uptime_s))); }
set_clock() { date -u -s "$1" >/dev/null; }
wakeups() { status_of '["wakeups"]'; }
uploads_go_on() { rows=$(wc -l </lab/received.jsonl); within 30 received $((rows + 3)); }
# A timer that bursts wakes without end; one that sticks is seen by what does not come.
seconds_of() { # WHAT
    fixes=$(status_of '["source"]["fixes"]')
    ok "$1: fixes come on" within 60 more_fixes 10
    ok "$1: uploads too" uploads_go_on
    before=$(wakeups)
    sleep 10
    woke=$(($(wakeups) - before))
    ok "$1: $woke wake-ups in 10 s" test $woke -le 150
}
booted=$(($(date +%s) - $(uptime_s)))

title install
install_for_guest
collector 8181
receiver --sent /lab/sent
set_clock '1970-01-01 00:01:40'
systemctl start waypost
ok "it starts in 1970" within 30 is_active
ok "the asset moves" within 90 field_is '["motion"]["state"]' moving
seconds_of "in 1970"

title "a clock that is set"
set_clock "@$(real_now)"
seconds_of "set right"
set_clock '2040-02-03 04:05:06'
seconds_of "in 2040"
set_clock '1970-01-02 00:00:00'
seconds_of "back in 1970"

title "timers"
sleep 65
ok "the watchdog is fed" is NRestarts 0
# The line stays open, so that only a timer can notice.
kill -STOP "$receiver_pid"
set_clock '2040-02-03 04:05:06'
set_clock '1970-01-02 00:00:00'
ok "silence is seen, though the clock was set to and fro" within 20 state_is silent
kill -KILL "$receiver_pid"
set_clock '2040-02-03 04:05:06'
receiver --sent /lab/sent.again
ok "and the receiver's return in 2040" within 60 state_is receiving
fixes=$(status_of '["source"]["fixes"]')
ok "with fixes" within 30 more_fixes 5
set_clock "@$(real_now)"
waypost flush >/dev/null
no_receiver
waypost flush >/dev/null
ok "all is uploaded" within 60 drained

title "what was recorded"
cat /lab/sent /lab/sent.again >/lab/sent.all
ok "each second as the receiver sent it, and no other" holes --sent /lab/sent --but 1 --and-no-other /lab/sent.all
ok "in order, and once" holes --in-order
ok "it never restarted" is NRestarts 0
finish
