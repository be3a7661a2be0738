// How x is cut for windows of granules, and how many blocks take them.
#pragma once

#include "common/measured.h"
#include "l2norm/launch.cuh"
#include "l2norm/windows.cuh"

#include <algorithm>

namespace trtconv::l2norm
{
inline constexpr int32_t kMostGranules = 8; // that a thread holds

struct WindowPlan
{
    int32_t lanes;
    int32_t cluster;
    int32_t depth;
};

// Positions of a tile: those of which a window of `lanes` granules sees all, wherever rows begin.
constexpr int64_t windowPositions(int32_t lanes, int32_t width, int64_t inner)
{
    return static_cast<int64_t>(inner % width == 0 ? lanes : lanes - 2) * width;
}

// With rows at any alignment the granule of a row's last position begins up to width - 1 positions before it.
constexpr int64_t windowTiles(int32_t lanes, int32_t width, int64_t inner)
{
    return ceilDiv(inner % width == 0 ? inner : inner + width - 1, windowPositions(lanes, width, inner));
}

// The fewest blocks that hold a tile, and more of them where there are fewer blocks than multiprocessors. cluster is 0 where
// no cluster holds one.
inline WindowPlan planWindow(int32_t size, int64_t outer, int64_t channels, int64_t inner, Device const& device)
{
    int32_t const width = kVectorBytes / size;
    int32_t const most = device.major >= 9 ? kMostCluster : 1;
    auto const planOf = [&](int32_t lanes, int32_t depth) {
        int64_t const blocks = ceilDiv(channels, kThreads / lanes * kMostGranules);
        WindowPlan plan{lanes, 1, depth};
        while (plan.cluster < blocks && plan.cluster <= most)
        {
            plan.cluster *= 2;
        }
        plan.cluster = plan.cluster > most ? 0 : plan.cluster;
        return plan;
    };
    auto const blocksOf
        = [&](WindowPlan const& plan) { return outer * windowTiles(plan.lanes, width, inner) * plan.cluster; };
    bool const whole = inner % width == 0;
    WindowPlan const wide = planOf(16, whole ? 1 : 0);
    // Fewer blocks have nothing to gain from wide runs, nor from copies ahead.
    if (blocksOf(wide) >= (whole ? 8 : 1) * int64_t{device.multiprocessors} && (!whole || measured::l2normCopiesAhead(size)))
    {
        return wide;
    }
    WindowPlan plan = planOf(8, 0);
    while (plan.cluster > 0 && plan.cluster < std::min(most, 4) && blocksOf(plan) < device.multiprocessors)
    {
        plan.cluster *= 2;
    }
    return plan;
}

// The cut of a window of `lanes` granules; false where the kernel's conditions do not hold.
template <typename T>
bool cutWindow(Window& w, Launch<T> const& l, int32_t lanes, int32_t cluster)
{
    constexpr auto V = kVectorBytes / static_cast<int32_t>(sizeof(T));
    int64_t const inner = l.column.inner;
    int64_t const channels = l.column.channels;
    int64_t const tiles = windowTiles(lanes, V, inner);
    if (widestPack<T>(0, l.x, l.y) != V || l.outer * channels * inner % V != 0 || inner > kMaxGrid / 2
        || l.outer * tiles * cluster > kMaxGrid)
    {
        return false;
    }
    w.channels = static_cast<int32_t>(channels);
    w.blockChannels = static_cast<int32_t>(ceilDiv(channels, cluster));
    w.inner = static_cast<int32_t>(inner);
    w.halo = inner % V == 0 ? 0 : 1;
    w.run = static_cast<int32_t>(roundUp(ceilDiv(inner + w.halo * (V - 1), tiles), V));
    w.tiles = static_cast<uint32_t>(tiles);
    w.work = static_cast<uint32_t>(l.outer * tiles);
    w.clusterLog2 = log2Of(cluster);
    w.epsilon = l.column.epsilon;
    w.mode = l.column.mode;
    w.scaleType = l.column.scaleType;
    return true;
}

// Blocks or clusters that stay: as many as fit, with as many tiles to each as to the others.
template <typename Kernel>
cudaError_t fitWindows(cudaLaunchConfig_t& config, Kernel kernel, uint32_t work, int32_t cluster, Device const& device)
{
    int32_t resident = 0;
    cudaError_t status = cudaSuccess;
    if (cluster > 1)
    {
        status = cudaOccupancyMaxActiveClusters(&resident, kernel, &config);
    }
    else
    {
        status = cudaOccupancyMaxActiveBlocksPerMultiprocessor(&resident, kernel, kThreads, config.dynamicSmemBytes);
        resident *= device.multiprocessors;
    }
    if (status == cudaSuccess && resident < 1)
    {
        return cudaErrorInvalidConfiguration;
    }
    if (status == cudaSuccess)
    {
        int64_t const rounds = ceilDiv(work, resident);
        config.gridDim.x = static_cast<uint32_t>(ceilDiv(work, rounds)) * static_cast<uint32_t>(cluster);
    }
    return status;
}

template <typename T, int LANES, int ITEMS, int DEPTH, Access ACCESS = Access::kPlain>
cudaError_t launchWindows(Launch<T> const& l, Window const& w)
{
    auto const kernel = windows<T, LANES, ITEMS, DEPTH, ACCESS>;
    int32_t const cluster = 1 << w.clusterLog2;
    int32_t const bytes = DEPTH * ITEMS * kThreads * kVectorBytes;
    cudaLaunchAttribute attribute{};
    attribute.id = cudaLaunchAttributeClusterDimension;
    attribute.val.clusterDim = {static_cast<unsigned>(cluster), 1, 1};
    cudaLaunchConfig_t config{};
    config.gridDim = dim3(w.work * static_cast<uint32_t>(cluster));
    config.blockDim = dim3(kThreads);
    config.dynamicSmemBytes = static_cast<size_t>(bytes);
    config.stream = l.stream;
    config.attrs = &attribute;
    config.numAttrs = cluster > 1 ? 1 : 0;
    cudaError_t status = cudaSuccess;
    if (DEPTH > 0)
    {
        status = cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, bytes);
        status = status == cudaSuccess ? fitWindows(config, kernel, w.work, cluster, l.device) : status;
    }
    return status == cudaSuccess ? cudaLaunchKernelEx(&config, kernel, l.x, l.scale, l.y, w) : status;
}

