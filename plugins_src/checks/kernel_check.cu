// Every kernel against a float64 reference on the CPU, over shapes that are odd, small, empty, unaligned and large enough
// for each route. Needs a GPU and no TensorRT. Usage: kernel_check [quick]; exits 1 when a case is wrong.
#include "adaptive_pool/kernel.h"
#include "checks/buffers.h"
#include "instance_norm/kernel.h"
#include "l2norm/kernel.h"
#include "reflection_pad/kernel.h"

#include <string>

namespace trtconv::checks
{
namespace
{
struct Tally
{
    int32_t cases{0};
    int32_t wrong{0};
    double worst[kElementTypes]{};

    void add(std::string const& name, ElementType type, double error)
    {
        ++cases;
        worst[static_cast<int32_t>(type)] = std::fmax(worst[static_cast<int32_t>(type)], error);
        if (!(error <= tolerance(type)))
        {
            ++wrong;
            std::printf("WRONG %s %s: %.3g\n", nameOf(type), name.c_str(), error);
        }
    }
};

std::string text(std::initializer_list<int64_t> numbers)
{
    std::string result;
    for (int64_t const n : numbers)
    {
        result += std::to_string(n) + " ";
    }
    return result;
}

void checkL2(Tally& tally, ElementType type, int64_t outer, int64_t channels, int64_t inner, int32_t mode, int64_t skip,
    l2norm::Route route = l2norm::Route::kAuto, int32_t lanes = 0, int32_t threads = 0, int32_t cluster = 0)
{
    ElementType const scaleType = mode == 1 ? ElementType::kFloat32 : type;
    Input const x(type, outer * channels * inner, 1, 0.0F, skip);
    Input const scale(scaleType, channels, 2, 1.0F, 0);
    Output y(type, outer * channels * inner, skip);
    l2norm::Problem const p{type, scaleType, outer, channels, inner, 0.5F, mode, route, lanes, cluster,
        threads};
    cudaError_t const status = l2norm::launch(p, x.data, scale.data, y.data, nullptr);
    if (status == cudaErrorInvalidConfiguration && route != l2norm::Route::kAuto)
    {
        return; // the route is not for this problem or device
    }
    must(status, "l2norm");
    std::vector<double> wanted(x.values.size());
    for (int64_t o = 0; o < outer; ++o)
    {
        for (int64_t i = 0; i < inner; ++i)
        {
            int64_t const base = o * channels * inner + i;
            double squares = 0.0;
            for (int64_t c = 0; c < channels; ++c)
            {
                squares += x.values[base + c * inner] * x.values[base + c * inner];
            }
            double const root = std::sqrt(squares);
            double const norm
                = mode == 0 ? root + 0.5 : (mode == 1 ? std::sqrt(squares + 0.5) : std::fmax(root, 0.5));
            for (int64_t c = 0; c < channels; ++c)
            {
                wanted[base + c * inner] = x.values[base + c * inner] / norm * scale.values[c];
            }
        }
    }
    tally.add("l2norm " + text({outer, channels, inner, mode, skip, static_cast<int64_t>(route), lanes, threads, cluster}),
        type, y.error(wanted));
}

void checkNorm(Tally& tally, ElementType type, int64_t planes, int64_t channels, int64_t area, instance_norm::Route route,
    int32_t cluster, float offset, int64_t skip)
{
    bool const relu = area % 2 == 1;
    Input const x(type, planes * area, 3, offset, skip);
    Input const scale(type, channels, 4, 1.0F, 0);
    Input const bias(type, channels, 5, 0.0F, 0);
    Output y(type, planes * area, skip);
    instance_norm::Problem const p{type, type, planes, channels, area, 1e-3F, relu, route, cluster};
    void* workspace = nullptr;
    must(cudaMalloc(&workspace, static_cast<size_t>(instance_norm::workspaceBytes(type, planes, area)) + 1), "cudaMalloc");
    cudaError_t const status = instance_norm::launch(p, x.data, scale.data, bias.data, y.data, workspace, nullptr);
    if (status == cudaErrorInvalidConfiguration && route != instance_norm::Route::kAuto)
    {
        cudaFree(workspace);
        return; // the route is not for this device
    }
    must(status, "instance_norm");
    std::vector<double> wanted(x.values.size());
    for (int64_t n = 0; n < planes; ++n)
    {
        double const* const v = x.values.data() + n * area;
        double mean = 0.0;
        double variance = 0.0;
        for (int64_t i = 0; i < area; ++i)
        {
            mean += v[i] / static_cast<double>(area);
        }
        for (int64_t i = 0; i < area; ++i)
        {
            variance += (v[i] - mean) * (v[i] - mean) / static_cast<double>(area);
        }
        for (int64_t i = 0; i < area; ++i)
        {
            double const value
                = (v[i] - mean) / std::sqrt(variance + 1e-3) * scale.values[n % channels] + bias.values[n % channels];
            wanted[n * area + i] = relu && value < 0.0 ? 0.0 : value;
        }
    }
    tally.add("instance_norm " + text({planes, channels, area, static_cast<int64_t>(route), cluster,
                                     static_cast<int64_t>(offset), skip}),
        type, y.error(wanted));
    cudaFree(workspace);
}

int64_t mirror(int64_t at, int64_t size)
{
    at = at < 0 ? -at : at;
    return at < size ? at : 2 * (size - 1) - at;
}

void checkPad(Tally& tally, ElementType type, int64_t planes, int64_t height, int64_t width, int32_t const (&pads)[4],
    int64_t skip, reflection_pad::Route route = reflection_pad::Route::kAuto)
{
    int64_t const outHeight = height + pads[0] + pads[2];
    int64_t const outWidth = width + pads[1] + pads[3];
    Input const x(type, planes * height * width, 6, 0.0F, skip);
    Output y(type, planes * outHeight * outWidth, skip);
    reflection_pad::Problem const p{type, planes, height, width, pads[0], pads[1], pads[2], pads[3], route};
    cudaError_t const status = reflection_pad::launch(p, x.data, y.data, nullptr);
    if (status == cudaErrorInvalidConfiguration && route != reflection_pad::Route::kAuto)
    {
        return; // the route is not for this problem
    }
    must(status, "reflection_pad");
    std::vector<double> wanted;
    for (int64_t n = 0; n < planes; ++n)
    {
        for (int64_t i = 0; i < outHeight; ++i)
        {
            for (int64_t j = 0; j < outWidth; ++j)
            {
                int64_t const row = n * height + mirror(i - pads[0], height);
                wanted.push_back(x.values[row * width + mirror(j - pads[1], width)]);
            }
        }
    }
    double const error = y.error(wanted);
    // Values are copied, so that nothing but equality will do.
    tally.add("reflection_pad " + text({planes, height, width, pads[0], pads[1], pads[2], pads[3], skip,
                                      static_cast<int64_t>(route)}),
        type, error > 0.0 ? INFINITY : 0.0);
}

void checkPool(Tally& tally, ElementType type, int64_t planes, int64_t height, int64_t width, int32_t outHeight,
    int32_t outWidth, bool maximum)
{
    Input const x(type, planes * height * width, 7, 0.0F, 0);
    Output y(type, planes * outHeight * outWidth, 0);
    adaptive_pool::Problem const p{type, planes, height, width, outHeight, outWidth, maximum};
    must(adaptive_pool::launch(p, x.data, y.data, nullptr), "adaptive_pool");
    std::vector<double> wanted;
    for (int64_t o = 0; o < planes * outHeight * outWidth; ++o)
    {
        int64_t const i = o / outWidth % outHeight;
        int64_t const j = o % outWidth;
        double const* const plane = x.values.data() + o / outWidth / outHeight * height * width;
        double value = maximum ? -INFINITY : 0.0;
        double count = 0.0;
        for (int64_t r = i * height / outHeight; r < ((i + 1) * height + outHeight - 1) / outHeight; ++r)
        {
            for (int64_t c = j * width / outWidth; c < ((j + 1) * width + outWidth - 1) / outWidth; ++c)
            {
                value = maximum ? std::fmax(value, plane[r * width + c]) : value + plane[r * width + c];
                count += 1.0;
            }
        }
        wanted.push_back(maximum ? value : value / count);
    }
    tally.add("adaptive_pool " + text({planes, height, width, outHeight, outWidth, maximum}), type, y.error(wanted));
}

// Windows of granules: every cut, rows that begin anywhere in a granule.
void checkL2Windows(Tally& tally, ElementType type, bool quick)
{
    int64_t const shapes[][3] = {{8, 5, 1}, {2, 40, 7}, {8, 3, 29}, {2, 256, 75}, {1, 512, 361}, {3, 128, 122},
        {8, 33, 1000}, {2, 264, 1024}, {8, 21, 4100}, {1, 1000, 200}, {9, 64, 57}, {1, 2048, 49}, {2, 4096, 24}};
    for (int32_t cut = 0; cut < 8; ++cut)
    {
        for (auto const& [outer, channels, inner] : shapes)
        {
            if (!quick || outer * channels * inner < 200000)
            {
                checkL2(tally, type, outer, channels, inner, cut % 3, 0, l2norm::Route::kWindows, cut % 2 == 0 ? 8 : 16, 0,
                    1 << cut / 2);
            }
        }
    }
}

// Rows of whole granules, a warp or several to each.
void checkL2Rows(Tally& tally, ElementType type, bool quick)
{
    auto const route = l2norm::Route::kPackedRows;
    for (int64_t const channels : {8, 16, 100, 256, 264, 512, 520, 768, 1000, 1024, 1536, 2048, 2056, 4096, 9000})
    {
        int32_t const cuts[][2] = {{0, 0}, {32, 256}, {64, 0}, {64, 256}, {96, 192}, {192, 384}, {256, 512}};
        for (auto const& [lanes, threads] : cuts)
        {
            checkL2(tally, type, quick ? 61 : 201, channels, 1, 0, 0, route, lanes, threads);
            checkL2(tally, type, 5, channels, 1, 1, 0, route, lanes, threads);
            checkL2(tally, type, 7, channels, 1, 2, 0, route, lanes, threads);
        }
    }
}

void checkL2Shapes(Tally& tally, ElementType type, bool quick)
{
    for (int32_t mode = 0; mode < 3; ++mode)
    {
        checkL2(tally, type, 2, 512, 361, mode, 0);
        checkL2(tally, type, 1, 256, 1444, mode, 0);
        checkL2(tally, type, 5, 128, 1, mode, 0);
    }
    int64_t const shapes[][3] = {{1, 1, 1}, {1, 3, 7}, {2, 512, 64}, {3, 17, 33}, {1, 1024, 30}, {1, 2048, 20},
        {1, 4096, 8}, {1, 5000, 6}, {2, 700, 2}, {2, 64, 3}, {3, 1000, 1}, {2, 3000, 1}, {1, 9000, 1}, {0, 4, 4},
        {2, 0, 4}, {2, 4, 0}, {1, 512, 4096}, {40, 24, 1000}};
    for (auto const& s : shapes)
    {
        if (!quick || s[0] * s[1] * s[2] < 100000)
        {
            checkL2(tally, type, s[0], s[1], s[2], 0, 0);
            checkL2(tally, type, s[0], s[1], s[2], 2, 1);
        }
    }
    // What the library chooses, and what it falls back to.
    int64_t const more[][3] = {{3, 8, 45000}, {2, 200, 9001}, {2, 500, 2002}, {40, 64, 10000}, {2, 2048, 49}, {1, 5000, 40},
        {3, 7, 333}, {5, 40, 12}, {200, 768, 1}, {200, 767, 1}, {30, 9000, 1}, {2, 70000, 1}};
    for (auto const& s : more)
    {
        if (!quick || s[0] * s[1] * s[2] < 200000)
        {
            checkL2(tally, type, s[0], s[1], s[2], 0, 0);
            checkL2(tally, type, s[0], s[1], s[2], 1, 0);
            checkL2(tally, type, s[0], s[1], s[2], 2, 0, l2norm::Route::kColumns);
            checkL2(tally, type, s[0], s[1], s[2], 0, 0, l2norm::Route::kRows);
        }
    }
    checkL2Windows(tally, type, quick);
    checkL2Rows(tally, type, quick);
}

void checkNormShapes(Tally& tally, ElementType type, bool quick)
{
    using instance_norm::Route;
    float const large = type == ElementType::kFloat32 ? 1000.0F : 8.0F;
    int64_t const areas[] = {1, 2, 3, 31, 64, 257, 1000, 1024, 4099, 16384, 20001, 65536, 262143, 263169, 1048576, 4194304};
    for (int64_t const area : areas)
    {
        if (quick && area > 300000)
        {
            continue;
        }
        int64_t const planes = area > 1000000 ? 1 : (area > 100000 ? 3 : 6);
        checkNorm(tally, type, planes, 3, area, Route::kAuto, 0, 0.0F, 0);
        checkNorm(tally, type, planes, 3, area, Route::kAuto, 0, large, 1);
        checkNorm(tally, type, planes, planes, area, Route::kBlock, 0, 1.0F, 0);
        checkNorm(tally, type, planes, 1, area, Route::kSplit, 0, large, 0);
        checkNorm(tally, type, planes, 1, area, Route::kSplitFused, 0, large, area % 2);
        for (Route const route : {Route::kWarpWide, Route::kTeam})
        {
            checkNorm(tally, type, planes, 3, area, route, 0, large, 0);
        }
        for (int32_t cluster = 2; cluster <= 16; cluster *= 2)
        {
            checkNorm(tally, type, planes, 3, area, Route::kCluster, cluster, 1.0F, area % 2);
        }
    }
    // One to eight packs to a lane, numbers of planes that leave warps over, and one plane.
    for (int64_t area = 128; area <= 2048; area *= 2)
    {
        checkNorm(tally, type, 7, 7, area, Route::kEvenWarp, 0, large, 0);
        checkNorm(tally, type, 1, 1, area, Route::kEvenWarp, 0, 0.0F, 0);
        checkNorm(tally, type, quick ? 46 : 1030, 5, area, Route::kEvenWarp, 0, -large, 0);
    }
    for (Route const route : {Route::kSplit, Route::kSplitFused})
    {
        checkNorm(tally, type, 5, 3, quick ? 100000 : 2250001, route, 0, large, 0);
        checkNorm(tally, type, quick ? 100 : 2500, 7, 9001, route, 0, large, 1);
    }
    // More planes than blocks or clusters, so that shared memory is used again.
    int64_t const part = 65000 / sizeOf(type);
    checkNorm(tally, type, quick ? 300 : 700, 3, part, Route::kBlock, 0, 1.0F, 0);
    checkNorm(tally, type, quick ? 40 : 90, 5, 8 * part + 3, Route::kCluster, 8, 1.0F, 1);
    checkNorm(tally, type, quick ? 20 : 50, 3, 16 * part, Route::kCluster, 16, large, 0);
    checkNorm(tally, type, 0, 3, 16, Route::kAuto, 0, 0.0F, 0);
    checkNorm(tally, type, 3, 3, 0, Route::kAuto, 0, 0.0F, 0);
}

void checkPadShapes(Tally& tally, ElementType type)
{
    checkPad(tally, type, 2, 6, 7, {1, 2, 3, 4}, 0);
    checkPad(tally, type, 1, 5, 9, {4, 8, 4, 8}, 0);
    checkPad(tally, type, 1, 1, 1, {0, 0, 0, 0}, 0);
    checkPad(tally, type, 0, 4, 4, {1, 1, 1, 1}, 0);
    checkPad(tally, type, 3, 0, 4, {0, 1, 0, 1}, 0);
    checkPad(tally, type, 7, 2, 3, {1, 2, 1, 2}, 0);
    for (int32_t left = 0; left < 10; ++left)
    {
        checkPad(tally, type, 3, 19, 64 + left % 3, {3, left, 1, 9 - left}, 0);
        checkPad(tally, type, 2, 33, 101, {0, left, 2, 0}, left % 2);
        using reflection_pad::Route;
        for (Route const route : {Route::kElements, Route::kGathered, Route::kGranules})
        {
            checkPad(tally, type, 3, 11, 37 + left % 5, {3, left, 1, 9 - left}, 0, route);
            checkPad(tally, type, 5, 9, 2 + left % 3, {2, 1, 8, 1}, 0, route);
        }
    }
    checkPad(tally, type, 4, 128, 128, {3, 3, 3, 3}, 0);
}

void checkPoolShapes(Tally& tally, ElementType type)
{
    int32_t const outs[][2] = {{1, 1}, {3, 3}, {7, 7}, {6, 5}, {20, 31}, {1, 9}};
    for (auto const& o : outs)
    {
        for (bool const maximum : {false, true})
        {
            checkPool(tally, type, 5, 13, 17, o[0], o[1], maximum);
            checkPool(tally, type, 2, 100, 61, o[0], o[1], maximum);
            checkPool(tally, type, 0, 4, 4, o[0], o[1], maximum);
            checkPool(tally, type, 3, 1, 1, o[0], o[1], maximum);
        }
    }
}
} // namespace
} // namespace trtconv::checks

int main(int argc, char** argv)
{
    using namespace trtconv;
    bool const quick = argc > 1 && std::strcmp(argv[1], "quick") == 0;
    checks::Tally tally;
    for (ElementType const type : {ElementType::kFloat32, ElementType::kFloat16, ElementType::kBFloat16})
    {
        checks::checkL2Shapes(tally, type, quick);
        checks::checkNormShapes(tally, type, quick);
        checks::checkPadShapes(tally, type);
        checks::checkPoolShapes(tally, type);
    }
    checks::must(cudaDeviceSynchronize(), "end");
    std::printf("%d cases, %d wrong; worst relative error fp32 %.2e, fp16 %.2e, bf16 %.2e\n", tally.cases, tally.wrong,
        tally.worst[0], tally.worst[1], tally.worst[2]);
    return tally.wrong == 0 ? 0 : 1;
}
