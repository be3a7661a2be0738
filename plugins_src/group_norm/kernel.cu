#include "group_norm/kernel.h"

#include "common/chain.h"
#include "common/device.h"
#include "group_norm/images.cuh"
#include "group_norm/parts.cuh"

#include <algorithm>
#include <type_traits>

namespace trtconv::group_norm
{
namespace
{
template <typename T, int V, int N, bool MIXED>
__global__ void __launch_bounds__(kMostThreads)
    images(T const* __restrict__ x, T const* __restrict__ scale, T const* __restrict__ shift, T* __restrict__ y, Images const p)
{
    normalizeImage<T, V, N, MIXED>(x, scale, shift, y, p);
}

template <typename T>
struct Tensors
{
    T const* x;
    T const* scale;
    T const* shift;
    T* y;
    void* workspace;
};

// Packs of an image that a thread keeps in its registers, at most.
constexpr int64_t kMostHeld = 8;
// Blocks of the second kernel that a multiprocessor has at once, about.
constexpr int64_t kOutsAtOnce = 16;
// Packs to a multiprocessor up to which halves of them go to twice as many threads where neighbours are mixed: an image of
// 7 x 7 x 512 in 16 bits took 4.0 us for 5.2, eight images of 14 x 14 x 320, which are more, 7.1 for 6.0 (one H100).
constexpr int64_t kFewPacks = 256;

// call(how many packs a thread holds, 0 for none), as a constant.
template <int V, typename Call>
cudaError_t callHeld(int64_t packsOfThread, Call const& call)
{
    if constexpr (V > 1)
    {
        switch (packsOfThread)
        {
        case 1: return call(std::integral_constant<int, 1>{});
        case 2: return call(std::integral_constant<int, 2>{});
        case 3:
        case 4: return call(std::integral_constant<int, 4>{});
        case 5:
        case 6:
        case 7:
        case 8: return call(std::integral_constant<int, 8>{});
        default: break;
        }
    }
    return call(std::integral_constant<int, 0>{});
}

// Images of `p.parts` blocks each, which are a cluster.
template <typename T, int V, bool MIXED>
cudaError_t launchImages(Tensors<T> const& t, Images const& p, int64_t batch, cudaStream_t stream)
{
    int64_t const threads = std::min<int64_t>(roundUp(p.share, kWarp), kMostThreads);
    cudaLaunchConfig_t config{};
    config.gridDim = dim3(static_cast<uint32_t>(batch * p.parts));
    config.blockDim = dim3(static_cast<uint32_t>(threads));
    config.stream = stream;
    cudaLaunchAttribute attribute{};
    attribute.id = cudaLaunchAttributeClusterDimension;
    attribute.val.clusterDim = {static_cast<uint32_t>(p.parts), 1, 1};
    config.attrs = &attribute;
    config.numAttrs = p.parts > 1 ? 1 : 0;
    return callHeld<V>(ceilDiv(p.share, threads), [&](auto held) {
        return cudaLaunchKernelEx(&config, images<T, V, held.value, MIXED>, t.x, t.scale, t.shift, t.y, p);
    });
}

// The second kernel of parts, in packs of its own.
template <typename T, int V, bool MIXED>
cudaError_t launchOuts(Tensors<T> const& t, Images p, int64_t batch, Device const& device, bool early, cudaStream_t stream)
{
    p.packs = static_cast<int32_t>(int64_t{p.height} * p.width * p.channels / V);
    int64_t const most = std::max<int64_t>(kOutsAtOnce * device.multiprocessors / batch, 1);
    auto const blocks = static_cast<int32_t>(std::min(ceilDiv(p.packs, kOutThreads), most));
    auto const kernel = normalizeParts<T, V, MIXED>;
    return launchLater(early && mayChain(kernel, device), kernel, batch * blocks, kOutThreads, stream, t.x, t.scale, t.shift,
        static_cast<PartMoments const*>(t.workspace), t.y, p, blocks);
}

// As many parts as there are multiprocessors, or as it takes to hold them in registers.
template <typename T, int V, bool MIXED>
cudaError_t launchParts(Tensors<T> const& t, Images p, int64_t batch, Device const& device, bool early, cudaStream_t stream)
{
    int64_t const wanted = std::max(device.multiprocessors / batch, ceilDiv(p.packs, kMostHeld * kPartThreads));
    p.parts = static_cast<int32_t>(std::min({ceilDiv(p.packs, kPartThreads), wanted, int64_t{kMostPartsOfImage}}));
    p.share = static_cast<int32_t>(ceilDiv(p.packs, p.parts));
    int64_t const threads = std::min<int64_t>(roundUp(p.share, kWarp), kPartThreads);
    auto* const found = static_cast<PartMoments*>(t.workspace);
    cudaError_t const status = callHeld<V>(ceilDiv(p.share, threads), [&](auto held) {
        return launchLater(false, momentsOfParts<T, V, held.value>, batch * p.parts, threads, stream, t.x, found, p);
    });
    if (status != cudaSuccess)
    {
        return status;
    }
    if constexpr (MIXED && sizeof(T) == 2 && V > 1)
    {
        if (batch * p.packs <= kFewPacks * device.multiprocessors)
        {
            return launchOuts<T, V / 2, MIXED>(t, p, batch, device, early, stream);
        }
    }
    return launchOuts<T, V, MIXED>(t, p, batch, device, early, stream);
}

// Two kernels over all multiprocessors were the faster way for one to 64 images of 7 x 7 x 512 to 56 x 56 x 64 (one H200), but
// not where the cache does not hold x for its second reading: 64 images of 56 x 56 x 64 in float32 took 67 us for the 60 of
// clusters (one H100, as it was at first). With neighbours, for which clusters read x twice as well, they took 116 for 128. An
// image that two blocks hold is left to one kernel.
template <typename T, int V, bool MIXED>
bool isForParts(Problem const& problem, int64_t packs, Device const& device)
{
    int64_t const bytes = problem.batch * packs * V * static_cast<int64_t>(sizeof(T));
    return problem.route == Route::kAuto ? packs >= 2 * kPartThreads && (MIXED || bytes <= device.cacheBytes)
                                         : problem.route != Route::kImages;
}

template <typename T, int V, bool MIXED>
cudaError_t launchPacked(Problem const& problem, Tensors<T> const& t, Device const& device, cudaStream_t stream)
{
    int64_t const values = problem.height * problem.width * problem.channels;
    int64_t const packs = values / V;
    int64_t const atOnce = std::max<int64_t>(kOutsAtOnce * device.multiprocessors * kOutThreads, kMostThreads);
    if (packs > kMaxGrid - atOnce || problem.batch > kMaxGrid / kMostPartsOfImage)
    {
        return cudaErrorInvalidConfiguration;
    }
    Images p{static_cast<int32_t>(problem.height), static_cast<int32_t>(problem.width), static_cast<int32_t>(problem.channels),
        static_cast<int32_t>(packs), 0, 1, problem.epsilon};
    if (t.workspace != nullptr && isForParts<T, V, MIXED>(problem, packs, device))
    {
        return launchParts<T, V, MIXED>(t, p, problem.batch, device, problem.route != Route::kPartsInTurn, stream);
    }
    // Blocks of a warp or less gain nothing by being more.
    constexpr int64_t pack = kVectorBytes / sizeof(T);
    p.parts = device.major >= 9 && values >= int64_t{kMostParts} * kWarp * pack ? kMostParts : 1;
    p.share = static_cast<int32_t>(ceilDiv(packs, p.parts));
    return launchImages<T, V, MIXED>(t, p, problem.batch, stream);
}

template <typename T, bool MIXED>
cudaError_t launchTyped(Problem const& p, Tensors<T> const& t, cudaStream_t stream)
{
    constexpr int pack = kVectorBytes / sizeof(T);
    Device device;
    cudaError_t const status = readDevice(device);
    if (status != cudaSuccess)
    {
        return status;
    }
    uint64_t bits = 0;
    for (void const* const tensor : {static_cast<void const*>(t.x), static_cast<void const*>(t.scale),
             static_cast<void const*>(t.shift), static_cast<void const*>(t.y)})
    {
        bits |= reinterpret_cast<uint64_t>(tensor);
    }
    return p.channels % pack == 0 && bits % kVectorBytes == 0 ? launchPacked<T, pack, MIXED>(p, t, device, stream)
                                                              : launchPacked<T, 1, MIXED>(p, t, device, stream);
}
} // namespace

int64_t workspaceBytes(int64_t batch) noexcept
{
    return batch * kMostPartsOfImage * static_cast<int64_t>(sizeof(PartMoments));
}

cudaError_t launch(Problem const& p, void const* x, void const* scale, void const* shift, void* y, void* workspace,
    cudaStream_t stream)
{
    if (p.batch < 0 || p.height < 0 || p.width < 0 || p.channels < 0)
    {
        return cudaErrorInvalidValue;
    }
    if (p.batch == 0 || p.height == 0 || p.width == 0 || p.channels == 0)
    {
        return cudaSuccess;
    }
    return dispatchElement(p.type, [&](auto element) {
        using T = decltype(element);
        Tensors<T> const tensors{static_cast<T const*>(x), static_cast<T const*>(scale), static_cast<T const*>(shift),
            static_cast<T*>(y), workspace};
        return p.mixed ? launchTyped<T, true>(p, tensors, stream) : launchTyped<T, false>(p, tensors, stream);
    });
}
} // namespace trtconv::group_norm
