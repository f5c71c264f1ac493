"""Prints a header that gives the symbols of volk names of quire's own.

usage: volk_names.py COMPILER...

volk defines a global of the name of each Vulkan function. In a static library these would meet those
of the program, or of the loader.
"""

import re
import subprocess
import sys


def main():
    text = subprocess.run([*sys.argv[1:], "-E", "-x", "c", "-"], input="#include <volk.h>\n", text=True,
                          check=True, capture_output=True).stdout
    names = re.findall(r"extern\s+PFN_(vk\w+)\s+\1\s*;", text)
    names += re.findall(r"\b(volk[A-Z]\w*)\s*\([^;{]*;", text)
    if "vkGetInstanceProcAddr" not in names or "volkInitialize" not in names:
        sys.exit("volk.h does not declare what it should")
    print("/* made by volk_names.py */")
    for name in sorted(set(names)):
        print(f"#define {name} qi_{name}")


main()
