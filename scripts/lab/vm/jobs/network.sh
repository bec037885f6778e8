# A bad link to the collector: delay, loss, a trickle, and nothing at all.
. /lab/lib.sh
link() { tc qdisc replace dev lo root netem "$@"; }
good_link() { tc qdisc del dev lo root; }
counter() { status_of "[\"endpoints\"][0][\"$1\"]"; }
waits() { [ "$(counter waiting)" -ge "$1" ]; }
needs "the queueing discipline netem" modprobe sch_netem
needs tc command -v tc

title install
install_for_guest
collector 8181
receiver --sent /lab/sent
systemctl start waypost
ok "the first fix is uploaded" within 120 received

title "300 ms of delay, 10 % of packets lost"
link delay 300ms 100ms loss 10%
rows=$(wc -l </lab/received.jsonl)
ok "locations arrive" within 120 received $((rows + 30))

title "30 % lost, twice, out of order"
link delay 500ms 300ms loss 30% duplicate 5% reorder 25%
rows=$(wc -l </lab/received.jsonl)
ok "locations arrive" within 180 received $((rows + 15))

title "a trickle of 8 kbit/s"
link rate 8kbit delay 600ms
rows=$(wc -l </lab/received.jsonl)
ok "locations arrive" within 180 received $((rows + 10))

title "nothing at all"
link loss 100%
ok "locations wait" within 120 waits 30
ok "status names the endpoint as the problem" within 60 sh -c 'waypost status --json | grep -q "\"problems\":\[\"main"'
ok "the daemon goes on" is_active

title "and again"
good_link
ok "all is uploaded" within 180 drained
no_receiver
waypost flush >/dev/null
ok "to the last" within 60 drained
ok "each second that was sent has arrived" holes --sent /lab/sent --but 1 --and-no-other /lab/sent
ok "in order, and once" holes --in-order
echo "      $(counter requests) requests, $(counter retries) repeated, $(counter batches_repeated) known to the collector;" \
    "$(counter bytes_sent) bytes for $(counter acked) locations"
ok "it never restarted" is NRestarts 0
finish
