#include "group_norm/kernel.h"

#include "common/device.h"
#include "group_norm/images.cuh"

#include <algorithm>

namespace trtconv::group_norm
{
namespace
{
template <typename T, int V, int N, bool MIXED>
__global__ void __launch_bounds__(kMostThreads)
    images(T const* __restrict__ x, T const* __restrict__ scale, T const* __restrict__ shift, T* __restrict__ y, Images const p)
{
    normalizeImage<T, V, N, MIXED>(x, scale, shift, y, p);
}

template <typename T>
struct Tensors
{
    T const* x;
    T const* scale;
    T const* shift;
    T* y;
};

template <typename T, int V, int N, bool MIXED>
cudaError_t launchHeld(Tensors<T> const& t, Images const& p, int64_t batch, int32_t threads, cudaStream_t stream)
{
    cudaLaunchConfig_t config{};
    config.gridDim = dim3(static_cast<uint32_t>(batch * p.parts));
    config.blockDim = dim3(static_cast<uint32_t>(threads));
    config.stream = stream;
    cudaLaunchAttribute attribute{};
    attribute.id = cudaLaunchAttributeClusterDimension;
    attribute.val.clusterDim = {static_cast<uint32_t>(p.parts), 1, 1};
    config.attrs = &attribute;
    config.numAttrs = p.parts > 1 ? 1 : 0;
    return cudaLaunchKernelEx(&config, images<T, V, N, MIXED>, t.x, t.scale, t.shift, t.y, p);
}

template <typename T, int V, bool MIXED>
cudaError_t launchPacked(Problem const& problem, Tensors<T> const& t, int32_t parts, cudaStream_t stream)
{
    int64_t const packs = problem.height * problem.width * problem.channels / V;
    if (packs > kMaxGrid - kMostThreads || problem.batch * parts > kMaxGrid)
    {
        return cudaErrorInvalidConfiguration;
    }
    auto const share = static_cast<int32_t>(ceilDiv(packs, parts));
    Images const p{static_cast<int32_t>(problem.height), static_cast<int32_t>(problem.width),
        static_cast<int32_t>(problem.channels), static_cast<int32_t>(packs), share, parts, problem.epsilon};
    auto const threads = static_cast<int32_t>(std::min<int64_t>(roundUp(share, kWarp), kMostThreads));
    if constexpr (V > 1)
    {
        switch (ceilDiv(share, threads))
        {
        case 1: return launchHeld<T, V, 1, MIXED>(t, p, problem.batch, threads, stream);
        case 2: return launchHeld<T, V, 2, MIXED>(t, p, problem.batch, threads, stream);
        case 3:
        case 4: return launchHeld<T, V, 4, MIXED>(t, p, problem.batch, threads, stream);
        case 5:
        case 6:
        case 7:
        case 8: return launchHeld<T, V, 8, MIXED>(t, p, problem.batch, threads, stream);
        default: break;
        }
    }
    return launchHeld<T, V, 0, MIXED>(t, p, problem.batch, threads, stream);
}

template <typename T, bool MIXED>
cudaError_t launchTyped(Problem const& p, Tensors<T> const& t, cudaStream_t stream)
{
    constexpr int pack = kVectorBytes / sizeof(T);
    Device device;
    cudaError_t const status = readDevice(device);
    if (status != cudaSuccess)
    {
        return status;
    }
    uint64_t bits = 0;
    for (void const* const tensor : {static_cast<void const*>(t.x), static_cast<void const*>(t.scale),
             static_cast<void const*>(t.shift), static_cast<void const*>(t.y)})
    {
        bits |= reinterpret_cast<uint64_t>(tensor);
    }
    // Blocks of a warp or less gain nothing by being more.
    int64_t const values = p.height * p.width * p.channels;
    int32_t const parts = device.major >= 9 && values >= int64_t{kMostParts} * kWarp * pack ? kMostParts : 1;
    return p.channels % pack == 0 && bits % kVectorBytes == 0 ? launchPacked<T, pack, MIXED>(p, t, parts, stream)
                                                              : launchPacked<T, 1, MIXED>(p, t, parts, stream);
}
} // namespace

cudaError_t launch(
    Problem const& p, void const* x, void const* scale, void const* shift, void* y, cudaStream_t stream)
{
    if (p.batch < 0 || p.height < 0 || p.width < 0 || p.channels < 0)
    {
        return cudaErrorInvalidValue;
    }
    if (p.batch == 0 || p.height == 0 || p.width == 0 || p.channels == 0)
    {
        return cudaSuccess;
    }
    return dispatchElement(p.type, [&](auto element) {
        using T = decltype(element);
        Tensors<T> const tensors{
            static_cast<T const*>(x), static_cast<T const*>(scale), static_cast<T const*>(shift), static_cast<T*>(y)};
        return p.mixed ? launchTyped<T, true>(p, tensors, stream) : launchTyped<T, false>(p, tensors, stream);
    });
}
} // namespace trtconv::group_norm
