#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What a running program has in its memories, as JSON for `quire page`.

    python3 device_dump.py > device_dump.json
    quire page device_dump.json --html device.html

The device has three memories: of pages that follow use, with an allocation that has a page of its own; an elastic one
with a gap; and one without pages. docs/examples/device_dump.json is the output.
"""

import json

import quire

KIB, MIB = 1 << 10, 1 << 20


def main():
    with quire.open_host() as device:
        weights = device.create_memory("weights")
        cache = device.create_memory("cache", elastic=True, pages=quire.PagePolicy(page_size=64 * KIB))
        upload = device.create_memory("upload", upload=True)
        kept = [weights.allocate(size * KIB, name=f"layer{i}/{what}")
                for i in range(4) for what, size in (("kernel", 96 << i), ("bias", 4))]
        kept.append(weights.allocate(3 * MIB, name="embedding", dedicated=True))
        blocks = [cache.allocate(200 * KIB, name=f"sequence {i}") for i in range(4)]
        del kept[2]
        blocks.pop(1).free()
        device.trim()
        print(json.dumps(device.snapshot(), indent=1))
        del kept, blocks, weights, cache, upload


main()
