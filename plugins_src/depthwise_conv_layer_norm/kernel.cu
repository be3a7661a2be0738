// Which tile takes a problem.
#include "depthwise_conv_layer_norm/kernel.h"

#include "common/measured.h"
#include "depthwise_conv_layer_norm/launch.cuh"

namespace trtconv::depthwise_conv_layer_norm
{
namespace
{
// Tiles of `tile` that a block takes, so that it has some warps and fits its shared memory.
int32_t chooseGroups(Problem const& p, Tile const& tile)
{
    int64_t const lanes = p.channels / tile.pack;
    int64_t groups = std::clamp<int64_t>(measured::kDepthwiseThreads / std::max<int64_t>(lanes, 1), 1, 16);
    while (groups > 1 && sharedBytes(tile.rows * tile.columns, lanes, groups) > 48 * 1024)
    {
        --groups;
    }
    return static_cast<int32_t>(groups);
}

// The largest tile with which every multiprocessor has work.
int32_t chooseTile(Problem const& p, Device const& device, bool pairs)
{
    if (!pairs)
    {
        return kAnyTile;
    }
    for (int32_t const tile : {2, 1})
    {
        Tile const& t = kTiles[tile];
        int64_t const threads = p.batch * ceilDiv(p.height, t.rows) * ceilDiv(p.width, t.columns) * (p.channels / t.pack);
        if (p.channels / t.pack <= t.threads && threads >= device.multiprocessors * measured::kDepthwiseWork
            && sharedBytes(t.rows * t.columns, p.channels / t.pack, 1) <= 48 * 1024)
        {
            return tile;
        }
    }
    return 0;
}

template <typename T>
cudaError_t launchTyped(Problem const& p, Tensors const& t, cudaStream_t stream)
{
    Device device;
    if (cudaError_t const status = readDevice(device); status != cudaSuccess)
    {
        return status;
    }
    bool const pairs = p.channels % 2 == 0 && aligned(t, 2 * sizeof(T));
    int32_t const tile = p.tile > 0 ? p.tile - 1 : chooseTile(p, device, pairs);
    if (tile >= kTileCount)
    {
        return cudaErrorInvalidConfiguration;
    }
    int32_t const groups = p.groups > 0 ? p.groups : chooseGroups(p, kTiles[tile]);
    switch (p.size)
    {
    case 3: return dispatchTile<T, 3>(tile, p, t, groups, stream);
    case 5: return dispatchTile<T, 5>(tile, p, t, groups, stream);
    case 7: return dispatchTile<T, 7>(tile, p, t, groups, stream);
    default: return cudaErrorInvalidValue;
    }
}
} // namespace

cudaError_t launch(Problem const& problem, void const* x, void const* weight, void const* bias, void const* scale,
    void const* shift, void* y, cudaStream_t stream)
{
    if (problem.batch < 0 || problem.height < 0 || problem.width < 0 || problem.channels < 0)
    {
        return cudaErrorInvalidValue;
    }
    if (problem.batch == 0 || problem.height == 0 || problem.width == 0 || problem.channels == 0)
    {
        return cudaSuccess;
    }
    return dispatchElement(problem.type, [&](auto element) {
        return launchTyped<decltype(element)>(problem, {x, weight, bias, scale, shift, y}, stream);
    });
}
} // namespace trtconv::depthwise_conv_layer_norm
