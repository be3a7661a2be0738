// Which tiles there are, and which one a problem takes.
#pragma once

#include "common/device.h"
#include "depthwise_conv_layer_norm/kernel.h"
#include "depthwise_conv_layer_norm/tiles.cuh"

#include <algorithm>

namespace trtconv::depthwise_conv_layer_norm
{
// Channels, rows and columns of a thread, and the most threads of a block, which bounds its registers.
struct Tile
{
    int32_t pack;
    int32_t rows;
    int32_t columns;
    int32_t threads;
};

inline constexpr Tile kTiles[] = {
    {2, 1, 4, 1024},
    {2, 1, 7, 512},
    {2, 2, 7, 384},
    {1, 1, 4, 1024},
};
inline constexpr int32_t kTileCount = sizeof(kTiles) / sizeof(kTiles[0]);
// The one that takes any number of channels that fits a block.
inline constexpr int32_t kAnyTile = kTileCount - 1;

struct Tensors
{
    void const* x;
    void const* weight;
    void const* bias;
    void const* scale;
    void const* shift;
    void* y;
};

// Whether every tensor begins where `bytes` may be moved at once.
inline bool aligned(Tensors const& t, int64_t bytes)
{
    uint64_t bits = 0;
    for (void const* const tensor : {t.x, t.weight, t.bias, t.scale, t.shift, static_cast<void const*>(t.y)})
    {
        bits |= reinterpret_cast<uint64_t>(tensor);
    }
    return bits % static_cast<uint64_t>(bytes) == 0;
}

template <typename T, int SIZE, int TILE>
cudaError_t launchTile(Problem const& p, Tensors const& t, int32_t groups, cudaStream_t stream)
{
    constexpr Tile tile = kTiles[TILE];
    int64_t const across = ceilDiv(p.width, tile.columns);
    int64_t const down = ceilDiv(p.height, tile.rows);
    int64_t const count = p.batch * across * down;
    auto const lanes = static_cast<int32_t>(p.channels / tile.pack);
    int64_t const threads = roundUp(int64_t{lanes} * groups, 32);
    int64_t const shared = sharedBytes(tile.rows * tile.columns, lanes, groups);
    if (p.channels % tile.pack != 0 || !aligned(t, tile.pack * sizeof(T)) || threads > tile.threads || shared > 48 * 1024 || count > kMaxGrid
        || p.width * p.channels > kMaxGrid || p.height > kMaxGrid)
    {
        return cudaErrorInvalidConfiguration;
    }
    Image const image{static_cast<int32_t>(p.height), static_cast<int32_t>(p.width), static_cast<int32_t>(p.channels), lanes,
        groups, static_cast<int32_t>(across), static_cast<int32_t>(down), static_cast<uint32_t>(count), p.epsilon};
    tiles<T, SIZE, tile.pack, tile.rows, tile.columns, tile.threads>
        <<<static_cast<uint32_t>(ceilDiv(count, groups)), static_cast<uint32_t>(threads), static_cast<size_t>(shared), stream>>>(
            static_cast<T const*>(t.x), static_cast<T const*>(t.weight), static_cast<T const*>(t.bias),
            static_cast<T const*>(t.scale), static_cast<T const*>(t.shift), static_cast<T*>(t.y), image);
    return cudaGetLastError();
}

template <typename T, int SIZE, int TILE = 0>
cudaError_t dispatchTile(int32_t tile, Problem const& p, Tensors const& t, int32_t groups, cudaStream_t stream)
{
    if constexpr (TILE < kTileCount)
    {
        if (tile == TILE)
        {
            return launchTile<T, SIZE, TILE>(p, t, groups, stream);
        }
        return dispatchTile<T, SIZE, TILE + 1>(tile, p, t, groups, stream);
    }
    return cudaErrorInvalidConfiguration;
}
} // namespace trtconv::depthwise_conv_layer_norm
