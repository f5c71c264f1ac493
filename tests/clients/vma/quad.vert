#version 450
/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
// A quad whose corners are at pixel corners: every driver draws the same pixels.
layout(location = 0) in vec3 position;
layout(location = 1) in vec2 corner;
layout(set = 0, binding = 0) uniform View { vec4 scale; vec4 tint; } view;
layout(location = 0) out vec2 uv;

void main()
{
    uv = corner;
    gl_Position = vec4(position.xy * view.scale.xy + view.scale.zw, position.z, 1.0);
}
