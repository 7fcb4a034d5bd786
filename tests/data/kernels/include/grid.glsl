#pragma once
// A grid of f32 in device memory.
layout(buffer_reference, std430, buffer_reference_align = 4) buffer Grid { float v[]; };
