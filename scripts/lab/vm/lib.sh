# What the scenarios of the virtual machine share: sourced by sh in the guest. The lines are those of the other parts.
. /lab/common.sh
. /lab/settings
ln -sfn /lab/scripts /scripts
title() { echo "# $(cut -d' ' -f1 /proc/uptime) $*"; }
# needs WHAT COMMAND…: an ability of the guest; without it nothing is tried.
needs() {
    what=$1
    shift
    quietly "$@" || { echo "FAIL  the guest lacks $what"; exit 1; }
}
install_waypost() {
    quietly dpkg -i /lab/first.deb
    sed -i 's|^#\[\[endpoint]]$|[[endpoint]]|; s|^#base_url = .*|base_url = "http://127.0.0.1:8181"|' $configuration
    collector 8181
    systemctl restart waypost
}
# Without a collector; not started.
install_for_guest() {
    install_for_each_second http://127.0.0.1:8181
    echo 'timeout = "10s"' >>$configuration
}
# holes OPTION…: judges what the collector has, see scripts/lab/tools/holes.py.
holes() { PYTHONPATH=/scripts python3 -m lab.tools.holes "$@" </lab/received.jsonl; }
drained() { field_is '["endpoints"][0]["waiting"]' 0; }
state_is() { field_is '["source"]["state"]' "$1"; }
more_fixes() { at_least '["source"]["fixes"]' $((fixes + ${1:-1})); }
