# What ackproof does with processes on a machine. POSIX shell; needs Linux' /proc, and setsid.
# A process is known by its id, its start in clock ticks and the boot's id, so that a reused id is never signalled.
#
#   start DIRECTORY LOG RECORD COMMAND...    start detached; prints id and start ticks. RECORD.ended gets its status
#   signal PID TICKS BOOT NAME STATE LOOKS   send a signal, wait until its state's letter matches; prints the letter
set -u

identity() { # pid: sets state and ticks; empty where no such process is, or only a zombie
    state='' ticks=''
    line=$(cat "/proc/$1/stat" 2>/dev/null) || return 0
    set -- ${line##*) } # after the command's name in brackets, which may hold anything
    case $1 in Z | X) ;; *) state=$1 ticks=${20} ;; esac
}

start() {
    cd -- "$1" || exit 71
    log=$2 record=$3
    shift 3
    rm -f -- "$record.pid" "$record.ended"
    # The outer shell stays to record how the node ended; the inner one becomes the node.
    setsid sh -c 'record=$1; shift
        sh -c '\''echo $$ >"$1.pid.new"; mv -- "$1.pid.new" "$1.pid"; shift; exec "$@"'\'' node "$record" "$@"
        echo $? >"$record.ended"' recorder "$record" "$@" </dev/null >>"$log" 2>&1 &
    looks=0
    until [ -e "$record.pid" ]; do
        looks=$((looks + 1))
        [ "$looks" -le 500 ] || exit 72
        sleep 0.02
    done
    pid=$(cat -- "$record.pid")
    identity "$pid"
    echo "$pid ${ticks:-0}"
}

signal() { # every look makes sure that it still is the same process
    pid=$1 wanted=$2 boot=$3 name=$4 shows=$5 looks=$6
    [ "$(cat /proc/sys/kernel/random/boot_id)" = "$boot" ] || exit 0
    identity "$pid"
    [ "$ticks" = "$wanted" ] || exit 0
    kill -s "$name" "$pid" 2>/dev/null
    while identity "$pid" && [ "$ticks" = "$wanted" ]; do
        case $state in $shows) break ;; esac
        looks=$((looks - 1))
        [ "$looks" -gt 0 ] || break
        sleep 0.02
    done
    [ "$ticks" != "$wanted" ] || echo "$state"
}

what=$1
shift
case $what in start) start "$@" ;; signal) signal "$@" ;; *) exit 64 ;; esac
