// Every kernel against a float64 reference on the CPU, over shapes that are odd, small, empty, unaligned and large enough
// for each route. Needs a GPU and no TensorRT. Usage: kernel_check [quick]; exits 1 when a case is wrong.
#include "adaptive_pool/kernel.h"
#include "checks/attention_cases.h"
#include "checks/depthwise_cases.h"
#include "checks/gate_cases.h"
#include "checks/l2norm_cases.h"
#include "checks/rows_cases.h"
#include "instance_norm/kernel.h"
#include "reflection_pad/kernel.h"

namespace trtconv::checks
{
namespace
{
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
        checks::checkDepthwiseShapes(tally, type, quick);
        checks::checkAttentionShapes(tally, type, quick);
        checks::checkRows(tally, type, quick);
        checks::checkChannelGates(tally, type, quick);
    }
    checks::must(cudaDeviceSynchronize(), "end");
    std::printf("%d cases, %d wrong; worst relative error fp32 %.2e, fp16 %.2e, bf16 %.2e\n", tally.cases, tally.wrong,
        tally.worst[0], tally.worst[1], tally.worst[2]);
    return tally.wrong == 0 ? 0 : 1;
}
