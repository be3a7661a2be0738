// How x is cut for windows of granules, and how many blocks take them.
#pragma once

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
    auto const planOf = [&](int32_t lanes) {
        int64_t const blocks = ceilDiv(channels, kThreads / lanes * kMostGranules);
        WindowPlan plan{lanes, 1};
        while (plan.cluster < blocks && plan.cluster <= most)
        {
            plan.cluster *= 2;
        }
        plan.cluster = plan.cluster > most ? 0 : plan.cluster;
        return plan;
    };
    auto const blocksOf
        = [&](WindowPlan const& plan) { return outer * windowTiles(plan.lanes, width, inner) * plan.cluster; };
    // Wide windows read fewer granules twice.
    WindowPlan const wide = planOf(16);
    if (inner % width != 0 && blocksOf(wide) >= device.multiprocessors)
    {
        return wide;
    }
    WindowPlan plan = planOf(8);
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

template <typename T, int LANES, int ITEMS>
cudaError_t launchWindows(Launch<T> const& l, Window const& w)
{
    uint32_t const cluster = 1U << w.clusterLog2;
    cudaLaunchAttribute attribute{};
    attribute.id = cudaLaunchAttributeClusterDimension;
    attribute.val.clusterDim = {cluster, 1, 1};
    cudaLaunchConfig_t config{};
    config.gridDim = dim3(w.work * cluster);
    config.blockDim = dim3(kThreads);
    config.stream = l.stream;
    config.attrs = &attribute;
    config.numAttrs = cluster > 1 ? 1 : 0;
    return cudaLaunchKernelEx(&config, windows<T, LANES, ITEMS>, l.x, l.scale, l.y, w);
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
        return launchWindows<T, LANES, 2>(l, w);
    }
    return items <= 4 ? launchWindows<T, LANES, 4>(l, w) : launchWindows<T, LANES, 8>(l, w);
}

// Windows of `lanes` granules, a tile to `cluster` blocks; what is 0 is chosen.
template <typename T>
cudaError_t windowsOf(Launch<T> const& l, int32_t lanes, int32_t cluster)
{
    WindowPlan plan
        = planWindow(static_cast<int32_t>(sizeof(T)), l.outer, l.column.channels, l.column.inner, l.device);
    plan.lanes = lanes > 0 ? lanes : plan.lanes;
    plan.cluster = cluster > 0 ? cluster : plan.cluster;
    if (plan.cluster < 1 || plan.cluster > kMostCluster || (plan.cluster & (plan.cluster - 1)) != 0
        || (plan.cluster > 1 && l.device.major < 9) || (plan.lanes != 8 && plan.lanes != 16))
    {
        return cudaErrorInvalidConfiguration;
    }
    return plan.lanes == 16 ? windowsOfLanes<T, 16>(l, plan) : windowsOfLanes<T, 8>(l, plan);
}
} // namespace trtconv::l2norm
