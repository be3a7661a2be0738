// Which kernel takes a problem, and how it is cut into tiles.
#include "l2norm/kernel.h"

#include "common/device.h"
#include "common/measured.h"
#include "l2norm/bulk.cuh"
#include "l2norm/columns.cuh"
#include "l2norm/ragged.cuh"
#include "l2norm/rows.cuh"

namespace trtconv::l2norm
{
namespace
{
template <typename T>
struct Launch
{
    T const* x;
    void const* scale;
    T* y;
    Column column;
    int64_t outer;
    int32_t depth;
    ElementType type;
    Device device;
    cudaStream_t stream;
};

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

template <typename T, int V>
cudaError_t rowsOf(Launch<T> const& l)
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

// As many blocks as fit, or as there are rows for.
template <typename T, int V, int ITEMS>
cudaError_t launchStreamedRows(Launch<T> const& l)
{
    auto const kernel = streamedRows<T, V, ITEMS>;
    int32_t resident = 0;
    cudaError_t const status = cudaOccupancyMaxActiveBlocksPerMultiprocessor(&resident, kernel, kRowThreads, 0);
    if (status != cudaSuccess || resident < 1)
    {
        return status != cudaSuccess ? status : cudaErrorInvalidConfiguration;
    }
    int64_t const wanted = ceilDiv(l.outer, kRowThreads / 32);
    int64_t const most = static_cast<int64_t>(resident) * l.device.multiprocessors;
    kernel<<<static_cast<uint32_t>(wanted < most ? wanted : most), kRowThreads, 0, l.stream>>>(
        l.x, l.scale, l.y, l.outer, l.column);
    return cudaGetLastError();
}

template <typename T, int V>
cudaError_t streamedRowsOf(Launch<T> const& l)
{
    if constexpr (V * sizeof(T) < 8)
    {
        return cudaErrorInvalidConfiguration;
    }
    else
    {
        switch (ceilDiv(l.column.channels, 32 * V))
        {
        case 1: return launchStreamedRows<T, V, 1>(l);
        case 2: return launchStreamedRows<T, V, 2>(l);
        case 3: return launchStreamedRows<T, V, 3>(l);
        case 4: return launchStreamedRows<T, V, 4>(l);
        default: break;
        }
        if constexpr (V <= 4)
        {
            switch (ceilDiv(l.column.channels, 32 * V))
            {
            case 5:
            case 6: return launchStreamedRows<T, V, 6>(l);
            case 7:
            case 8: return launchStreamedRows<T, V, 8>(l);
            default: break;
            }
        }
        return cudaErrorInvalidConfiguration;
    }
}

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

// Calls function with the pack width as a compile-time constant.
template <typename T, typename Function>
cudaError_t dispatchWidth(int32_t width, Function const& function)
{
    switch (width)
    {
    case 1: return function(std::integral_constant<int, 1>{});
    case 2: return function(std::integral_constant<int, 2>{});
    case 4: return function(std::integral_constant<int, 4>{});
    default: return function(std::integral_constant<int, kVectorBytes / sizeof(T)>{});
    }
}

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

int32_t log2Of(int32_t value)
{
    int32_t result = 0;
    while ((1 << result) < value)
    {
        ++result;
    }
    return result;
}

template <typename T>
cudaError_t routed(Launch<T> const& l, Route route, int32_t width)
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
        {static_cast<int32_t>(p.channels), p.inner, 1, 0, p.epsilon, p.epsMode, p.scaleType}, p.outer, p.depth, p.type,
        device, stream};
    int32_t width = widestPack<T>(p.inner == 1 ? p.channels : p.inner, x, y);
    if (p.route != Route::kAuto && p.route != Route::kColumns && p.route != Route::kRows)
    {
        return routed(l, p.route, width);
    }
    bool const free = p.route == Route::kAuto && p.lanes == 0 && p.depth < 0;
    if (Route const better = free ? measuredRoute(l, width) : Route::kAuto; better != Route::kAuto)
    {
        cudaError_t const status = routed(l, better, width);
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
