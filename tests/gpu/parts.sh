# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
# parts.sh - sourced by scripts/test-gpu: the parts of a run. Each is a function part_NAME; none ends
# another.

sanitizer=$(command -v compute-sanitizer || ls /usr/local/cuda/bin/compute-sanitizer 2>/dev/null)

# needs NAME PROGRAM REASON: skips NAME if the program was not built
needs() {
    has "$2" && return
    skip "$1" "$3"
    return 1
}

# ---- build ------------------------------------------------------------------------------------------------

part_build() {
    for program in $all_programs; do
        if has $program; then record passed "$program"; else skip "$program" "it was not built"; fi
    done
    needs cuda_abi tests/plain/plain-cuda_abi "the CUDA Toolkit or meson is not installed" || return
    run cuda_abi 20 "$programs/tests/plain/plain-cuda_abi"
    judge
}

# find_device: sets $device, $driver, $emulated, and $no_device, the reason why there is none
find_device() {
    run device 60 "$programs/tests/gpu/corners" --device
    if [ "$status" != 0 ]; then # what follows opens the device with its own memory alone
        record failed "the device" "$(why "$status")"
        export QUIRE_CUDA_KINDS=device
        run device-alone 60 "$programs/tests/gpu/corners" --device
        judge
    fi
    device=$(sed -n 's/^device: //p' "$log") driver=$(sed -n 's/^driver: //p' "$log")
    no_device=$(sed -n 's/^reason: //p' "$log")
    case $device in *", emulated") emulated=yes ;; esac
    : "${device:=unknown}" "${driver:=no driver}"
    echo "device: $device, $driver"
    ! command -v nvidia-smi >/dev/null || limited 20 nvidia-smi -q >"$logs/nvidia-smi.txt" 2>&1
}

# ---- facts ------------------------------------------------------------------------------------------------

# The driver without quire. A step that ends its process is a fact as well.
part_facts() {
    run facts 150 "$programs/tests/gpu/facts"
    cp "$log" "$out/facts.txt"
    if grep -q '^driver version: ' "$log"; then record passed "$name: $(grep -c ': ' "$log")"; fi
    judge
    run chunks 60 "$programs/tests/gpu/chunks"
    cat "$log" >>"$out/facts.txt"
    judge
}

# ---- contract ---------------------------------------------------------------------------------------------

part_contract() {
    items contract 40 "$programs/tests/contract/contract-cuda" "cuda, this machine's driver"
    judge
    items corners 30 "$programs/tests/gpu/corners"
    judge
    contract_vulkan
    contract_tool
}

# The contract on the device's Vulkan driver, and pages of Vulkan in CUDA and the reverse, which may skip
# themselves.
contract_vulkan() {
    if has tests/contract/contract-vulkan; then
        items contract-vulkan 40 "$programs/tests/contract/contract-vulkan" "vulkan, a driver"
        judge
    fi
    needs vulkan tests/plain/plain-cuda_vulkan "the headers of Vulkan, volk or meson are not installed" || return
    run vulkan 30 "$programs/tests/plain/plain-cuda_vulkan"
    judge
}

contract_tool() {
    needs tool quire "the tool was not built: it needs jansson and meson" || return
    PYTHONPATH=tests/static PYTHONDONTWRITEBYTECODE=1 run tool 40 \
        python3 tests/tool/cuda.py "$programs/quire" . "${LD_LIBRARY_PATH:-/nonexistent}"
    judge
}

# ---- codes ------------------------------------------------------------------------------------------------

# A row with another answer is a finding, not a failure.
part_codes() {
    items codes 20 "$programs/tests/plain/plain-cuda_codes" --table libcuda.so.1
    judge_table '^| ' 2
    codes_page
    items answers 20 "$programs/tests/plain/plain-cuda_answers" --table libcuda.so.1
    judge_table '^| ' 2
    codes_page
    items captures 10 "$programs/tests/gpu/captures" libcuda.so.1
    judge_table '^cell' 0
    { printf '\n## Which calls are legal during a capture\n\n' && awk -F'|' -f tests/gpu/captures.awk "$log"; } \
        >>"$out/codes.md"
}

