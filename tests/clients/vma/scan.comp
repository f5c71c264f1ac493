#version 450
/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
// One step of a prefix sum: adds the value `stride` before.
layout(local_size_x = 64) in;
layout(set = 0, binding = 0) readonly buffer From { uint values[]; } from;
layout(set = 0, binding = 1) writeonly buffer To { uint values[]; } to;
layout(push_constant) uniform Step { uint count; uint stride; } at;

void main()
{
    uint i = gl_GlobalInvocationID.x;
    if (i < at.count)
        to.values[i] = from.values[i] + (i >= at.stride ? from.values[i - at.stride] : 0u);
}
