// How x is cut for windows of granules, and how many blocks take them.
#pragma once

#include "l2norm/kernel.h"
#include "l2norm/launch.cuh"
#include "l2norm/windows.cuh"

namespace trtconv::l2norm
{
// The cut of a window of `lanes` granules; false where the kernel's conditions do not hold.
template <typename T>
bool cutWindow(Window& w, Launch<T> const& l, int32_t lanes, int32_t cluster, bool halo)
{
    constexpr int64_t V = kVectorBytes / static_cast<int64_t>(sizeof(T));
    int64_t const inner = l.column.inner;
    int64_t const channels = l.column.channels;
    bool const aligned = widestPack<T>(0, l.x, l.y) == V;
    // Positions that are a multiple of this apart begin equally far inside a granule in every row.
    int64_t const grain = widestPack<T>(inner, nullptr, nullptr);
    if (!aligned || l.outer * channels * inner % V != 0 || inner > kMaxGrid / 2 || (halo && (grain == V || lanes < 4)))
    {
        return false;
    }
    // With a halo the granules that straddle the row's last position begin up to V - 1 positions before a run.
    int64_t const positions = halo ? inner + V - 1 : inner;
    int64_t const most = halo ? (lanes - 2) * V : lanes * V - (V - grain);
    int64_t const tiles = ceilDiv(positions, most);
    if (l.outer * tiles * cluster > kMaxGrid)
    {
        return false;
    }
    w.channels = static_cast<int32_t>(channels);
    w.blockChannels = static_cast<int32_t>(ceilDiv(channels, cluster));
    w.inner = static_cast<int32_t>(inner);
    w.run = static_cast<int32_t>(roundUp(ceilDiv(positions, tiles), halo ? V : grain));
    w.halo = halo ? 1 : 0;
    w.tiles = static_cast<uint32_t>(tiles);
    w.work = static_cast<uint32_t>(l.outer * tiles);
    w.clusterLog2 = log2Of(cluster);
    w.epsilon = l.column.epsilon;
    w.mode = l.column.mode;
    w.scaleType = l.column.scaleType;
    return true;
}

template <typename T, int THREADS, int LANES, int ITEMS, int DEPTH, Leaving LEAVING = Leaving::kNone>
cudaError_t launchWindows(Launch<T> const& l, Window const& w)
{
    auto const kernel = windows<T, THREADS, LANES, ITEMS, DEPTH, LEAVING>;
    int32_t const cluster = 1 << w.clusterLog2;
    int32_t const bytes = DEPTH * ITEMS * THREADS * kVectorBytes;
    cudaError_t status = cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, bytes);
    cudaLaunchAttribute attribute{};
    attribute.id = cudaLaunchAttributeClusterDimension;
    attribute.val.clusterDim = {static_cast<unsigned>(cluster), 1, 1};
    cudaLaunchConfig_t config{};
    config.gridDim = dim3(w.work * static_cast<uint32_t>(cluster));
    config.blockDim = dim3(THREADS);
    config.dynamicSmemBytes = static_cast<size_t>(bytes);
    config.stream = l.stream;
    config.attrs = &attribute;
    config.numAttrs = cluster > 1 ? 1 : 0;
    if (DEPTH > 0 && status == cudaSuccess)
    {
        int32_t resident = 0;
        if (cluster > 1)
        {
            status = cudaOccupancyMaxActiveClusters(&resident, kernel, &config);
        }
        else
        {
            status = cudaOccupancyMaxActiveBlocksPerMultiprocessor(&resident, kernel, THREADS, config.dynamicSmemBytes);
            resident *= l.device.multiprocessors;
        }
        if (status == cudaSuccess && resident < 1)
        {
            status = cudaErrorInvalidConfiguration;
        }
        if (status == cudaSuccess && static_cast<uint32_t>(resident) < w.work)
        {
            // As many tiles to each as to the others.
            int64_t const rounds = ceilDiv(w.work, resident);
            config.gridDim.x = static_cast<uint32_t>(ceilDiv(w.work, rounds)) * static_cast<uint32_t>(cluster);
        }
    }
    return status != cudaSuccess ? status : cudaLaunchKernelEx(&config, kernel, l.x, l.scale, l.y, w);
}

template <typename T, int THREADS, int LANES, int ITEMS>
cudaError_t windowsOfDepth(Launch<T> const& l, Window const& w)
{
    if constexpr (LANES == 8 && ITEMS == 4)
    {
        if (l.leaving == 1)
        {
            return launchWindows<T, THREADS, LANES, ITEMS, 1, Leaving::kLoads>(l, w);
        }
        if (l.leaving == 2)
        {
            return launchWindows<T, THREADS, LANES, ITEMS, 1, Leaving::kStores>(l, w);
        }
    }
    // Before compute capability 8.0 a copy to shared memory is not asynchronous.
    switch (l.device.major < 8 ? 0 : l.depth)
    {
    case 1: return launchWindows<T, THREADS, LANES, ITEMS, 1>(l, w);
    case 2: return launchWindows<T, THREADS, LANES, ITEMS, 2>(l, w);
    default: return launchWindows<T, THREADS, LANES, ITEMS, 0>(l, w);
    }
}

template <typename T, int THREADS, int LANES>
cudaError_t windowsOfLanes(Launch<T> const& l, int32_t cluster, bool halo)
{
    Window w{};
    if (!cutWindow<T>(w, l, LANES, cluster, halo))
    {
        return cudaErrorInvalidConfiguration;
    }
    int64_t const items = ceilDiv(w.blockChannels, THREADS / LANES);
    if (items > 8)
    {
        return cudaErrorInvalidConfiguration;
    }
    if (items <= 2)
    {
        return windowsOfDepth<T, THREADS, LANES, 2>(l, w);
    }
    return items <= 4 ? windowsOfDepth<T, THREADS, LANES, 4>(l, w) : windowsOfDepth<T, THREADS, LANES, 8>(l, w);
}

// Windows of `lanes` granules by blocks of `threads`, a tile to `cluster` blocks; 0: the fewest blocks that hold it.
template <typename T>
cudaError_t windowsOf(Launch<T> const& l, int32_t lanes, int32_t threads, int32_t cluster, bool halo)
{
    lanes = lanes > 0 ? lanes : 8;
    threads = threads > 0 ? threads : 512;
    int32_t const rows = threads / lanes * 8;
    for (int32_t need = 1; cluster == 0; need *= 2)
    {
        cluster = need * int64_t{rows} >= l.column.channels || need == kMostCluster ? need : 0;
    }
    if (cluster > kMostCluster || (cluster & (cluster - 1)) != 0 || (cluster > 1 && l.device.major < 9))
    {
        return cudaErrorInvalidConfiguration;
    }
    if (lanes == 16)
    {
        return threads == 256 ? windowsOfLanes<T, 256, 16>(l, cluster, halo) : windowsOfLanes<T, 512, 16>(l, cluster, halo);
    }
    return threads == 256 ? windowsOfLanes<T, 256, 8>(l, cluster, halo) : windowsOfLanes<T, 512, 8>(l, cluster, halo);
}
} // namespace trtconv::l2norm