# The tables of the programs that have run
codes_page() {
    {
        grep -v '^# \(item\|ended\)' "$logs/codes.txt"
        if [ -e "$logs/answers.txt" ]; then
            printf '\n## Documented answers\n\n'
            grep -v '^# \(item\|ended\)' "$logs/answers.txt"
        fi
    } | page codes.md "What the CUDA driver answers to misuse"
}

# judge_table PATTERN HEAD: the rows that have the pattern, without HEAD lines, and the items without a row
judge_table() {
    reason=$(sed -n 's/^# SKIP //p' "$log")
    [ -z "$reason" ] || { skip "$name" "$reason" && return; }
    rows=$(($(grep -c "$1" "$log") - $2))
    [ "$rows" -le 0 ] || record passed "$name: $rows rows"
    tap "$log"
    [ "$status" != 124 ] || skip "$name, the rest" "no time was left"
    [ "$rows" -gt 0 ] || [ "$status" = 124 ] || record failed "$name" "no row: $(why "$status")"
    finish
}

# ---- cost -------------------------------------------------------------------------------------------------

# Each family has a process. What is compared with the driver's own allocators comes first.
part_cost() {
    needs cost bench/bench_cuda "bench_cuda was not built" || return
    families="" documents=""
    short=""
    [ "$quick" = no ] || short="--reps 1 --pairs 100 --page 2"
    for family in mixed alone large calls pages growth host peaks costs; do
        traces=""
        [ $family != peaks ] || traces=$(trace_words)
        run "cost-$family" 90 "$programs/bench/bench_cuda" --family $family $short $traces \
            --json "$logs/cost-$family.json"
        judge
        families="$families $family"
        cost_pages
    done
    cost_goal
    cost_torch
}

# A suballocation of quire takes at most a tenth of the time of the runtime's, or else the driver's, pool.
cost_goal() {
    goal="a suballocation takes a tenth of the time of"
    for peer in cudaMallocAsync cuMemAllocAsync; do
        ratio=$(awk -v peer=$peer '/^mixed:/ { on = 1 } on && $1 == peer && NF > 4 { print $(NF - 1) }' \
            "$logs/cost-mixed.txt")
        [ -z "$ratio" ] || break
    done
    if [ $emulated = yes ] || [ -z "$ratio" ]; then
        skip "$goal a pool" "it needs a GPU with a pool"
    elif awk -v ratio="$ratio" 'BEGIN { exit ratio < 10 }'; then
        record passed "$goal $peer: $ratio times as fast"
    else
        record failed "$goal $peer" "$ratio times as fast"
    fi
}

