// Tiles of packs of any width, a block to each.
#pragma once

#include "common/measured.h"
#include "l2norm/launch.cuh"

namespace trtconv::l2norm
{
constexpr int64_t kMostItems = 8;
// Device memory moves in sectors of this size: runs of lanes that are shorter read more than they use.
constexpr int64_t kSectorBytes = 32;

// The widest run of lanes whose column fits the registers, then narrower while the device has idle multiprocessors
// or lanes would lie past the end; a run stays at least a 32-byte sector wide.
template <typename T>
int32_t chooseLanes(Launch<T> const& l, int32_t width)
{
    int32_t lanes = 32;
    int64_t const channels = l.column.channels;
    auto const blocks = [&](int32_t n) { return l.outer * ceilDiv(l.column.inner, static_cast<int64_t>(n) * width); };
    while (lanes > 1 && ceilDiv(channels, kThreads / lanes) > kMostItems)
    {
        lanes /= 2;
    }
    while (lanes > 1 && (lanes / 2) * width >= l.column.inner)
    {
        lanes /= 2;
    }
    while (lanes > 1 && (lanes / 2) * width * sizeof(T) >= kSectorBytes && blocks(lanes) < 2 * l.device.multiprocessors
        && ceilDiv(channels, kThreads / lanes) > 1)
    {
        lanes /= 2;
    }
    return lanes;
}

template <typename T, int V, int ITEMS>
cudaError_t columns(Launch<T> const& l)
{
    heldColumns<T, V, ITEMS>
        <<<static_cast<uint32_t>(l.outer * l.column.tiles), kThreads, 0, l.stream>>>(l.x, l.scale, l.y, l.column);
    return cudaGetLastError();
}

template <typename T, int V>
cudaError_t heldOf(Launch<T> const& l, int64_t items)
{
    if (items <= 2)
    {
        return columns<T, V, 2>(l);
    }
    if (items <= 4)
    {
        return columns<T, V, 4>(l);
    }
    if (items <= 8)
    {
        return columns<T, V, 8>(l);
    }
    return cudaErrorInvalidValue;
}

// Tiles in registers, or read twice where they do not fit. `lanes` side by side along `inner`; 0 chooses.
template <typename T>
cudaError_t columnsOf(Launch<T> l, int32_t lanes)
{
    int64_t const inner = l.column.inner;
    int32_t const width = inner == 1 ? 1 : widestPack<T>(inner, l.x, l.y);
    bool const chosen = lanes == 0;
    lanes = chosen ? chooseLanes(l, width) : lanes;
    int64_t const items = ceilDiv(l.column.channels, kThreads / lanes);
    int64_t const run = static_cast<int64_t>(lanes) * width;
    bool const slivers = chosen && width * static_cast<int32_t>(sizeof(T)) < 8 && measured::l2normReloads(sizeof(T))
        && items > 2 && l.outer * ceilDiv(inner, 32) >= 4 * l.device.multiprocessors;
    bool const held = !slivers && items <= kMostItems
        && (run >= inner || run * static_cast<int64_t>(sizeof(T)) >= kSectorBytes);
    l.column.lanesLog2 = log2Of(held ? lanes : 32);
    l.column.tiles = ceilDiv(inner, held ? run : 32);
    if (l.outer * l.column.tiles > kMaxGrid)
    {
        return cudaErrorInvalidConfiguration;
    }
    if (!held)
    {
        reloadedColumns<T><<<static_cast<uint32_t>(l.outer * l.column.tiles), kThreads, 0, l.stream>>>(
            l.x, l.scale, l.y, l.column);
        return cudaGetLastError();
    }
    return dispatchWidth<T>(width, [&](auto v) { return heldOf<T, decltype(v)::value>(l, items); });
}
} // namespace trtconv::l2norm
