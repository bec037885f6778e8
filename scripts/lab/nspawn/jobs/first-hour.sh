# The first hour: first.deb (or what /lab/install does), init, the first location, and mistakes judged by words.
. /scripts/lab/nspawn/jobs/common.sh
certificate() { # NAME OPTIONS…: in /lab, for localhost
    name=$1
    shift
    openssl req -x509 -newkey rsa:2048 -nodes -keyout /lab/$name.key -out /lab/$name.pem -subj /CN=localhost \
        -addext subjectAltName=DNS:localhost "$@" >/dev/null 2>&1
}
certificate own -days 30
python3 /scripts/lab/tools/first_hour.py /lab >/lab/servers.log 2>&1 &
within 10 grep -q ready /lab/servers.log

title the package and init
if [ -e /lab/first.deb ]; then
    ok "dpkg installs it" sh -c 'dpkg -i /lab/first.deb >/lab/dpkg 2>&1 || { cat /lab/dpkg; false; }'
    ok "and says what comes next" grep -q "sudo waypost init" /lab/dpkg
else
    ok "it is installed" quietly sh /lab/install
fi
ok "it starts with the example" within 20 is_active
for command in check status "endpoint list"; do
    ok "$command says that there is no server" sh -c "waypost $command 2>&1 | tr -s ' \n' '  ' | grep -q 'none is configured yet'"
done
useradd -m pi
ok "another user is told what helps, and not that no daemon runs" sh -c \
    'runuser -u pi -- waypost status >/lab/pi 2>&1; [ $? = 77 ] && grep -q "use sudo, or join group waypost" /lab/pi && ! grep -q "no daemon" /lab/pi'
mkdir -p /dev/waypost
PYTHONPATH=/scripts python3 -m lab.tools.receiver --link /dev/waypost/gps >/dev/null 2>&1 &
within 10 test -e /dev/waypost/gps
chmod 666 "$(readlink -f /dev/waypost/gps)"
began=$(uptime_s)
ok "init writes the configuration" sh -c \
    'waypost init --yes --server traccar --url 127.0.0.1:5055 --device van-7 --source /dev/waypost/gps >/lab/init 2>&1 || { cat /lab/init; false; }'
ok "it replaced the example unasked, with its owner and mode" test "$(stat -c %U:%G:%a $configuration)" = root:waypost:640
ok "and kept nothing of it" test ! -e $configuration.bak
systemctl restart waypost
ok "the server is reached before anything is sent, or has accepted" within 20 sh -c \
    'waypost status --json | grep -qE "\"contact\":\"(reached|accepted)\""'
ok "the first location arrives" within 120 test -s /lab/received
echo "      $(($(uptime_s) - began)) s from init to the first location"
cp $configuration /lab/good.toml

# conf SOURCE ENDPOINT
conf() { printf '[device]\nid = "van-7"\n[source]\n%s\n[[endpoint]]\n%s\n' "$1" "$2" >$configuration; }
udp='kind = "udp"
port = 10110'
# says WHERE WORDS: whether check, journal, status or doctor has them, once the daemon had its time.
says() {
    case $1 in
    check) waypost check >/lab/said 2>&1 ;;
    journal) journalctl --sync; journalctl -u waypost -o cat --since "@$since" >/lab/said ;;
    status) waypost status >/lab/said 2>&1 ;;
    doctor) waypost doctor 2>&1 | tr -s ' \n' '  ' >/lab/said ;;
    esac
    grep -qF -- "$2" /lab/said
}
# mistake WHAT WORDS WHERE…: the words are in each of these, and nothing advises what harms.
mistake() {
    made=$1 words=$2
    shift 2
    systemctl stop waypost
    since=$(date +%s)
    systemctl start waypost 2>/dev/null
    # A name without a route to the world is tried after a minute.
    for place; do
        if [ "$place" = check ] || [ "$place" = doctor ]; then
            ok "$made: $place" says "$place" "$words"
        else
            ok "$made: $place" within 90 says "$place" "$words"
        fi
        ok "$made: $place advises nothing that harms" not grep -qE "usermod -aG root|kill [0-9]|pkill" /lab/said
    done
}

