#include "layer_norm/kernel.h"

#include "common/device.h"
#include "layer_norm/rows.cuh"

namespace trtconv::layer_norm
{
namespace
{
template <typename T, int V, int N, int LANES>
__global__ void __launch_bounds__(kThreads)
    rows(T const* __restrict__ x, T const* __restrict__ scale, T const* __restrict__ shift, T* __restrict__ y, Rows const p)
{
    normalizeRows<T, V, N, LANES>(x, scale, shift, y, p);
}

template <typename T>
__global__ void __launch_bounds__(kThreads) longRows(
    T const* __restrict__ x, T const* __restrict__ scale, T const* __restrict__ shift, T* __restrict__ y, Rows const p)
{
    normalizeLongRows<T>(x, scale, shift, y, p);
}

template <typename T>
cudaError_t launchTyped(
    Problem const& p, void const* x, void const* scale, void const* shift, void* y, cudaStream_t stream)
{
    constexpr int pack = kVectorBytes / sizeof(T);
    Rows const description{p.rows, static_cast<int32_t>(p.channels), p.epsilon};
    auto const run = [&](auto kernel, int32_t lanes) {
        int64_t const blocks = ceilDiv(p.rows, kThreads / lanes);
        if (blocks > kMaxGrid || p.channels > kMaxGrid - kWarp)
        {
            return cudaErrorInvalidConfiguration;
        }
        kernel<<<static_cast<uint32_t>(blocks), kThreads, 0, stream>>>(static_cast<T const*>(x),
            static_cast<T const*>(scale), static_cast<T const*>(shift), static_cast<T*>(y), description);
        return cudaGetLastError();
    };
    uint64_t bits = 0;
    for (void const* const tensor : {x, scale, shift, static_cast<void const*>(y)})
    {
        bits |= reinterpret_cast<uint64_t>(tensor);
    }
    int64_t const packs = p.channels / pack;
    if (p.channels % pack != 0 || bits % kVectorBytes != 0 || packs > 8 * kWarp)
    {
        return run(longRows<T>, kWarp);
    }
    if (packs <= 8)
    {
        return run(rows<T, pack, 1, 8>, 8);
    }
    if (packs <= 16)
    {
        return run(rows<T, pack, 1, 16>, 16);
    }
    switch (ceilDiv(packs, kWarp))
    {
    case 1: return run(rows<T, pack, 1, kWarp>, kWarp);
    case 2: return run(rows<T, pack, 2, kWarp>, kWarp);
    case 3: return run(rows<T, pack, 3, kWarp>, kWarp);
    case 4: return run(rows<T, pack, 4, kWarp>, kWarp);
    default: return run(rows<T, pack, 8, kWarp>, kWarp);
    }
}
} // namespace

cudaError_t launch(
    Problem const& p, void const* x, void const* scale, void const* shift, void* y, cudaStream_t stream)
{
    if (p.rows < 0 || p.channels < 0)
    {
        return cudaErrorInvalidValue;
    }
    if (p.rows == 0 || p.channels == 0)
    {
        return cudaSuccess;
    }
    return dispatchElement(p.type, [&](auto element) { return launchTyped<decltype(element)>(p, x, scale, shift, y, stream); });
}
} // namespace trtconv::layer_norm
