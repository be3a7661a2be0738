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

// The number of a reflection_pad::Route. 5 was up to 9 % faster in 4 bytes and 3 in 2 for small tensors; 2 is what
// plugins_src/aot launches too, and the two are to change together.
constexpr int32_t padRoute(int32_t size)
{
    (void) size;
    return 2;
}

// The number of an instance_norm::Route for planes that a warp or a few can hold.
constexpr int32_t smallPlaneRoute(int32_t size)
{
    return size == 4 ? 7 : 5;
}
} // namespace trtconv::measured