title ten mistakes
conf "$udp
baudrate = 9600" 'base_url = "https://localhost:8443"'
mistake typo "did you mean baud in [source]?" check
conf "$udp" 'base_url = "https://localhost:8443"
[sampling]
bound = "30ft"'
mistake unit '(did you mean "9.14m"?)' check
conf "$udp" 'profile = "traccar"
base_url = "http://127.0.0.1:5056"'
mistake port "does the server run, and does it listen there?" journal status doctor
conf "$udp" 'profile = "overland"
base_url = "https://localhost:8443"
secrets = { token = "credential:dawarich" }'
mistake "missing secret" "sudo systemctl edit waypost" check
ok "missing secret: check ends with 78" sh -c 'waypost check >/dev/null 2>&1; [ $? = 78 ]'
mkdir -p /etc/systemd/system/waypost.service.d
printf '[Service]\nLoadCredential=dawarich:/lab/secret\n' >/etc/systemd/system/waypost.service.d/lab.conf
echo s3cret >/lab/secret
systemctl daemon-reload
ok "missing secret: with LoadCredential it is valid" quietly waypost check
rm -r /etc/systemd/system/waypost.service.d
systemctl daemon-reload
chown root:root "$(readlink -f /dev/waypost/gps)"
chmod 600 "$(readlink -f /dev/waypost/gps)"
conf 'kind = "serial"
path = "/dev/waypost/gps"' 'base_url = "https://localhost:8443"'
mistake "device permission" "sudo waypost init adds the rule" journal status
chmod 666 "$(readlink -f /dev/waypost/gps)"
python3 -c '
import os, pty, time, tty
master, slave = pty.openpty()
tty.setraw(slave)
os.chmod(os.ttyname(slave), 0o666)
os.symlink(os.ttyname(slave), "/dev/noise")
os.close(slave)
while True:
    os.write(master, bytes([0x80 | n % 100 for n in range(200)]))
    time.sleep(0.2)' &
within 10 test -e /dev/noise
conf 'kind = "serial"
path = "/dev/noise"
baud = 4800' 'base_url = "https://localhost:8443"'
mistake baud 'set baud = "auto" (now 4800)' journal status doctor
conf "$udp" 'profile = "influx"
vars = { db = "x" }
base_url = "http://127.0.0.1:8081"
auth = { kind = "basic", user = "van7", password = "file:/etc/waypost/influx.password" }'
install -m 0600 -o waypost /lab/secret /etc/waypost/influx.password
mistake 401 "check user van7 and the password in /etc/waypost/influx.password" journal status doctor
conf "$udp" 'base_url = "https://127.0.0.1:8443"
tls = { ca = "/etc/waypost/own.pem" }'
install -m 0644 /lab/own.pem /etc/waypost/own.pem
mistake "server name" "as its certificate does" journal status doctor
conf "$udp" 'base_url = "https://localhost:8443"'
mistake self-signed 'tls = { ca = "PATH" }' journal status doctor
# The clock of a container cannot be set: the daemon and the doctor are given one of their own.
install -m 755 /lab/shim.so /run/shim.so
python3 -c "import struct, time; open('/run/shim.control', 'wb').write(struct.pack('q', 60 - int(time.time())).ljust(64, b'\\0'))"
chmod 666 /run/shim.control
mkdir -p /etc/systemd/system/waypost.service.d
printf '[Service]\nEnvironment=LD_PRELOAD=/run/shim.so WAYPOST_SHIM_CONTROL=/run/shim.control\n' >/etc/systemd/system/waypost.service.d/lab.conf
systemctl daemon-reload
conf "$udp" 'base_url = "https://localhost:8443"
tls = { ca = "/etc/waypost/own.pem" }'
waypost() { LD_PRELOAD=/run/shim.so WAYPOST_SHIM_CONTROL=/run/shim.control command waypost "$@"; }
mistake "wrong clock" clock journal status doctor
finish
