// Which kernel takes a problem, and how it is cut into tiles.
#include "l2norm/kernel.h"

#include "common/measured.h"
#include "l2norm/launch_columns.cuh"
#include "l2norm/launch_others.cuh"
#include "l2norm/launch_rows.cuh"
#include "l2norm/launch_windows.cuh"

namespace trtconv::l2norm
{
namespace
{
constexpr int64_t kMostItems = 8;
// Device memory moves in sectors of this size: runs of lanes that are shorter read more than they use.
constexpr int64_t kSectorBytes = 32;

// The widest run of lanes whose column fits the registers, then narrower while the device has idle multiprocessors
// or lanes would lie past the end; a run stays at least a 32-byte sector wide.
template <typename T>
int32_t chooseLanes(Problem const& p, int32_t width, Device const& device)
{
    int32_t lanes = 32;
    auto const blocks = [&](int32_t n) { return p.outer * ceilDiv(p.inner, static_cast<int64_t>(n) * width); };
    while (lanes > 1 && ceilDiv(p.channels, kThreads / lanes) > kMostItems)
    {
        lanes /= 2;
    }
    while (lanes > 1 && (lanes / 2) * width >= p.inner)
    {
        lanes /= 2;
    }
    while (lanes > 1 && (lanes / 2) * width * sizeof(T) >= kSectorBytes && blocks(lanes) < 2 * device.multiprocessors
        && ceilDiv(p.channels, kThreads / lanes) > 1)
    {
        lanes /= 2;
    }
    return lanes;
}

template <typename T>
cudaError_t routed(Launch<T> const& l, Problem const& p, Route route, int32_t width)
{
    switch (route)
    {
    case Route::kBulk: return bulk<T>(l);
    case Route::kRagged4: return ragged<T, 4>(l);
    case Route::kRagged8: return ragged<T, 8>(l);
    case Route::kRagged16: return ragged<T, 16>(l);
    case Route::kStreamedRows:
        return l.column.inner == 1
            ? dispatchWidth<T>(width, [&](auto v) { return streamedRowsOf<T, decltype(v)::value>(l); })
            : cudaErrorInvalidConfiguration;
    case Route::kWindows: return windowsOf<T>(l, p.lanes, p.threads, p.cluster, false);
    case Route::kHaloWindows: return windowsOf<T>(l, p.lanes, p.threads, p.cluster, true);
    case Route::kPackedRows: return packedRowsOf<T, false>(l, p.lanes, p.threads);
    case Route::kPlainRows: return packedRowsOf<T, true>(l, p.lanes, p.threads);
    default: return cudaErrorInvalidConfiguration;
    }
}

// The route that was faster than columns and rows held in registers, if there is one for the problem.
template <typename T>
Route measuredRoute(Launch<T> const& l, int32_t width)
{
    constexpr auto size = static_cast<int32_t>(sizeof(T));
    // Narrow rows leave most of a run empty, and few tiles leave multiprocessors idle.
    if (width * size < 8 && l.column.inner >= 64)
    {
        switch (measured::l2normRagged(size, l.column.channels))
        {
        case 4: return Route::kRagged4;
        case 8: return Route::kRagged8;
        case 16: return Route::kRagged16;
        default: break;
        }
    }
    return Route::kAuto;
}

template <typename T>
cudaError_t launchTyped(Problem const& p, void const* x, void const* scale, void* y, cudaStream_t stream)
{
    Device device;
    if (cudaError_t const status = readDevice(device); status != cudaSuccess)
    {
        return status;
    }
    Launch<T> l{static_cast<T const*>(x), scale, static_cast<T*>(y),
        {static_cast<int32_t>(p.channels), p.inner, 1, 0, p.epsilon, p.epsMode, p.scaleType}, p.outer, p.depth, p.leaving, p.type,
        device, stream};
    int32_t width = widestPack<T>(p.inner == 1 ? p.channels : p.inner, x, y);
    if (p.route != Route::kAuto && p.route != Route::kColumns && p.route != Route::kRows)
    {
        return routed(l, p, p.route, width);
    }
    bool const free = p.route == Route::kAuto && p.lanes == 0 && p.depth < 0;
    if (Route const better = free ? measuredRoute(l, width) : Route::kAuto; better != Route::kAuto)
    {
        cudaError_t const status = routed(l, p, better, width);
        if (status != cudaErrorInvalidConfiguration)
        {
            return status;
        }
    }
    if (p.inner == 1 && p.route != Route::kColumns && p.channels <= 32 * width * 8 && ceilDiv(p.outer, kRowThreads / 32) <= kMaxGrid)
    {
        return dispatchWidth<T>(width, [&](auto v) { return rowsOf<T, decltype(v)::value>(l); });
    }
    width = p.inner == 1 ? 1 : width;
    int32_t const lanes = p.lanes > 0 ? p.lanes : chooseLanes<T>(p, width, device);
    int64_t const items = ceilDiv(p.channels, kThreads / lanes);
    int64_t const run = static_cast<int64_t>(lanes) * width;
    bool const slivers = free && width * static_cast<int32_t>(sizeof(T)) < 8 && measured::l2normReloads(sizeof(T))
        && items > 2 && p.outer * ceilDiv(p.inner, 32) >= 4 * device.multiprocessors;
    bool const held = !slivers && items <= kMostItems && (run >= p.inner || run * static_cast<int64_t>(sizeof(T)) >= kSectorBytes);
    l.column.lanesLog2 = log2Of(held ? lanes : 32);
    l.column.tiles = ceilDiv(p.inner, held ? static_cast<int64_t>(lanes) * width : 32);
    if (p.outer * l.column.tiles > kMaxGrid)
    {
        return cudaErrorInvalidConfiguration;
    }
    if (!held)
    {
        reloadedColumns<T><<<static_cast<uint32_t>(l.outer * l.column.tiles), kThreads, 0, stream>>>(
            l.x, l.scale, l.y, l.column);
        return cudaGetLastError();
    }
    return dispatchWidth<T>(width, [&](auto v) { return columnsOf<T, decltype(v)::value>(l, items); });
}
} // namespace

cudaError_t launch(Problem const& problem, void const* x, void const* scale, void* y, cudaStream_t stream)
{
    if (problem.outer < 0 || problem.channels < 0 || problem.channels > kMaxGrid || problem.inner < 0 || problem.epsMode < 0 || problem.epsMode > 2)
    {
        return cudaErrorInvalidValue;
    }
    if (problem.outer == 0 || problem.channels == 0 || problem.inner == 0)
    {
        return cudaSuccess;
    }
    return dispatchElement(problem.type,
        [&](auto element) { return launchTyped<decltype(element)>(problem, x, scale, y, stream); });
}
} // namespace trtconv::l2norm
