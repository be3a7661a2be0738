// A plane is read once where it fits on chip: in a warp's registers, in a block's shared memory, or spread over the
// shared memory of a thread-block cluster. Larger planes are taken in groups that stay in L2 between two reads.
#include "instance_norm/kernel.h"

#include "common/device.h"
#include "common/pack.cuh"
#include "instance_norm/moments.cuh"
#include "instance_norm/onchip.cuh"

#include <cooperative_groups.h>

namespace trtconv::instance_norm
{
namespace
{
constexpr int32_t kMaxCluster = 16;
constexpr int32_t kWarpThreads = 128;
constexpr int32_t kWarpItems = 8;
constexpr int64_t kSplitBytes = 32 * 1024;
// Bytes of a part beside its values: the granules at its edges.
constexpr int64_t kSlack = 2 * kVectorBytes;
// What the other shared variables of the on-chip kernel take, rounded up.
constexpr int64_t kReserved = 2048;

struct Plane
{
    int64_t planes;
    int64_t channels;
    int64_t area;
    int64_t part; // values in each part but the last
    int32_t parts;
    float epsilon;
    bool relu;
    ElementType parameterType;
    void const* scale;
    void const* bias;

    __device__ __forceinline__ Affine affine(Moments const& moments, int64_t plane) const
    {
        int64_t const channel = plane % channels;
        return affineOf(moments, area, epsilon, parameter(scale, parameterType, channel),
            parameter(bias, parameterType, channel));
    }

