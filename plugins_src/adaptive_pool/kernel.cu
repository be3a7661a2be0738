// How many threads share a bin.
#include "adaptive_pool/kernel.h"

#include "adaptive_pool/bins.cuh"
#include "common/device.h"

namespace trtconv::adaptive_pool
{
namespace
{
template <typename T, int GROUP>
cudaError_t launchGroups(Layout const& l, T const* x, T* y, cudaStream_t stream)
{
    int64_t const blocks = ceilDiv(l.outputs, kThreads / GROUP);
    if (blocks > kMaxGrid)
    {
        return cudaErrorInvalidConfiguration;
    }
    auto const grid = static_cast<uint32_t>(blocks);
    bool const narrow = l.outputs <= kMaxGrid && (l.outHeight + 1) * l.height + l.outHeight <= kMaxGrid
        && (l.outWidth + 1) * l.width + l.outWidth <= kMaxGrid;
    if (narrow)
    {
        pool<T, GROUP, true><<<grid, kThreads, 0, stream>>>(x, y, l);
    }
    else
    {
        pool<T, GROUP, false><<<grid, kThreads, 0, stream>>>(x, y, l);
    }
    return cudaGetLastError();
}
} // namespace

cudaError_t launch(Problem const& p, void const* x, void* y, cudaStream_t stream)
{
    if (p.planes < 0 || p.height < 1 || p.width < 1 || p.outHeight < 1 || p.outWidth < 1)
    {
        return cudaErrorInvalidValue;
    }
    Layout const l{Divider(p.outWidth), Divider(p.outHeight), p.height, p.width, p.outHeight, p.outWidth, p.planes * p.outHeight * p.outWidth, p.maximum};
    int64_t const values = (ceilDiv(p.height, p.outHeight) + 1) * (ceilDiv(p.width, p.outWidth) + 1);
    if (l.outputs == 0)
    {
        return cudaSuccess;
    }
    if (values > kMaxGrid)
    {
        return cudaErrorInvalidValue;
    }
    return dispatchElement(p.type, [&](auto element) {
        using T = decltype(element);
        auto const* const from = static_cast<T const*>(x);
        auto* const to = static_cast<T*>(y);
        if (values <= 16)
        {
            return launchGroups<T, 1>(l, from, to, stream);
        }
        if (values <= 256)
        {
            return launchGroups<T, 8>(l, from, to, stream);
        }
        return values <= 8192 ? launchGroups<T, 32>(l, from, to, stream) : launchGroups<T, kThreads>(l, from, to, stream);
    });
}
} // namespace trtconv::adaptive_pool
