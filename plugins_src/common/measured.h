// Choices among kernels that measurements decided (one H200; docs/explanation/plugin_kernels.md has the times), by the size
// of an element in bytes.
#pragma once

#include <cstdint>

namespace trtconv::measured
{
// Tiles of L2Norm through the tensor copy engine, where there are several for each multiprocessor.
constexpr bool l2normBulk(int32_t size)
{
    return size == 4 ? false : false;
}

// Granules of a run of L2Norm on rows at any alignment, by the number of channels; 0: another kernel.
constexpr int32_t l2normRagged(int32_t size, int64_t channels)
{
    return channels <= 384 ? (size == 4 ? 8 : 8) : (size == 4 ? 4 : 4);
}

// Warps of L2Norm that stay and load the next row meanwhile.
constexpr bool l2normStreamsRows(int32_t size)
{
    return size == 4 ? true : true;
}

// The number of a reflection_pad::Route.
constexpr int32_t padRoute(int32_t size)
{
    return size == 4 ? 2 : 2;
}

// The number of an instance_norm::Route for planes that a warp or a few can hold.
constexpr int32_t smallPlaneRoute(int32_t size)
{
    return size == 4 ? 1 : 1;
}

// Whether x is given preference in L2 over y where planes are read twice.
constexpr bool hintedSplit(int32_t size)
{
    return size == 4 ? false : false;
}
} // namespace trtconv::measured