# The traces of training and serving, those of the project and those of QUIRE_TEST_DATA
trace_words() {
    for trace in docs/traces/transformer-training.csv docs/traces/llm-serving.csv \
        "${QUIRE_TEST_DATA:-/nonexistent}"/traces/*training*.csv \
        "${QUIRE_TEST_DATA:-/nonexistent}"/traces/*inference*.csv \
        "${QUIRE_TEST_DATA:-/nonexistent}"/traces/llm*.csv; do
        [ ! -e "$trace" ] || echo --trace "$trace"
    done
}

# Writes the families that have run: the text as a page, the documents as a list
cost_pages() {
    for family in $families; do
        echo '```' && cat "$logs/cost-$family.txt" && echo '```'
    done | page costs.md "Costs of the CUDA driver, and memories on the device"
    {
        echo "["
        comma=""
        for family in $families; do
            [ -s "$logs/cost-$family.json" ] || continue
            printf '%s' "$comma" && cat "$logs/cost-$family.json"
            comma=,
        done
        echo "]"
    } >"$out/costs.json"
}

# PyTorch's allocator on the same traces, without and with expandable segments
cost_torch() {
    if [ $emulated = yes ]; then
        skip torch "PyTorch does not run on the emulated driver"
    elif ! command -v python3 >/dev/null || ! limited 60 python3 -c 'import torch' 2>/dev/null; then
        skip torch "PyTorch is not installed"
    else
        for segments in False True; do
            export PYTORCH_ALLOC_CONF=expandable_segments:$segments
            PYTORCH_CUDA_ALLOC_CONF=$PYTORCH_ALLOC_CONF run "cost-torch-$segments" 60 \
                python3 tests/gpu/torch_native.py $(trace_words | sed 's/^--trace //')
            judge
            families="$families torch-$segments"
        done
        cost_pages
    fi
}

# ---- frameworks -------------------------------------------------------------------------------------------

part_frameworks() {
    if command -v python3 >/dev/null; then
        frameworks_in tests/gpu/frameworks
    else
        skip frameworks "python3 is missing"
    fi
}

# with_plain_pages NAME SCRIPT: whether a script that failed works on pages of cuMemAlloc
with_plain_pages() {
    QUIRE_CUDA_PAGES=plain QUIRE_BUILD=$(realpath "$programs") QUIRE_EMULATED=$emulated QUIRE_QUICK=yes \
        PYTHONDONTWRITEBYTECODE=1 PYTHONPATH=tests/static${PYTHONPATH:+:$PYTHONPATH} \
        run "$1-plain" 60 python3 "$2"
    if [ "$status" = 0 ]; then
        record passed "$1 with plain pages"
    else
        record failed "$1 with plain pages" "$(why "$status")"
    fi
}

# frameworks_in FOLDER: runs its scripts, whose README.md says what they print. Each has an equal share of
# the time that is left. A share below two minutes may be too short through no fault of the script.
frameworks_in() {
    scripts=$(ls "$1"/*.py 2>/dev/null) ran=""
    [ -n "$scripts" ] || skip frameworks "there are no scripts"
    set -- $scripts
    while [ $# -gt 0 ]; do
        share=$(($(left 100000) / $#))
        QUIRE_BUILD=$(realpath "$programs") QUIRE_EMULATED=$emulated QUIRE_QUICK=$quick PYTHONDONTWRITEBYTECODE=1 \
            PYTHONPATH=tests/static${PYTHONPATH:+:$PYTHONPATH} \
            run "$(basename "$1" .py)" $share python3 "$1"
        [ $share -ge 120 ] || is_short=yes
        [ "$status" != 0 ] || grep -q '^1\.\.[1-9]' "$log" || echo "# ended $name: it printed no plan" >>"$log"
        judge
        ran="$ran $name"
        framework_page
        [ "$status" = 0 ] || [ "$status" = 124 ] || with_plain_pages "$name" "$1"
        shift
    done
}

# The figures of the scripts that have run
framework_page() {
    for script in $ran; do
        figures=$(grep -vE '^((not )?ok |#|1\.\.[0-9])' "$logs/$script.txt") || continue
        printf '%s:\n\n```\n%s\n```\n\n' "$script" "$figures"
    done | page frameworks.md "Frameworks with quire, and with their own allocators"
}

# ---- sanitizer --------------------------------------------------------------------------------------------

part_sanitizer() {
    reason=""
    [ -n "$sanitizer" ] || reason="compute-sanitizer is not installed"
    [ $emulated = no ] || reason="compute-sanitizer needs a GPU"
    if [ -n "$reason" ]; then
        skip memcheck "$reason"
        skip overflow "$reason"
        return
    fi
    sanitizer_contract
    sanitizer_overflow
}

# sanitized NAME: whether compute-sanitizer worked in the last run
sanitized() {
    [ "$status" = 124 ] || grep -q 'ERROR SUMMARY' "$log" && return
    skip "$1" "compute-sanitizer does not work here: $(cat "$log" "$log.errors" | grep -m1 -i '^=====.*error')"
    return 1
}

# The suite expects some calls to be refused; memcheck does not report errors of the API. One of the settings
# is enough: the one with every kind.
sanitizer_contract() {
    run memcheck 240 "$sanitizer" --tool memcheck --leak-check full --report-api-errors no \
        --error-exitcode 9 "$programs/tests/contract/contract-cuda" "cuda, this machine's driver, all"
    sanitized memcheck && judge
}

# compute-sanitizer finds a write between two allocations of a page, and reports none inside one
sanitizer_overflow() {
    needs overflow tests/plain/plain-cuda_overflow "the headers of NVTX are not installed" || return
    for where in inside behind; do
        run overflow-$where 60 "$sanitizer" --tool memcheck --nvtx yes --error-exitcode 9 \
            "$programs/tests/plain/plain-cuda_overflow" $where
        sanitized overflow-$where || return
        if [ $where = behind ] && [ "$status" = 9 ] && grep -q 'Invalid __global__ write' "$log"; then
            record passed overflow-behind
        elif [ $where = behind ]; then
            record failed overflow-behind "the write behind the allocation was not found"
        else
            judge
        fi
    done
}
