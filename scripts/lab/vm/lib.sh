# What the scenarios of the virtual machine share: sourced by sh in the guest. The lines are those of the other parts.
. /lab/common.sh
title() { echo "# $(cut -d' ' -f1 /proc/uptime) $*"; }
install_waypost() {
    quietly dpkg -i /lab/first.deb
    sed -i 's#^base_url = .*#base_url = "http://127.0.0.1:8181"#' $configuration
    collector 8181
    systemctl restart waypost
}
