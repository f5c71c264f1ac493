# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
# results.sh - sourced by scripts/test-gpu: how long programs may run, what they answered, and the folder
# of results. Needs no program but those of coreutils, sed, grep, awk and tar.
#
# Set by the caller: $out (the folder), $logs (of every log), $deadline (in seconds of $SECONDS), $part (the
# running part), and $device, $driver and $builder for the heads of pages.

table=$out/results.tsv

# record KIND NAME [REASON]: KIND is passed, failed or skipped
record() {
    printf '%s\t%s\t%s\t%s\n' "$1" "$part" "$2" "${3:-}" >>"$table"
    case $1 in
    failed) echo "FAILED  $part: $2${3:+: $3}" ;;
    skipped) echo "SKIPPED $part: $2${3:+: $3}" ;;
    esac
}

skip() {
    record skipped "$@"
}

# left SECONDS: the seconds until the deadline, at most SECONDS
left() {
    rest=$((deadline - SECONDS))
    [ "$rest" -lt "$1" ] || rest=$1
    echo "$rest"
}

# limited SECONDS COMMAND...: runs it until then or until the deadline. 124: it took longer, or no time
# was left ($is_short is yes). It runs in the background as process $child, so that a signal to this shell
# is handled at once.
limited() {
    seconds=$(left "$1") is_short=no
    [ "$seconds" = "$1" ] || is_short=yes
    [ "$seconds" -gt 0 ] || return 124
    shift
    timeout -k 5 "$seconds" "$@" <&0 &
    child=$!
    wait "$child"
}

# within SECONDS FUNCTION: calls it with an earlier deadline
within() {
    later=$deadline
    deadline=$((SECONDS + $(left "$1")))
    "$2"
    deadline=$later
}

# why STATUS: how a program ended
why() {
    case $1 in
    124 | 137) echo "it took too long" ;;
    142) echo "it took more than its limit" ;;
    12[5-7]) echo "it cannot be started" ;;
    12[89] | 1[3-9]? | 2??) echo "signal $(($1 - 128)) ended it" ;;
    *) echo "exit status $1" ;;
    esac
}

# run NAME SECONDS COMMAND...: one program; its output is $log, its status $status
run() {
    name=$1 log=$logs/$1.txt
    shift
    echo "== $part: $name"
    limited "$@" >"$log" 2>"$log.errors" </dev/null
    status=$?
}

# judge: records the result of the last run: each case if it prints TAP. Too little time is no failure.
judge() {
    if grep -qE '^(ok|not ok|# ended) ' "$log"; then
        tap "$log"
    elif [ "$status" = 0 ]; then
        record passed "$name"
    fi
    if [ "$status" = 124 ] && [ $is_short = yes ]; then
        skip "$name, the rest" "no time was left"
    elif [ "$status" != 0 ] && ! grep -qE '^(not ok|# ended) ' "$log"; then
        record failed "$name" "$(why "$status")"
    fi
    [ "$status" = 0 ] || tail -n 20 "$log.errors"
    finish
}

# tap FILE: records the cases of a TAP program, and the items that ended their process
tap() {
    sed -nE -e 's/^ok [0-9]+ - (.*) # SKIP (.*)/skipped\t\1\t\2/p;t' -e 's/^ok [0-9]+ - (.*)/passed\t\1\t/p' \
        -e 's/^not ok [0-9]+ - (.*)/failed\t\1\t/p' -e 's/^# ended (.*): (.*)/failed\t\1\t\2/p' "$1" |
        awk '!seen[$0]++' |
        while IFS="$(printf '\t')" read -r kind what reason; do record "$kind" "$what" "$reason"; done
}

# items NAME SECONDS PROGRAM [WORD...]: a program of tests/support/items.h whose items take at most
# SECONDS each. Behind an item that ends the process a new one continues, unless many have done so in
# turn. $log has the output of all.
items() {
    name=$1 limit=$2 program=$3 from=0 in_turn=0 log=$logs/$1.txt
    shift 3
    echo "== $part: $name"
    : >"$log"
    while :; do
        limited 100000 "$program" --items "$from" "$limit" "$@" >>"$log" 2>>"$log.errors" </dev/null
        status=$?
        last=$(sed -n 's/^# item \([0-9]*\) .*/\1/p' "$log" | tail -n 1)
        case $status in
        0 | 124) break ;;
        75) in_turn=0 ;;
        *) ended $status ;;
        esac
        [ "${last:--1}" -ge "$from" ] || break # it ends before its first item
        [ "$last" = "$from" ] || in_turn=0
        from=$((last + 1)) in_turn=$((in_turn + 1))
        [ $in_turn -lt 20 ] || { skip "$name, from item $from" "20 items in turn ended their process" && break; }
    done
}

# ended STATUS: notes in $log how the last item ended its process, unless the program said so
ended() {
    what=$(sed -n 's/^# item [0-9]* //p' "$log" | tail -n 1)
    awk '/^# item / { said = 0 } /^not ok / { said = 1 } END { exit !said }' "$log" ||
        echo "# ended ${what:-$name}: $(why "$1")" >>"$log"
    tail -n 3 "$log.errors"
}

# page FILE TITLE: a page of results in $out, of the lines of standard input
page() {
    { printf '# %s\n\n%s, %s, %s\n\n' "$2" "$(date -u +%F)" "$device" "$driver" && cat; } >"$out/$1"
}

# finish: writes the summary and the archive of the logs, or one file of them without tar or gzip
finish() {
    awk -F'\t' -v head="$(date -u '+%F %T') UTC, $device, $driver, $(uname -sm), built by $builder" \
        -v seconds="$SECONDS" -f tests/gpu/summary.awk "$table" >"$out/summary.txt"
    tar -czf "$out/logs.tar.gz" -C "$logs" . 2>/dev/null || cat "$logs"/* >"$out/logs.txt"
}