template <typename T, int LANES, int ITEMS, int DEPTH>
cudaError_t windowsOfAccess(Launch<T> const& l, Window const& w)
{
    if constexpr (ITEMS == kMostGranules)
    {
        switch (l.access)
        {
        case 1: return launchWindows<T, LANES, ITEMS, DEPTH, Access::kLeavingStores>(l, w);
        case 2: return launchWindows<T, LANES, ITEMS, DEPTH, Access::kWideLoads>(l, w);
        case 3: return launchWindows<T, LANES, ITEMS, DEPTH, Access::kWideLeaving>(l, w);
        case 4: return launchWindows<T, LANES, ITEMS, DEPTH, Access::kLeavingLoads>(l, w);
        default: break;
        }
    }
    return launchWindows<T, LANES, ITEMS, DEPTH>(l, w);
}

template <typename T, int LANES, int ITEMS>
cudaError_t windowsOfDepth(Launch<T> const& l, Window const& w, int32_t depth)
{
    // Before compute capability 8.0 a copy to shared memory is not asynchronous.
    return depth > 0 && l.device.major >= 8 ? windowsOfAccess<T, LANES, ITEMS, 1>(l, w)
                                            : windowsOfAccess<T, LANES, ITEMS, 0>(l, w);
}

template <typename T, int LANES>
cudaError_t windowsOfLanes(Launch<T> const& l, WindowPlan const& plan)
{
    Window w{};
    if (!cutWindow<T>(w, l, LANES, plan.cluster))
    {
        return cudaErrorInvalidConfiguration;
    }
    int64_t const items = ceilDiv(w.blockChannels, kThreads / LANES);
    if (items > kMostGranules)
    {
        return cudaErrorInvalidConfiguration;
    }
    if (items <= 2)
    {
        return windowsOfDepth<T, LANES, 2>(l, w, plan.depth);
    }
    return items <= 4 ? windowsOfDepth<T, LANES, 4>(l, w, plan.depth) : windowsOfDepth<T, LANES, 8>(l, w, plan.depth);
}

// Windows of `lanes` granules, a tile to `cluster` blocks, l.depth tiles ahead; what is 0 (a depth: negative) is chosen.
template <typename T>
cudaError_t windowsOf(Launch<T> const& l, int32_t lanes, int32_t cluster)
{
    WindowPlan plan
        = planWindow(static_cast<int32_t>(sizeof(T)), l.outer, l.column.channels, l.column.inner, l.device);
    plan.lanes = lanes > 0 ? lanes : plan.lanes;
    plan.cluster = cluster > 0 ? cluster : plan.cluster;
    plan.depth = l.depth >= 0 ? l.depth : plan.depth;
    if (plan.cluster < 1 || plan.cluster > kMostCluster || (plan.cluster & (plan.cluster - 1)) != 0
        || (plan.cluster > 1 && l.device.major < 9) || (plan.lanes != 8 && plan.lanes != 16))
    {
        return cudaErrorInvalidConfiguration;
    }
    return plan.lanes == 16 ? windowsOfLanes<T, 16>(l, plan) : windowsOfLanes<T, 8>(l, plan);
}
} // namespace trtconv::l2norm