    __device__ __forceinline__ int32_t valuesIn(int32_t index) const
    {
        int64_t const rest = area - index * part;
        return static_cast<int32_t>(rest < 0 ? 0 : (rest < part ? rest : part));
    }
};

template <typename T, int V, int ITEMS>
__global__ void __launch_bounds__(kWarpThreads) warpPlanes(T const* __restrict__ x, T* __restrict__ y, Plane const p)
{
    int64_t const plane = static_cast<int64_t>(blockIdx.x) * (kWarpThreads / 32) + threadIdx.x / 32;
    if (plane >= p.planes)
    {
        return; // whole warps leave
    }
    int32_t const lane = threadIdx.x % 32;
    int32_t const area = static_cast<int32_t>(p.area);
    int64_t const base = plane * p.area;
    Pack<T, V> held[ITEMS];
    float sum = 0.0F;
#pragma unroll
    for (int i = 0; i < ITEMS; ++i)
    {
        held[i] = {};
        int32_t const at = (i * 32 + lane) * V;
        if (at < area)
        {
            held[i] = loadOnce<T, V>(x + base + at);
        }
    }
    auto const forValues = [&](auto const& use) {
#pragma unroll
        for (int i = 0; i < ITEMS; ++i)
        {
            if ((i * 32 + lane) * V < area)
            {
#pragma unroll
                for (int v = 0; v < V; ++v)
                {
                    use(toFloat(held[i].value[v]));
                }
            }
        }
    };
    forValues([&](float value) { sum += value; });
    float const shift = warpSum(sum) / static_cast<float>(area);
    float2 sums = {0.0F, 0.0F};
    forValues([&](float value) {
        sums.x += value - shift;
        sums.y = fmaf(value - shift, value - shift, sums.y);
    });
    Affine const affine = p.affine(momentsOf(shift, warpSum(sums.x), warpSum(sums.y), area), plane);
#pragma unroll
    for (int i = 0; i < ITEMS; ++i)
    {
        int32_t const at = (i * 32 + lane) * V;
        if (at < area)
        {
            Pack<T, V> result;
#pragma unroll
            for (int v = 0; v < V; ++v)
            {
                result.value[v] = apply(held[i].value[v], affine, p.relu);
            }
            store<T, V>(y + base + at, result);
        }
    }
}

// parts == 1: a block takes a plane. Otherwise `parts` is the size of the cluster that does, and the blocks push their
// moments into each other's shared memory. Blocks stay: while one plane is worked on, the next depth - 1 are copied.
template <typename T>
__global__ void __launch_bounds__(1024)
    onChipPlanes(T const* __restrict__ x, T* __restrict__ y, Plane const p, int32_t depth, int32_t slotBytes)
{
    extern __shared__ __align__(128) unsigned char memory[];
    __shared__ uint64_t barriers[kMaxDepth];
    __shared__ float2 scratch[32];
    __shared__ Moments gathered[2][kMaxCluster];
    __shared__ Affine shared;
    int64_t const first = blockIdx.x / p.parts;
    int64_t const step = gridDim.x / p.parts;
    int32_t const index = static_cast<int32_t>(blockIdx.x % p.parts);
    int32_t const count = p.valuesIn(index);
    auto const slotOf = [&](int32_t slot) { return Slot<T>{reinterpret_cast<T*>(memory + slot * slotBytes), barriers + slot}; };
    auto const partOf = [&](int64_t plane) { return Part<T>(x + plane * p.area + index * p.part, count); };
    for (int32_t d = 0; d < depth; ++d)
    {
        slotOf(d).prepare();
        if (first + d * step < p.planes)
        {
            slotOf(d).fill(partOf(first + d * step));
        }
    }
    __syncthreads();
#if TRTCONV_BULK_COPY
    auto const cluster = cooperative_groups::this_cluster();
    if (p.parts > 1)
    {
        cluster.sync(); // all blocks of the cluster run, so that their shared memory may be written
    }
#endif
    int32_t slot = 0;
    int32_t use = 0;
    int32_t side = 0;
    for (int64_t plane = first; plane < p.planes; plane += step)
    {
        Slot<T> const current = slotOf(slot);
        Part<T> const part = partOf(plane);
        current.wait(use);
        Moments const own = count > 0 ? partMoments(part, current.held, scratch) : Moments{0.0, 0.0};
#if TRTCONV_BULK_COPY
        if (p.parts > 1)
        {
            if (threadIdx.x < static_cast<uint32_t>(p.parts))
            {
                *cluster.map_shared_rank(&gathered[side][index], threadIdx.x) = own;
            }
            cluster.sync();
        }
#endif
        if (threadIdx.x < 32)
        {
            Moments const moments = p.parts > 1 ? combine(gathered[side], p.parts, p.part, p.area) : own;
            if (threadIdx.x == 0)
            {
                shared = p.affine(moments, plane);
            }
        }
        __syncthreads();
        writePart(part, current.held, y + plane * p.area + index * p.part, shared, p.relu);
        current.release();
        __syncthreads();
        if (plane + depth * step < p.planes)
        {
            current.fill(partOf(plane + depth * step));
        }
        side ^= 1;
        slot = slot + 1 == depth ? 0 : slot + 1;
        use += slot == 0 ? 1 : 0;
        if (depth == 1)
        {
            __syncthreads(); // the edges are there
        }
    }
}

template <typename T>
__global__ void __launch_bounds__(256) splitMoments(T const* __restrict__ x, Moments* __restrict__ moments, Plane const p)
{
    extern __shared__ __align__(128) unsigned char memory[];
    __shared__ uint64_t barrier;
    __shared__ float2 scratch[32];
    int32_t const index = static_cast<int32_t>(blockIdx.x % p.parts);
    Slot<T> const slot{reinterpret_cast<T*>(memory), &barrier};
    Part<T> const part(x + (blockIdx.x / p.parts) * p.area + index * p.part, p.valuesIn(index));
    slot.prepare();
    slot.fill(part);
    __syncthreads();
    slot.wait(0);
    Moments const own = partMoments(part, slot.held, scratch);
    if (threadIdx.x == 0)
    {
        moments[blockIdx.x] = own;
    }
}

template <typename T>
__global__ void __launch_bounds__(256)
    splitApply(T const* __restrict__ x, T* __restrict__ y, Moments const* __restrict__ moments, Plane const p, int64_t plane0)
{
    constexpr int32_t V = Part<T>::V;
    __shared__ Affine shared;
    int64_t const plane = blockIdx.x / p.parts;
    int32_t const index = static_cast<int32_t>(blockIdx.x % p.parts);
    if (threadIdx.x < 32)
    {
        Moments const all = combine(moments + plane * p.parts, p.parts, p.part, p.area);
        if (threadIdx.x == 0)
        {
            shared = p.affine(all, plane0 + plane);
        }
    }
    __syncthreads();
    int64_t const at = plane * p.area + index * p.part;
    Part<T> const part(x + at, p.valuesIn(index));
    T* const base = y + at - part.skip;
    bool const aligned = reinterpret_cast<uintptr_t>(base) % kVectorBytes == 0;
#pragma unroll 4
    for (int32_t g = threadIdx.x; g < part.granules; g += static_cast<int32_t>(blockDim.x))
    {
        if (aligned && part.whole(g))
        {
            Pack<T, V> pack = loadOnce<T, V>(part.base + g * V);
#pragma unroll
            for (int v = 0; v < V; ++v)
            {
                pack.value[v] = apply(pack.value[v], shared, p.relu);
            }
            store<T, V>(base + g * V, pack);
        }
        else
        {
            for (int v = 0; v < V; ++v)
            {
                if (part.has(g, v))
                {
                    base[g * V + v] = apply(part.base[g * V + v], shared, p.relu);
                }
            }
        }
    }
}

template <typename T>
struct Launch
{
    T const* x;
    T* y;
    void* workspace;
    Plane plane;
    Device device;
    cudaStream_t stream;
};

template <typename T>
constexpr int64_t perGranule()
{
    return kVectorBytes / static_cast<int64_t>(sizeof(T));
}

// Values in each of n equal parts, a whole number of granules.
template <typename T>
int64_t partOf(int64_t area, int64_t n)
{
    return roundUp(ceilDiv(area, n), perGranule<T>());
}

template <typename T>
int64_t sharedFor(int64_t values)
{
    return roundUp(values * static_cast<int64_t>(sizeof(T)) + kSlack, 128);
}

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

// Threads such that each has about four granules.
int32_t threadsFor(int64_t granules)
{
    int64_t const wanted = roundUp(ceilDiv(granules, 4), 32);
    return static_cast<int32_t>(wanted < 64 ? 64 : (wanted > 1024 ? 1024 : wanted));
}

// How many blocks of the kernel can be there at once, a whole number of clusters; 0: not one cluster.
template <typename Kernel>
cudaError_t residentBlocks(int64_t& blocks, Kernel kernel, cudaLaunchConfig_t const& config, int32_t cluster,
    Device const& device)
{
    int32_t count = 0;
    cudaError_t status = cudaSuccess;
    if (cluster > 1)
    {
        status = cudaOccupancyMaxActiveClusters(&count, kernel, &config);
        blocks = static_cast<int64_t>(count) * cluster;
    }
    else
    {
        status = cudaOccupancyMaxActiveBlocksPerMultiprocessor(
            &count, kernel, static_cast<int>(config.blockDim.x), config.dynamicSmemBytes);
        blocks = static_cast<int64_t>(count) * device.multiprocessors;
    }
    return status;
}

template <typename T>
cudaError_t launchOnChip(Launch<T> l, int32_t cluster, int32_t depth)
{
    l.plane.part = partOf<T>(l.plane.area, cluster);
    l.plane.parts = cluster;
    int64_t const slot = sharedFor<T>(l.plane.part);
    if (slot * depth + kReserved > l.device.sharedPerBlock)
    {
        return cudaErrorInvalidConfiguration;
    }
    auto const kernel = onChipPlanes<T>;
    int32_t const bytes = static_cast<int32_t>(slot * depth);
    cudaError_t status = cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, bytes);
    if (status == cudaSuccess && cluster > 8)
    {
        status = cudaFuncSetAttribute(kernel, cudaFuncAttributeNonPortableClusterSizeAllowed, 1);
    }
    if (status != cudaSuccess)
    {
        return status;
    }
    cudaLaunchAttribute attribute{};
    attribute.id = cudaLaunchAttributeClusterDimension;
    attribute.val.clusterDim = {static_cast<uint32_t>(cluster), 1, 1};
    cudaLaunchConfig_t config{};
    config.gridDim = dim3(static_cast<uint32_t>(cluster));
    config.blockDim = dim3(static_cast<uint32_t>(threadsFor(ceilDiv(l.plane.part, perGranule<T>()))));
    config.dynamicSmemBytes = static_cast<size_t>(bytes);
    config.stream = l.stream;
    config.attrs = &attribute;
    config.numAttrs = cluster > 1 ? 1 : 0;
    int64_t resident = 0;
    status = residentBlocks(resident, kernel, config, cluster, l.device);
    if (status != cudaSuccess || resident < 1)
    {
        (void) cudaGetLastError(); // a cluster of that size is not for this device
        return cudaErrorInvalidConfiguration;
    }
    int64_t const wanted = l.plane.planes * cluster;
    config.gridDim = dim3(static_cast<uint32_t>(wanted < resident ? wanted : resident));
    return cudaLaunchKernelEx(&config, kernel, l.x, l.y, l.plane, depth, static_cast<int32_t>(slot));
}

// Planes of a group stay in L2 between the two reads, yet give every multiprocessor work.
int64_t groupPlanes(Plane const& plane, Device const& device, int64_t planeBytes)
{
    int64_t const cached = device.cacheBytes * 2 / 5 / planeBytes;
    int64_t const busy = ceilDiv(4 * device.multiprocessors, plane.parts);
    int64_t const wanted = cached > busy ? cached : busy;
    return wanted < plane.planes ? wanted : plane.planes;
}

template <typename T>
cudaError_t launchSplit(Launch<T> const& l)
{
    Plane p = l.plane;
    p.part = kSplitBytes / static_cast<int64_t>(sizeof(T));
    p.parts = static_cast<int32_t>(ceilDiv(p.area, p.part));
    int64_t const group = groupPlanes(p, l.device, p.area * static_cast<int64_t>(sizeof(T)));
    if (group * p.parts > kMaxGrid)
    {
        return cudaErrorInvalidConfiguration;
    }
    auto* const moments = static_cast<Moments*>(l.workspace);
    for (int64_t first = 0; first < l.plane.planes; first += group)
    {
        int64_t const rest = l.plane.planes - first;
        auto const blocks = static_cast<uint32_t>((rest < group ? rest : group) * p.parts);
        T const* const x = l.x + first * p.area;
        splitMoments<T><<<blocks, 256, static_cast<size_t>(sharedFor<T>(p.part)), l.stream>>>(x, moments, p);
        if (cudaError_t const status = cudaGetLastError(); status != cudaSuccess)
        {
            return status;
        }
        splitApply<T><<<blocks, 256, 0, l.stream>>>(x, l.y + first * p.area, moments, p, first);
        if (cudaError_t const status = cudaGetLastError(); status != cudaSuccess)
        {
            return status;
        }
    }
    return cudaSuccess;
}

struct Spread
{
    int32_t cluster; // 0: a plane does not fit on chip
    int32_t depth;
};

// The smallest cluster that holds a plane three deep (one copied, one worked on, one between them); failing that two
// deep, failing that once. Larger where there are too few planes to give every multiprocessor a block.
template <typename T>
Spread chooseSpread(int64_t planes, int64_t area, Device const& device)
{
    constexpr int64_t leastPart = 8192;
    int32_t const most = device.major == 9 || device.major == 10 ? kMaxCluster : (device.major >= 9 ? 8 : 1);
    for (int32_t depth = kMaxDepth; depth > 0; --depth)
    {
        for (int32_t cluster = 1; cluster <= most; cluster *= 2)
        {
            if (sharedFor<T>(partOf<T>(area, cluster)) * depth + kReserved <= device.sharedPerBlock)
            {
                while (2 * cluster <= most && 2 * planes * cluster <= device.multiprocessors
                    && area * static_cast<int64_t>(sizeof(T)) >= 2 * cluster * leastPart)
                {
                    cluster *= 2;
                }
                return {cluster, depth};
            }
        }
    }
    return {0, 0};
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

template <typename T>
cudaError_t launchTyped(Problem const& problem, Launch<T> const& l)
{
    int32_t const widest = widestPack<T>(problem.area, l.x, l.y);
    int32_t const width = widest < 4 ? widest : 4;
    Spread spread = chooseSpread<T>(problem.planes, problem.area, l.device);
    spread.cluster = problem.cluster > 0 ? problem.cluster : spread.cluster;
    spread.depth = problem.depth > 0 ? problem.depth : (spread.depth > 0 ? spread.depth : 1);
    switch (problem.route)
    {
    case Route::kWarp: return launchWarpRoute<T>(l, width);
    case Route::kBlock: return launchOnChip<T>(l, 1, spread.depth);
    case Route::kCluster:
        return spread.cluster > 0 ? launchOnChip<T>(l, spread.cluster, spread.depth) : cudaErrorInvalidConfiguration;
    case Route::kSplit: return launchSplit<T>(l);
    default: break;
    }
    if (problem.area <= 32 * width * kWarpItems)
    {
        return launchWarpRoute<T>(l, width);
    }
    for (int32_t tried = spread.cluster; tried > 0; tried = tried > 8 ? 8 : 0)
    {
        for (int32_t depth = spread.depth; depth > 0; --depth)
        {
            cudaError_t const status = launchOnChip<T>(l, tried, depth);
            if (status != cudaErrorInvalidConfiguration)
            {
                return status;
            }
        }
    }
    return launchSplit<T>(l);
}
} // namespace

int64_t workspaceBytes(ElementType type, int64_t planes, int64_t area) noexcept
{
    int64_t const parts = ceilDiv(area * sizeOf(type), kSplitBytes);
    return planes * parts * static_cast<int64_t>(sizeof(Moments));
}

cudaError_t launch(Problem const& problem, void const* x, void const* scale, void const* bias, void* y, void* workspace,
    cudaStream_t stream)
{
    if (problem.planes < 0 || problem.area < 0 || problem.channels < 0)
    {
        return cudaErrorInvalidValue;
    }
    if (problem.planes == 0 || problem.area == 0)
    {
        return cudaSuccess;
    }
    Device device;
    if (cudaError_t const status = readDevice(device); status != cudaSuccess)
    {
        return status;
    }
    Plane const plane{problem.planes, problem.channels, problem.area, 0, 1, problem.epsilon, problem.relu,
        problem.parameterType, scale, bias};
    return dispatchElement(problem.type, [&](auto element) {
        using T = decltype(element);
        return launchTyped<T>(
            problem, Launch<T>{static_cast<T const*>(x), static_cast<T*>(y), workspace, plane, device, stream});
    });
}
} // namespace trtconv::instance_norm
