# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
# readme.sh - sourced by the tests, in the folder of the sources: the program of README.md and what it prints.

# block LANGUAGE FILE: the first block of code of a language in a document
block() {
    awk -v begin="^\`\`\`$1\$" '/^```/ && inside { exit } inside; $0 ~ begin { inside = 1 }' "$2"
}

block c README.md >"$AUTOPKGTEST_TMP/program.c"
block text README.md >"$AUTOPKGTEST_TMP/expected"
