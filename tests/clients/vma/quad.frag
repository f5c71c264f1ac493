#version 450
layout(set = 0, binding = 0) uniform View { vec4 scale; vec4 tint; } view;
layout(set = 0, binding = 1) uniform sampler2D image;
layout(location = 0) in vec2 uv;
layout(location = 0) out vec4 color;

void main()
{
    color = texture(image, uv) * view.tint;
}
