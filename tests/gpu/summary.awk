# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
# summary.awk - adds up results.tsv: KIND, PART, NAME and REASON in each line. The last line of the summary
# has the totals.

function counts(where) {
    return sprintf("%d passed, %d failed, %d skipped", n[where, "passed"], n[where, "failed"],
                   n[where, "skipped"])
}

{
    if (!($2 in known))
        parts[++count] = $2
    known[$2] = 1
    n[$2, $1]++
    n["all", $1]++
    if ($1 != "passed")
        lines[++others] = toupper($1) " " $2 ": " $3 ($4 == "" ? "" : ": " $4)
}

END {
    print head
    for (i = 1; i <= count; i++)
        printf "%-12s %s\n", parts[i], counts(parts[i])
    for (i = 1; i <= others; i++)
        print lines[i]
    printf "%s in %d s\n", counts("all"), seconds
}
