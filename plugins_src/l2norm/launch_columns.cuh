// Tiles of whole packs: blocks that do one each, or stay with a ring of them.
#pragma once

#include "l2norm/launch.cuh"

namespace trtconv::l2norm
{
// As many blocks as fit, each with its ring of DEPTH tiles.
template <typename T, int V, int ITEMS, int DEPTH>
cudaError_t stream(Launch<T> const& l)
{
    auto const kernel = streamedColumns<T, V, ITEMS, DEPTH>;
    int32_t const bytes = DEPTH * ITEMS * kThreads * V * static_cast<int32_t>(sizeof(T));
    cudaError_t status = cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, bytes);
    int32_t resident = 0;
    if (status == cudaSuccess)
    {
        status = cudaOccupancyMaxActiveBlocksPerMultiprocessor(&resident, kernel, kThreads, bytes);
    }
    if (status != cudaSuccess || resident < 1)
    {
        return status != cudaSuccess ? status : cudaErrorInvalidConfiguration;
    }
    int64_t const tiles = l.outer * l.column.tiles;
    int64_t const most = static_cast<int64_t>(resident) * l.device.multiprocessors;
    kernel<<<static_cast<uint32_t>(tiles < most ? tiles : most), kThreads, bytes, l.stream>>>(
        l.x, l.scale, l.y, l.outer, l.column);
    return cudaGetLastError();
}

// The deepest ring of which the device holds two blocks' worth; 0: blocks do not stay.
int32_t chooseDepth(int64_t tileBytes, int64_t tiles, Device const& device)
{
    if (device.major < 8 || tiles < 4 * device.multiprocessors)
    {
        return 0;
    }
    int64_t const each = device.sharedPerBlock / 2 - 18 * 1024;
    int64_t const depth = each / tileBytes;
    return static_cast<int32_t>(depth < 3 ? depth : 3);
}

template <typename T, int V, int ITEMS>
cudaError_t columns(Launch<T> const& l)
{
    if constexpr (sizeof(T) * V >= 4)
    {
        constexpr int64_t tileBytes = static_cast<int64_t>(ITEMS) * kThreads * V * sizeof(T);
        int32_t const depth
            = l.depth >= 0 ? l.depth : chooseDepth(tileBytes, l.outer * l.column.tiles, l.device);
        switch (depth)
        {
        case 1: return stream<T, V, ITEMS, 1>(l);
        case 2: return stream<T, V, ITEMS, 2>(l);
        case 3: return stream<T, V, ITEMS, 3>(l);
        default: break;
        }
    }
    heldColumns<T, V, ITEMS>
        <<<static_cast<uint32_t>(l.outer * l.column.tiles), kThreads, 0, l.stream>>>(l.x, l.scale, l.y, l.column);
    return cudaGetLastError();
}

template <typename T, int V>
cudaError_t columnsOf(Launch<T> const& l, int64_t items)
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
} // namespace trtconv::l2norm
