// Choices among kernels that measurements decided (one H200; docs/explanation/plugin_kernels.md has the times), by the size
// of an element in bytes.
#pragma once

#include <cstdint>

namespace trtconv::measured
{
// Granules that a thread of L2Norm holds where each row is one position, at most, while the row's warps allow.
inline constexpr int32_t kL2NormRowPacks = 4;

// Whether L2Norm on packs of one element or two reads x twice rather than hold slivers of columns in registers.
constexpr bool l2normReloads(int32_t size)
{
    return size == 4;
}

// Threads that a block of the depthwise convolution has at least where its tiles are small, and threads on a multiprocessor
// from which on a larger tile pays.
inline constexpr int32_t kDepthwiseThreads = 96;
inline constexpr int32_t kDepthwiseWork = 256;

// The number of a reflection_pad::Route; plugins_src/aot/reflection_pad.cu launches the same.
constexpr int32_t padRoute(int32_t size)
{
    return size == 4 ? 7 : 15;
}

// The number of an instance_norm::Route for planes that a warp or a few hold without being filled.
constexpr int32_t smallPlaneRoute(int32_t size)
{
    return size == 4 ? 7 : 5;
}
} // namespace trtconv::measured
