# What the jobs share. Sourced by sh inside the container.
failures=0
state=/var/lib/waypost
configuration=/etc/waypost/waypost.toml

# Seconds since the boot: the wall clock may be set meanwhile.
uptime_s() { read -r up _ </proc/uptime; echo "${up%.*}"; }
title() { echo "# $*"; }
# ok WHAT COMMAND…
ok() {
    what=$1 began=$(uptime_s)
    shift
    if "$@"; then verdict=ok; else verdict=FAIL failures=$((failures + 1)); fi
    took=$(($(uptime_s) - began))
    printf '%-5s %s\n' $verdict "$what$([ $took -lt 5 ] || echo " ($took s)")"
}
# within SECONDS COMMAND…: until it succeeds.
within() {
    deadline=$(($(uptime_s) + $1))
    shift
    while ! "$@" >/dev/null 2>&1; do
        [ "$(uptime_s)" -lt $deadline ] || return 1
        sleep 0.1
    done
}
quietly() { "$@" >/lab/last.log 2>&1 || { cat /lab/last.log; return 1; }; }
get() { systemctl show waypost -p "$1" --value; }
is() { [ "$(get "$1")" = "$2" ]; }
is_active() { is ActiveState active; }
more_restarts_than() { [ "$(get NRestarts)" -gt "$1" ] && is_active; }
not() { ! "$@"; }
# A number or text out of `waypost status --json`: PATH as in Python.
status_of() { waypost status --json | python3 -c "import json,sys; print(json.load(sys.stdin)$1)"; }
field_is() { [ "$(status_of "$1")" = "$2" ]; }
at_least() { [ "$(status_of "$1")" -ge "$2" ]; }
logged() { journalctl --sync; journalctl -u waypost -o cat | grep -q -- "$1"; }

# The package with a configuration that keeps each fix, and lets further keys of the endpoint follow; not started.
install_for_each_second() { # BASE_URL
    quietly dpkg -i /lab/first.deb || return 1
    systemctl stop waypost
    cat >$configuration <<TOML
[device]
id = "lab-1"
[source]
kind = "serial"
path = "/dev/waypost/gps"
[sampling]
preset = "active"
[outbox]
commit_window = "2s"
[[endpoint]]
base_url = "$1"
batch_window = "1s"
TOML
}

# A receiver under the name that the shipped configuration has: drives around and sends the time of this host.
receiver() {
    PYTHONPATH=/scripts python3 -m lab.tools.receiver --link /dev/waypost/gps "$@" &
    receiver_pid=$!
    within 10 test -e /dev/waypost/gps
}
no_receiver() { kill "$receiver_pid"; wait "$receiver_pid" 2>/dev/null; }

collector() { # PORT
    /lab/waypost-collector --port "$1" --output /lab/received.jsonl --print-port-to /run/collector.port >/lab/collector.log 2>&1 &
    collector_pid=$!
    within 10 test -s /run/collector.port
}
no_collector() { kill "$collector_pid"; wait "$collector_pid" 2>/dev/null; rm -f /run/collector.port; }
received() { [ "$(wc -l </lab/received.jsonl)" -gt "${1:-0}" ]; }

finish() {
    [ "$failures" = 0 ] && exit 0
    echo "# what the journal has"
    journalctl --sync
    journalctl -u waypost -o short-monotonic -n 40 --no-pager
    exit 1
}
