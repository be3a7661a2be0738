// Which kernel takes a problem, and how it is cut into tiles.
#include "l2norm/kernel.h"

#include "common/device.h"
#include "l2norm/columns.cuh"

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
cudaError_t launchTyped(Problem const& p, void const* x, void const* scale, void* y, cudaStream_t stream)
{
    Device device;
    if (cudaError_t const status = readDevice(device); status != cudaSuccess)
    {
        return status;
    }
    Launch<T> l{static_cast<T const*>(x), scale, static_cast<T*>(y),
        {static_cast<int32_t>(p.channels), p.inner, 1, 0, p.epsilon, p.epsMode, p.scaleType}, p.outer, p.depth, device,
        stream};
    int32_t width = widestPack<T>(p.inner == 1 ? p.channels : p.inner, x, y);
    if (p.inner == 1 && p.channels <= 32 * width * 8 && ceilDiv(p.outer, kRowThreads / 32) <= kMaxGrid)
    {
        return dispatchWidth<T>(width, [&](auto v) { return rowsOf<T, decltype(v)::value>(l); });
    }
    width = p.inner == 1 ? 1 : width;
    int32_t const lanes = p.lanes > 0 ? p.lanes : chooseLanes<T>(p, width, device);
    int64_t const items = ceilDiv(p.channels, kThreads / lanes);
    int64_t const run = static_cast<int64_t>(lanes) * width;
    bool const held = items <= kMostItems && (run >= p.inner || run * static_cast<int64_t>(sizeof(T)) >= kSectorBytes);
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
