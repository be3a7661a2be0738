// Launches for planes that one to four warps hold.
#pragma once

#include "instance_norm/even.cuh"
#include "instance_norm/launch.cuh"

namespace trtconv::instance_norm
{
namespace
{
constexpr int32_t kWarpItems = 8;

template <typename T, int V>
cudaError_t launchWarp(Launch<T> const& l)
{
    auto const blocks = static_cast<uint32_t>(ceilDiv(l.plane.planes, kWarpThreads / 32));
    if (l.plane.area <= 32 * V * 2)
    {
        warpPlanes<T, V, 2><<<blocks, kWarpThreads, 0, l.stream>>>(l.x, l.y, l.plane);
    }
    else
    {
        warpPlanes<T, V, kWarpItems><<<blocks, kWarpThreads, 0, l.stream>>>(l.x, l.y, l.plane);
    }
    return cudaGetLastError();
}

template <typename T>
cudaError_t launchWarpRoute(Launch<T> const& l, int32_t width)
{
    if (l.plane.area > 32 * width * kWarpItems || ceilDiv(l.plane.planes, kWarpThreads / 32) > kMaxGrid)
    {
        return cudaErrorInvalidConfiguration;
    }
    switch (width)
    {
    case 1: return launchWarp<T, 1>(l);
    case 2: return launchWarp<T, 2>(l);
    default: return launchWarp<T, 4>(l);
    }
}

// Packs of 16 bytes. ITEMS of them in a thread's registers.
template <typename T>
inline constexpr int kWideItems = sizeof(T) == 4 ? 8 : 4;

template <typename T>
bool wideFits(Launch<T> const& l, int64_t threads, int64_t items)
{
    return widestPack<T>(l.plane.area, l.x, l.y) == perGranule<T>() && l.plane.area <= threads * perGranule<T>() * items;
}

template <typename T>
cudaError_t launchWide(Launch<T> const& l, Route route)
{
    constexpr int V = static_cast<int>(perGranule<T>());
    constexpr int items = kWideItems<T>;
    constexpr int64_t warps = kWarpThreads / 32;
    if (route == Route::kTeam)
    {
        constexpr int each = items / static_cast<int>(warps);
        if (!wideFits(l, kWarpThreads, each) || l.plane.planes > kMaxGrid)
        {
            return cudaErrorInvalidConfiguration;
        }
        teamPlanes<T, V, each><<<static_cast<uint32_t>(l.plane.planes), kWarpThreads, 0, l.stream>>>(l.x, l.y, l.plane);
        return cudaGetLastError();
    }
    int64_t const blocks = ceilDiv(l.plane.planes, warps);
    if (!wideFits(l, 32, items) || blocks > kMaxGrid)
    {
        return cudaErrorInvalidConfiguration;
    }
    warpPlanes<T, V, items><<<static_cast<uint32_t>(blocks), kWarpThreads, 0, l.stream>>>(l.x, l.y, l.plane);
    return cudaGetLastError();
}

// A plane to a warp that it fills exactly.
template <typename T>
cudaError_t launchEven(Launch<T> const& l)
{
    constexpr int64_t unit = 32 * perGranule<T>();
    int64_t const blocks = ceilDiv(l.plane.planes, kWarpThreads / 32);
    if (widestPack<T>(l.plane.area, l.x, l.y) != perGranule<T>() || l.plane.area % unit != 0 || l.plane.planes > kMaxGrid)
    {
        return cudaErrorInvalidConfiguration;
    }
    auto const start = [&](auto kernel) {
        kernel<<<static_cast<uint32_t>(blocks), kWarpThreads, 0, l.stream>>>(l.x, l.y, l.plane);
        return cudaGetLastError();
    };
    switch (l.plane.area / unit)
    {
    case 1: return start(evenPlanes<T, 1>);
    case 2: return start(evenPlanes<T, 2>);
    case 4: return start(evenPlanes<T, 4>);
    case 8: return start(evenPlanes<T, 8>);
    default: return cudaErrorInvalidConfiguration;
    }
}
} // namespace
} // namespace trtconv::instance_norm
