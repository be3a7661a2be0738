#include "channel_gate/kernel.h"

#include "channel_gate/layers.cuh"
#include "channel_gate/sums.cuh"
#include "common/chain.h"
#include "common/device.h"

#include <algorithm>

namespace trtconv::channel_gate
{
namespace
{
constexpr int32_t kMiddleArea = 1024;
constexpr int32_t kLargeArea = 4096;
constexpr int32_t kLargeThreads = 1024;
constexpr int64_t kMostOfGrid = 65535;
// Rows of a block of sumRows that has the most columns: no other way has more splits.
constexpr int64_t kLeastRows = kThreads / kWarp;

int64_t mostSplits(int64_t area) noexcept
{
    return std::max<int64_t>(ceilDiv(area, kLeastRows * kPositions), 1);
}

template <typename T>
struct Tensors
{
    T const* x;
    T const* reduce;
    T const* reduceBias;
    T const* expand;
    T const* expandBias;
    T* y;
    float* sums;
    float* hidden;
};

template <typename T, int V>
cudaError_t launchPlanes(Problem const& p, Tensors<T> const& t, cudaStream_t stream)
{
    Planes const planes{p.batch * p.channels, static_cast<int32_t>(p.area)};
    auto const run = [&](auto kernel, int32_t threads, int32_t block) {
        int64_t const blocks = ceilDiv(planes.count, block / threads);
        if (blocks > kMaxGrid)
        {
            return cudaErrorInvalidConfiguration;
        }
        kernel<<<static_cast<uint32_t>(blocks), block, 0, stream>>>(t.x, t.sums, planes);
        return cudaGetLastError();
    };
    if (p.area <= kMiddleArea)
    {
        return run(sumPlanes<T, V, kWarp, kThreads>, kWarp, kThreads);
    }
    if (p.area <= kLargeArea)
    {
        return run(sumPlanes<T, V, kThreads, kThreads>, kThreads, kThreads);
    }
    return run(sumPlanes<T, V, kLargeThreads, kLargeThreads>, kLargeThreads, kLargeThreads);
}

template <typename T, int V, int COLUMNS>
cudaError_t launchRows(Problem const& p, Tensors<T> const& t, int32_t& splits, cudaStream_t stream)
{
    constexpr int rows = kThreads / COLUMNS;
    splits = static_cast<int32_t>(ceilDiv(p.area, rows * kPositions));
    auto const packs = static_cast<int32_t>(ceilDiv(p.channels, V));
    Rows const description{static_cast<int32_t>(p.area), static_cast<int32_t>(p.channels), static_cast<int32_t>(p.pitch), packs,
        splits};
    if (splits > kMostOfGrid)
    {
        return cudaErrorInvalidConfiguration;
    }
    dim3 const grid(static_cast<uint32_t>(ceilDiv(packs, COLUMNS)), static_cast<uint32_t>(splits), static_cast<uint32_t>(p.batch));
    sumRows<T, V, COLUMNS><<<grid, kThreads, 0, stream>>>(t.x, t.sums, description);
    return cudaGetLastError();
}

template <typename T>
cudaError_t launchSums(Problem const& p, Tensors<T> const& t, int32_t& splits, cudaStream_t stream)
{
    constexpr int pack = kVectorBytes / sizeof(T);
    bool const aligned = reinterpret_cast<uint64_t>(t.x) % kVectorBytes == 0;
    splits = 1;
    if (p.pitch == 0)
    {
        return aligned && p.area % pack == 0 ? launchPlanes<T, pack>(p, t, stream) : launchPlanes<T, 1>(p, t, stream);
    }
    if (!aligned || p.pitch % pack != 0)
    {
        return launchRows<T, 1, kWarp>(p, t, splits, stream);
    }
    int64_t const packs = ceilDiv(p.channels, pack);
    return packs <= 4 ? launchRows<T, pack, 4>(p, t, splits, stream)
        : packs <= 8  ? launchRows<T, pack, 8>(p, t, splits, stream)
        : packs <= 16 ? launchRows<T, pack, 16>(p, t, splits, stream)
                      : launchRows<T, pack, kWarp>(p, t, splits, stream);
}

template <typename T, int V>
cudaError_t launchLayers(Problem const& p, Tensors<T> const& t, Layers const& layers, cudaStream_t stream)
{
    Device device;
    cudaError_t status = readDevice(device);
    if (status != cudaSuccess)
    {
        return status;
    }
    // Where x holds the means there is no kernel of this op ahead.
    bool const chained = layers.splits > 0 && mayChain(reduceMeans<T, V>, device);
    dim3 const units(static_cast<uint32_t>(ceilDiv(p.hidden, kReduceWarps)), static_cast<uint32_t>(p.batch));
    status = launchLater(
        chained, reduceMeans<T, V>, units, kReduceThreads, stream, t.x, t.sums, t.reduce, t.reduceBias, t.hidden, layers);
    if (status != cudaSuccess)
    {
        return status;
    }
    dim3 const channels(static_cast<uint32_t>(ceilDiv(layers.pitch, kExpandThreads / kLanes)), static_cast<uint32_t>(p.batch));
    return launchLater(mayChain(expandHidden<T>, device), expandHidden<T>, channels, kExpandThreads, stream, t.hidden, t.expand,
        t.expandBias, t.y, layers);
}

template <typename T>
cudaError_t launchTyped(Problem const& p, Tensors<T> const& t, cudaStream_t stream)
{
    constexpr int pack = kVectorBytes / sizeof(T);
    Layers layers{static_cast<int32_t>(p.channels), static_cast<int32_t>(p.hidden), 0,
        static_cast<int32_t>(p.pitch == 0 ? p.channels : p.pitch), 1.0F / static_cast<float>(p.area), p.activation, p.gate};
    cudaError_t const status = p.area == 1 ? cudaSuccess : launchSums<T>(p, t, layers.splits, stream);
    if (status != cudaSuccess)
    {
        return status;
    }
    bool const aligned = reinterpret_cast<uint64_t>(t.reduce) % kVectorBytes == 0 && p.channels % pack == 0;
    return aligned ? launchLayers<T, pack>(p, t, layers, stream) : launchLayers<T, 1>(p, t, layers, stream);
}
} // namespace

int64_t workspaceBytes(int64_t batch, int64_t channels, int64_t area, int64_t hidden) noexcept
{
    return batch * (mostSplits(area) * channels + hidden) * static_cast<int64_t>(sizeof(float));
}

cudaError_t launch(Problem const& p, void const* x, void const* reduce, void const* reduceBias, void const* expand,
    void const* expandBias, void* y, void* workspace, cudaStream_t stream)
{
    if (p.batch < 0 || p.channels < 0 || p.area < 0 || p.hidden < 1 || (p.pitch != 0 && p.pitch < p.channels))
    {
        return cudaErrorInvalidValue;
    }
    if (p.batch == 0 || p.channels == 0)
    {
        return cudaSuccess;
    }
    if (p.area == 0 || p.batch > kMostOfGrid || p.area > kMaxGrid / 2 || std::max(p.channels, p.pitch) > kMaxGrid / 2
        || p.hidden > kMaxGrid / 2)
    {
        return cudaErrorInvalidConfiguration;
    }
    auto* const sums = static_cast<float*>(workspace);
    return dispatchElement(p.type, [&](auto element) {
        using T = decltype(element);
        Tensors<T> const tensors{static_cast<T const*>(x), static_cast<T const*>(reduce), static_cast<T const*>(reduceBias),
            static_cast<T const*>(expand), static_cast<T const*>(expandBias), static_cast<T*>(y), sums,
            sums + p.batch * mostSplits(p.area) * p.channels};
        return launchTyped<T>(p, tensors, stream);
    });
}
} // namespace trtconv::channel_gate
