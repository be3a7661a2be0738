// Launches for planes that are read twice.
#pragma once

#include "common/chain.h"
#include "instance_norm/launch.cuh"
#include "instance_norm/split.cuh"

namespace trtconv::instance_norm
{
namespace
{
// Bytes of a part that one block of the split kernels takes.
constexpr int64_t kSplitBytes = static_cast<int64_t>(kSplitThreads) * kItems * kVectorBytes - kVectorBytes;

// How many parts the second read of kSplitFused combines: every one of its blocks goes over all its plane's moments.
constexpr int64_t kMostCombined = 1024;

// COMBINES: the second read combines the moments of its plane; otherwise a kernel between the reads does.
template <typename T, bool COMBINES>
cudaError_t launchReads(Launch<T> const& l)
{
    Plane p = l.plane;
    p.part = kSplitBytes / static_cast<int64_t>(sizeof(T));
    int64_t const parts = ceilDiv(p.area, p.part);
    int64_t const blocks = p.planes * parts;
    if (blocks > kMaxGrid || (COMBINES && parts > kMostCombined))
    {
        return cudaErrorInvalidConfiguration;
    }
    p.parts = static_cast<int32_t>(parts);
    auto* const moments = static_cast<Moments*>(l.workspace);
    auto* const affine = reinterpret_cast<Affine*>(moments + blocks);
    auto const second = splitApply<T, COMBINES>;
    bool const chained = mayChain(second, l.device);
    cudaError_t status = launchLater(false, splitMoments<T>, blocks, kSplitThreads, l.stream, l.x, moments, p);
    if (status == cudaSuccess && !COMBINES)
    {
        status = launchLater(chained, splitCombine, p.planes, kSplitThreads, l.stream, moments, affine, p);
    }
    return status != cudaSuccess
        ? status
        : launchLater(chained, second, blocks, kSplitThreads, l.stream, l.x, l.y, moments, affine, p);
}
} // namespace
} // namespace trtconv::instance_norm
