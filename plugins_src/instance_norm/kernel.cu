// A plane is read once where it fits on chip: in a warp's registers, in a block's, or in those of a thread-block cluster.
// Larger planes are read twice.
#include "instance_norm/kernel.h"

#include "common/device.h"
#include "common/measured.h"
#include "instance_norm/launch_small.cuh"
#include "instance_norm/launch_split.cuh"

namespace trtconv::instance_norm
{
namespace
{
// Bytes of a part beside its values: the granules at its edges.
constexpr int64_t kSlack = 2 * kVectorBytes;
// What the other shared variables of the on-chip kernel take, rounded up.
constexpr int64_t kReserved = 2048;

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

// Granules that a part may touch beyond those that it fills: one where planes begin inside a granule.
template <typename T>
int64_t extraGranules(T const* x, int64_t area)
{
    return widestPack<T>(area, x, x) == perGranule<T>() ? 0 : 1;
}

// Threads that hold a part in their registers; over 1024: none do.
int64_t threadsFor(int64_t granules)
{
    int64_t const threads = roundUp(ceilDiv(granules, kItems), 32);
    return threads < 64 ? 64 : threads;
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

// `parts` blocks to a plane.
template <typename T, bool CLUSTER>
cudaError_t launchOnChip(Launch<T> l, int32_t parts)
{
    l.plane.part = partOf<T>(l.plane.area, parts);
    l.plane.parts = parts;
    int64_t const slot = sharedFor<T>(l.plane.part);
    int64_t const threads = threadsFor(l.plane.part / perGranule<T>() + extraGranules(l.x, l.plane.area));
    if (slot + kReserved > l.device.sharedPerBlock || threads > 1024)
    {
        return cudaErrorInvalidConfiguration;
    }
    auto const kernel = onChipPlanes<T, CLUSTER>;
    int32_t const bytes = static_cast<int32_t>(slot);
    cudaError_t status = cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, bytes);
    if (status == cudaSuccess && parts > 8)
    {
        status = cudaFuncSetAttribute(kernel, cudaFuncAttributeNonPortableClusterSizeAllowed, 1);
    }
    if (status != cudaSuccess)
    {
        return status;
    }
    cudaLaunchAttribute attribute{};
    attribute.id = cudaLaunchAttributeClusterDimension;
    attribute.val.clusterDim = {static_cast<uint32_t>(parts), 1, 1};
    cudaLaunchConfig_t config{};
    config.gridDim = dim3(static_cast<uint32_t>(parts));
    config.blockDim = dim3(static_cast<uint32_t>(threads));
    config.dynamicSmemBytes = static_cast<size_t>(bytes);
    config.stream = l.stream;
    config.attrs = &attribute;
    config.numAttrs = CLUSTER ? 1 : 0;
    int64_t resident = 0;
    status = residentBlocks(resident, kernel, config, parts, l.device);
    if (status != cudaSuccess || resident < 1)
    {
        (void) cudaGetLastError(); // a cluster of that size is not for this device
        return cudaErrorInvalidConfiguration;
    }
    int64_t const wanted = l.plane.planes * parts;
    config.gridDim = dim3(static_cast<uint32_t>(wanted < resident ? wanted : resident));
    return cudaLaunchKernelEx(&config, kernel, l.x, l.y, l.plane);
}

// The smallest cluster of blocks of 512 threads that holds a plane, so that two blocks share a multiprocessor; failing
// that, of 1024. Larger where there are too few planes to give every multiprocessor a block. 0: a plane does not fit.
template <typename T>
int32_t chooseCluster(int64_t planes, int64_t area, int64_t extra, Device const& device)
{
    constexpr int64_t leastPart = 8192;
    int32_t const most = device.major == 9 || device.major == 10 ? kMaxCluster : (device.major >= 9 ? 8 : 1);
    // Two large blocks to a plane where that is one round of the device: 64 planes of 256 KiB took 16.2 us so, 18.4 with
    // four blocks of half the size.
    int64_t const half = partOf<T>(area, 2);
    if (most > 1 && 2 * planes <= device.multiprocessors && 4 * planes > device.multiprocessors
        && threadsFor(half / perGranule<T>() + extra) > 512 && threadsFor(half / perGranule<T>() + extra) <= 1024
        && sharedFor<T>(half) + kReserved <= device.sharedPerBlock)
    {
        return 2;
    }
    for (int64_t const threads : {512, 1024})
    {
        for (int32_t cluster = 1; cluster <= most; cluster *= 2)
        {
            int64_t const part = partOf<T>(area, cluster);
            if (threadsFor(part / perGranule<T>() + extra) <= threads && sharedFor<T>(part) + kReserved <= device.sharedPerBlock)
            {
                while (2 * cluster <= most && 2 * planes * cluster <= device.multiprocessors
                    && area * static_cast<int64_t>(sizeof(T)) >= 2 * cluster * leastPart)
                {
                    cluster *= 2;
                }
                return cluster;
            }
        }
    }
    return 0;
}

template <typename T>
cudaError_t launchTyped(Problem const& problem, Launch<T> const& l)
{
    int32_t const widest = widestPack<T>(problem.area, l.x, l.y);
    int32_t const width = widest < 4 ? widest : 4;
    int32_t const cluster
        = problem.cluster > 0
        ? problem.cluster
        : chooseCluster<T>(problem.planes, problem.area, extraGranules(l.x, problem.area), l.device);
    switch (problem.route)
    {
    case Route::kWarp: return launchWarpRoute<T>(l, width);
    case Route::kBlock: return launchOnChip<T, false>(l, 1);
    case Route::kCluster:
        return cluster > 0 ? launchOnChip<T, true>(l, cluster) : cudaErrorInvalidConfiguration;
    case Route::kSplit: return launchReads<T, false>(l);
    case Route::kSplitFused: return launchReads<T, true>(l);
    case Route::kEvenWarp: return launchEven<T>(l);
    case Route::kWarpWide:
    case Route::kTeam: return launchWide<T>(l, problem.route);
    default: break;
    }
    if (cudaError_t const status = launchEven<T>(l); status != cudaErrorInvalidConfiguration)
    {
        return status;
    }
    // A block to a plane of few values would have idle threads.
    constexpr auto small = Route(measured::smallPlaneRoute(sizeof(T)));
    if (small != Route::kWarp && (small != Route::kTeam || problem.area * 2 > kWarpThreads * perGranule<T>()))
    {
        cudaError_t const status = launchWide<T>(l, small);
        if (status != cudaErrorInvalidConfiguration)
        {
            return status;
        }
    }
    if (problem.area <= 32 * width * kWarpItems)
    {
        return launchWarpRoute<T>(l, width);
    }
    for (int32_t tried = cluster; tried > 0; tried = tried > 8 ? 8 : 0)
    {
        cudaError_t const status
            = tried > 1 ? launchOnChip<T, true>(l, tried) : launchOnChip<T, false>(l, 1);
        if (status != cudaErrorInvalidConfiguration)
        {
            return status;
        }
    }
    cudaError_t const status = launchReads<T, true>(l);
    return status != cudaErrorInvalidConfiguration ? status : launchReads<T, false>(l);
}
} // namespace

int64_t workspaceBytes(ElementType type, int64_t planes, int64_t area) noexcept
{
    int64_t const parts = ceilDiv(area * sizeOf(type), kSplitBytes);
    return planes * (parts * static_cast<int64_t>(sizeof(Moments)) + static_cast<int64_t>(sizeof(Affine)));
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
