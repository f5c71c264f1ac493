# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
# quire.bash - completes command lines of quire. The tool prints the rest, so that it fits the tool.
eval "$(quire completion bash 2>/dev/null)"
