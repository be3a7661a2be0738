// inner == 1: how many packs a thread holds, and how many rows a warp takes.
#pragma once

#include "common/measured.h"
#include "l2norm/launch.cuh"
#include "l2norm/rows.cuh"

#include <algorithm>

namespace trtconv::l2norm
{
template <typename T, int V>
cudaError_t launchHeldRows(Launch<T> const& l)
{
    auto const blocks = static_cast<uint32_t>(ceilDiv(l.outer, kRowThreads / 32));
    if (l.column.channels <= 32 * V * 2)
    {
        heldRows<T, V, 2><<<blocks, kRowThreads, 0, l.stream>>>(l.x, l.scale, l.y, l.outer, l.column);
    }
    else
    {
        heldRows<T, V, 8><<<blocks, kRowThreads, 0, l.stream>>>(l.x, l.scale, l.y, l.outer, l.column);
    }
    return cudaGetLastError();
}

// Rows of packs of any width, a warp to each.
template <typename T>
cudaError_t rowsOf(Launch<T> const& l)
{
    int32_t const width = widestPack<T>(l.column.channels, l.x, l.y);
    if (l.column.inner != 1 || l.column.channels > 32 * width * 8 || ceilDiv(l.outer, kRowThreads / 32) > kMaxGrid)
    {
        return cudaErrorInvalidConfiguration;
    }
    return dispatchWidth<T>(width, [&](auto v) { return launchHeldRows<T, decltype(v)::value>(l); });
}

template <typename T, typename S>
cudaError_t launchPackedRows(Launch<T> const& l, int32_t team, int32_t threads)
{
    constexpr int32_t V = kVectorBytes / static_cast<int32_t>(sizeof(T));
    auto const blocks = static_cast<uint32_t>(ceilDiv(l.outer, threads / 32 / team));
    auto const go = [&](auto items) {
        packedRows<T, S, decltype(items)::value><<<blocks, static_cast<uint32_t>(threads), 0, l.stream>>>(
            l.x, static_cast<S const*>(l.scale), l.y, l.outer, team, l.column);
        return cudaGetLastError();
    };
    switch (ceilDiv(l.column.channels, static_cast<int64_t>(team) * 32 * V))
    {
    case 1: return go(std::integral_constant<int, 1>{});
    case 2: return go(std::integral_constant<int, 2>{});
    case 3: return go(std::integral_constant<int, 3>{});
    case 4: return go(std::integral_constant<int, 4>{});
    case 5:
    case 6: return go(std::integral_constant<int, 6>{});
    case 7:
    case 8: return go(std::integral_constant<int, 8>{});
    default: return cudaErrorInvalidConfiguration;
    }
}

// Warps to a row of `packs` whole granules, so that a thread holds few of them.
inline int32_t chooseTeam(int64_t packs)
{
    int64_t const team = ceilDiv(packs, 32 * measured::kL2NormRowPacks);
    return static_cast<int32_t>(std::clamp<int64_t>(team, 1, kMostRowThreads / 32));
}

// Rows and a scale of whole 16-byte words, the scale in the rows' type or in float. `lanes` to a row, and `threads` to a
// block (0: chosen here).
template <typename T>
cudaError_t packedRowsOf(Launch<T> const& l, int32_t lanes, int32_t threads)
{
    constexpr auto own = std::is_same_v<T, float> ? ElementType::kFloat32
        : std::is_same_v<T, __half>               ? ElementType::kFloat16
                                                  : ElementType::kBFloat16;
    constexpr int32_t V = kVectorBytes / static_cast<int32_t>(sizeof(T));
    bool const words = widestPack<T>(l.column.channels, l.x, l.y) == V
        && reinterpret_cast<uint64_t>(l.scale) % kVectorBytes == 0;
    int32_t const team = lanes >= 32 ? lanes / 32 : chooseTeam(l.column.channels / V);
    int32_t const block = threads > 0 ? threads : static_cast<int32_t>(roundUp(kRowThreads, team * 32));
    if (!words || l.column.inner != 1 || block > kMostRowThreads || block % (team * 32) != 0
        || ceilDiv(l.outer, block / 32 / team) > kMaxGrid)
    {
        return cudaErrorInvalidConfiguration;
    }
    if (l.column.scaleType == own)
    {
        return launchPackedRows<T, T>(l, team, block);
    }
    return l.column.scaleType == ElementType::kFloat32 ? launchPackedRows<T, float>(l, team, block)
                                                       : cudaErrorInvalidConfiguration;
}
} // namespace trtconv::l2norm
