// Tiles by the tensor copy engine, and ragged runs in shared memory.
#pragma once

#include "l2norm/bulk.cuh"
#include "l2norm/launch.cuh"
#include "l2norm/ragged.cuh"

namespace trtconv::l2norm
{
// Tiles of LANES packs side by side and all channels. As many blocks as multiprocessors, each with kStages tiles.
template <typename T, int LANES, int ITEMS>
cudaError_t launchBulk(Launch<T> l, Boxes const& boxes)
{
    auto const kernel = bulkColumns<T, LANES, ITEMS>;
    CUtensorMap from;
    CUtensorMap to;
    cudaError_t status = describeTensor(
        from, l.x, l.type, l.outer, l.column.channels, l.column.inner, boxes.rows, boxes.positions);
    if (status == cudaSuccess)
    {
        status = describeTensor(to, l.y, l.type, l.outer, l.column.channels, l.column.inner, boxes.rows, boxes.positions);
    }
    int32_t const bytes = kStages * boxes.count * boxes.rows * LANES * kVectorBytes;
    if (status == cudaSuccess)
    {
        status = cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, bytes);
    }
    if (status != cudaSuccess)
    {
        return status;
    }
    l.column.tiles = ceilDiv(l.column.inner, boxes.positions);
    int64_t const tiles = l.outer * l.column.tiles;
    kernel<<<static_cast<uint32_t>(tiles < l.device.multiprocessors ? tiles : l.device.multiprocessors), kThreads, bytes,
        l.stream>>>(from, to, l.scale, l.outer, boxes, l.column);
    return cudaGetLastError();
}

template <typename T, int LANES>
cudaError_t bulkOf(Launch<T> const& l)
{
    int64_t const channels = l.column.channels;
    auto const count = static_cast<int32_t>(ceilDiv(channels, kMostBoxRows));
    // Boxes of a multiple of 8 rows begin at a multiple of 128 bytes, as the copy engine asks.
    auto const rows = static_cast<int32_t>(roundUp(ceilDiv(channels, count), 8));
    Boxes const boxes{count, rows, LANES * (kVectorBytes / static_cast<int32_t>(sizeof(T)))};
    int64_t const items = ceilDiv(channels, kThreads / LANES);
    int64_t const shared = static_cast<int64_t>(kStages) * count * rows * LANES * kVectorBytes;
    if (rows > kMostBoxRows || items > 8 || shared + kBulkStaticBytes > l.device.sharedPerBlock
        || l.outer > kMaxGrid || l.column.inner > kMaxGrid)
    {
        return cudaErrorInvalidConfiguration;
    }
    return items <= 4 ? launchBulk<T, LANES, 4>(l, boxes) : launchBulk<T, LANES, 8>(l, boxes);
}

// Runs of 128 bytes where a tile of them fits, else of 64.
template <typename T>
cudaError_t bulk(Launch<T> const& l)
{
    bool const aligned = widestPack<T>(l.column.inner, l.x, l.y) * static_cast<int32_t>(sizeof(T)) == kVectorBytes;
    if (l.device.major < 9 || !aligned || l.column.inner == 1)
    {
        return cudaErrorInvalidConfiguration;
    }
    cudaError_t const status = bulkOf<T, 8>(l);
    return status == cudaErrorInvalidConfiguration ? bulkOf<T, 4>(l) : status;
}

template <typename T, int GRANULES>
cudaError_t ragged(Launch<T> l)
{
    constexpr int64_t run = GRANULES * (kVectorBytes / static_cast<int64_t>(sizeof(T)));
    int64_t const bytes = raggedBytes(l.column.channels, GRANULES);
    bool const aligned = widestPack<T>(0, l.x, l.y) * static_cast<int32_t>(sizeof(T)) == kVectorBytes;
    l.column.tiles = ceilDiv(l.column.inner, run);
    if (!aligned || bytes + kRaggedStaticBytes > l.device.sharedPerBlock || l.outer * l.column.tiles > kMaxGrid)
    {
        return cudaErrorInvalidConfiguration;
    }
    auto const kernel = raggedColumns<T, GRANULES>;
    cudaError_t const status
        = cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, static_cast<int32_t>(bytes));
    if (status != cudaSuccess)
    {
        return status;
    }
    // More threads where the tile leaves room for few blocks.
    uint32_t const threads = bytes > 48 * 1024 ? kRaggedWarps * 32 : kRaggedWarps * 16;
    kernel<<<static_cast<uint32_t>(l.outer * l.column.tiles), threads, static_cast<size_t>(bytes), l.stream>>>(
        l.x, l.scale, l.y, l.outer * l.column.channels * l.column.inner, l.column);
    return cudaGetLastError();
}
} // namespace trtconv::l2norm
