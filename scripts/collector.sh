# Starts and asks a local waypost-collector. To be sourced; needs bash alone.

# collector_start FOLDER [ARGUMENT…]: sets collector_pid and collector_port.
collector_start() {
    local folder=$1
    shift
    "$bin/waypost-collector" --port 0 --print-port-to "$folder/port" "$@" >"$folder/collector.log" 2>&1 &
    collector_pid=$!
    for ((i = 0; i < 100; i++)); do
        [ -s "$folder/port" ] && break
        kill -0 "$collector_pid" 2>/dev/null || break
        sleep 0.1
    done
    collector_port=$(cat "$folder/port" 2>/dev/null || true)
    [ -n "$collector_port" ] || {
        echo "the collector did not start:" >&2
        cat "$folder/collector.log" >&2
        return 1
    }
}

collector_stop() {
    [ -n "${collector_pid:-}" ] || return 0
    kill "$collector_pid" 2>/dev/null || true
    wait "$collector_pid" 2>/dev/null || true
    collector_pid=
}

# collector_stats: the body of GET /stats.
collector_stats() {
    local line
    exec 9<>"/dev/tcp/127.0.0.1/$collector_port"
    printf 'GET /stats HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n\r\n' >&9
    while IFS= read -r line <&9 && [ "${line%$'\r'}" ]; do :; done
    cat <&9
    exec 9>&-
}

# json_number NAME: the first integer of that name in the JSON on standard input.
json_number() {
    sed -n 's/.*"'"$1"'" *: *\(-\{0,1\}[0-9][0-9]*\).*/\1/p' | head -n 1
}
