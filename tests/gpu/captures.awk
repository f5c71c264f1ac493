# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
# captures.awk - the cells of tests/gpu/captures.c as a table in Markdown: a row for each call and caller, a
# column for each mode of the capture.

function short(code) {
    sub(/^CUDA_ERROR_/, "", code)
    return code == "CUDA_SUCCESS" ? "ok" : code
}

$1 == "cell" {
    key = $2 " | " $3
    if (!(key in known))
        keys[++count] = key
    known[key] = 1
    answer[key, $4] = short($5) ($6 == "kept" ? "" : ", **" short($6) "**")
}

END {
    print "An answer in bold is that of cuStreamEndCapture: the call ended the capture."
    print ""
    print "| call | caller | GLOBAL | THREAD_LOCAL | RELAXED |"
    print "|---|---|---|---|---|"
    for (i = 1; i <= count; i++)
        printf "| %s | %s | %s | %s |\n", keys[i], answer[keys[i], "GLOBAL"],
            answer[keys[i], "THREAD_LOCAL"], answer[keys[i], "RELAXED"]
}
