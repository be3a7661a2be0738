// Depthwise convolutions with their layer normalisation, by every tile.
#pragma once

#include "checks/tally.h"
#include "depthwise_conv_layer_norm/kernel.h"

namespace trtconv::checks
{
struct DepthwiseShape
{
    int64_t batch;
    int64_t height;
    int64_t width;
    int64_t channels;
};

inline std::vector<double> depthwiseReference(DepthwiseShape const& s, int32_t size, double epsilon,
    std::vector<double> const& x, std::vector<double> const (&parameters)[4])
{
    auto const& [weight, bias, scale, shift] = parameters;
    std::vector<double> y(x.size());
    for (int64_t position = 0; position < s.batch * s.height * s.width; ++position)
    {
        int64_t const column = position % s.width;
        int64_t const row = position / s.width % s.height;
        double* const to = y.data() + position * s.channels;
        double mean = 0.0;
        double variance = 0.0;
        for (int64_t c = 0; c < s.channels; ++c)
        {
            to[c] = bias[c];
            for (int64_t k = 0; k < int64_t{size} * size; ++k)
            {
                int64_t const i = row + k / size - size / 2;
                int64_t const j = column + k % size - size / 2;
                if (i >= 0 && i < s.height && j >= 0 && j < s.width)
                {
                    to[c] += x[(position + (i - row) * s.width + j - column) * s.channels + c] * weight[k * s.channels + c];
                }
            }
            mean += to[c] / static_cast<double>(s.channels);
        }
        for (int64_t c = 0; c < s.channels; ++c)
        {
            variance += (to[c] - mean) * (to[c] - mean) / static_cast<double>(s.channels);
        }
        for (int64_t c = 0; c < s.channels; ++c)
        {
            to[c] = (to[c] - mean) / std::sqrt(variance + epsilon) * scale[c] + shift[c];
        }
    }
    return y;
}

inline void checkDepthwise(Tally& tally, ElementType type, DepthwiseShape const& s, int32_t size, float offset, int64_t skip,
    int32_t tile = 0, int32_t groups = 0)
{
    int64_t const count = s.batch * s.height * s.width * s.channels;
    Input const x(type, count, 1, 0.0F, skip);
    Input const weight(type, size * size * s.channels, 2, 0.0F, 0);
    Input const bias(type, s.channels, 3, offset, 0);
    Input const scale(type, s.channels, 4, 1.0F, 0);
    Input const shift(type, s.channels, 5, 0.0F, 0);
    Output y(type, count, skip);
    depthwise_conv_layer_norm::Problem const p{
        type, s.batch, s.height, s.width, s.channels, size, 1e-3F, tile, groups};
    cudaError_t const status = depthwise_conv_layer_norm::launch(
        p, x.data, weight.data, bias.data, scale.data, shift.data, y.data, nullptr);
    if (status == cudaErrorInvalidConfiguration && tile != 0)
    {
        return; // the tile is not for this problem
    }
    must(status, "depthwise_conv_layer_norm");
    std::vector<double> const parameters[4] = {weight.values, bias.values, scale.values, shift.values};
    tally.add("depthwise_conv_layer_norm "
            + text({s.batch, s.height, s.width, s.channels, size, static_cast<int64_t>(offset), skip, tile, groups}),
        type, y.error(depthwiseReference(s, size, 1e-3, x.values, parameters)));
}

inline void checkDepthwiseShapes(Tally& tally, ElementType type, bool quick)
{
    DepthwiseShape const shapes[] = {{1, 1, 1, 1}, {2, 7, 7, 768}, {1, 14, 14, 384}, {3, 5, 9, 96}, {1, 9, 16, 192},
        {2, 3, 11, 33}, {1, 4, 5, 1022}, {1, 2, 3, 1023}, {1, 3, 3, 2048}, {1, 2, 70, 8}, {5, 6, 1, 20}, {0, 4, 4, 8},
        {2, 0, 4, 8}};
    for (auto const& s : shapes)
    {
        for (int32_t const size : {3, 5, 7})
        {
            checkDepthwise(tally, type, s, size, 0.0F, 0);
        }
        for (int32_t tile = 1; tile <= 4; ++tile)
        {
            for (int32_t const groups : {1, 3})
            {
                checkDepthwise(tally, type, s, 7, 0.0F, 0, tile, groups);
            }
        }
        if (s.channels < 1024)
        {
            checkDepthwise(tally, type, s, 7, 0.0F, 1); // unaligned
        }
    }
    // Means far from zero, and enough tiles for the larger ones to be chosen.
    float const offset = type == ElementType::kFloat32 ? 300.0F : 8.0F;
    checkDepthwise(tally, type, {2, 13, 15, 96}, 7, offset, 0);
    checkDepthwise(tally, type, quick ? DepthwiseShape{1, 28, 28, 96} : DepthwiseShape{8, 56, 56, 96}, 7, 0.0F, 0);
    checkDepthwise(tally, type, quick ? DepthwiseShape{1, 28, 28, 192} : DepthwiseShape{8, 28, 28, 192}, 5, 0.0F, 0);
}
} // namespace trtconv::checks
