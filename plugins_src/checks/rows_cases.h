// What computes with rows of tokens: products, normalisation of rows and images, and depthwise convolution of rows as an
// image.
#pragma once

#include "checks/tally.h"
#include "depthwise_conv/kernel.h"
#include "group_norm/kernel.h"
#include "layer_norm/kernel.h"
#include "linear/kernel.h"

namespace trtconv::checks
{
inline double geluReference(double x)
{
    return 0.5 * x * std::erfc(-x / std::sqrt(2.0));
}

inline double geluTangentReference(double x)
{
    return 0.5 * x * (1.0 + std::tanh(std::sqrt(2.0 / 3.14159265358979) * (x + 0.044715 * x * x * x)));
}

inline void checkLinear(Tally& tally, ElementType type, linear::Problem p, int64_t skip)
{
    p.type = type;
    Input const x(type, p.rows * p.depth, 1, 0.0F, skip);
    Input const weight(type, p.columns * p.depth, 2, 0.0F, skip);
    Input const bias(type, p.columns, 3, 0.0F, 0);
    Input const addend(type, p.rows * p.columns, 4, 0.0F, skip);
    Output y(type, p.rows * p.columns, skip);
    void* workspace = nullptr;
    must(cudaMalloc(&workspace, linear::kWorkspaceBytes), "cudaMalloc");
    must(linear::launch(p, x.data, weight.data, bias.data, addend.data, y.data, workspace, nullptr), "linear");
    std::vector<double> expected;
    for (int64_t row = 0; row < p.rows; ++row)
    {
        for (int64_t column = 0; column < p.columns; ++column)
        {
            double sum = bias.values[column] + (p.added ? addend.values[row * p.columns + column] : 0.0);
            for (int64_t k = 0; k < p.depth; ++k)
            {
                sum += x.values[row * p.depth + k] * weight.values[column * p.depth + k];
            }
            bool const exact = p.activation == linear::Activation::kGelu;
            bool const tangent = p.activation == linear::Activation::kGeluTangent;
            expected.push_back(exact ? geluReference(sum) : tangent ? geluTangentReference(sum) : sum);
        }
    }
    double const error = y.error(expected);
    auto const name = "linear " + text({p.rows, p.depth, p.columns, static_cast<int64_t>(p.activation), p.added, skip});
    if (p.tf32 && type == ElementType::kFloat32)
    {
        tally.addTf32(name, error);
    }
    else
    {
        tally.add(name, type, error);
    }
    cudaFree(workspace);
}

inline void checkLayerNorm(Tally& tally, ElementType type, int64_t rows, int64_t channels, float offset, int64_t skip)
{
    Input const x(type, rows * channels, 1, offset, skip);
    Input const scale(type, channels, 2, 1.0F, 0);
    Input const shift(type, channels, 3, 0.0F, 0);
    Output y(type, rows * channels, skip);
    layer_norm::Problem const p{type, rows, channels, 1e-3F};
    must(layer_norm::launch(p, x.data, scale.data, shift.data, y.data, nullptr), "layer_norm");
    std::vector<double> expected;
    for (int64_t row = 0; row < rows; ++row)
    {
        double const* const v = x.values.data() + row * channels;
        double mean = 0.0;
        double variance = 0.0;
        for (int64_t c = 0; c < channels; ++c)
        {
            mean += v[c] / static_cast<double>(channels);
        }
        for (int64_t c = 0; c < channels; ++c)
        {
            variance += (v[c] - mean) * (v[c] - mean) / static_cast<double>(channels);
        }
        for (int64_t c = 0; c < channels; ++c)
        {
            expected.push_back((v[c] - mean) / std::sqrt(variance + 1e-3) * scale.values[c] + shift.values[c]);
        }
    }
    tally.add("layer_norm " + text({rows, channels, static_cast<int64_t>(offset), skip}), type, y.error(expected));
}

inline void checkConvolution(
    Tally& tally, ElementType type, int64_t batch, int64_t height, int64_t width, int64_t channels, bool gelu, int64_t skip)
{
    int64_t const count = batch * height * width * channels;
    Input const x(type, count, 1, 0.0F, skip);
    Input const weight(type, 9 * channels, 2, 0.0F, 0);
    Input const bias(type, channels, 3, 0.0F, 0);
    Output y(type, count, skip);
    depthwise_conv::Problem const p{type, batch, height, width, channels, gelu};
    must(depthwise_conv::launch(p, x.data, weight.data, bias.data, y.data, nullptr), "depthwise_conv");
    std::vector<double> expected;
    for (int64_t at = 0; at < count; ++at)
    {
        int64_t const c = at % channels;
        int64_t const column = at / channels % width;
        int64_t const row = at / channels / width % height;
        double sum = bias.values[c];
        for (int64_t k = 0; k < 9; ++k)
        {
            int64_t const i = row + k / 3 - 1;
            int64_t const j = column + k % 3 - 1;
            if (i >= 0 && i < height && j >= 0 && j < width)
            {
                sum += x.values[at + ((i - row) * width + j - column) * channels] * weight.values[k * channels + c];
            }
        }
        expected.push_back(gelu ? geluReference(sum) : sum);
    }
    tally.add("depthwise_conv " + text({batch, height, width, channels, gelu, skip}), type, y.error(expected));
}

inline void checkGroupNorm(Tally& tally, ElementType type, int64_t batch, int64_t height, int64_t width, int64_t channels,
    bool mixed, float offset, int64_t skip)
{
    int64_t const count = height * width * channels;
    Input const x(type, batch * count, 1, offset, skip);
    Input const scale(type, channels, 2, 1.0F, 0);
    Input const shift(type, channels, 3, 0.0F, 0);
    std::vector<double> expected;
    for (int64_t n = 0; n < batch; ++n)
    {
        double const* const v = x.values.data() + n * count;
        double mean = 0.0;
        double variance = 0.0;
        for (int64_t i = 0; i < count; ++i)
        {
            mean += v[i] / static_cast<double>(count);
        }
        for (int64_t i = 0; i < count; ++i)
        {
            variance += (v[i] - mean) * (v[i] - mean) / static_cast<double>(count);
        }
        double const inverse = 1.0 / std::sqrt(variance + 1e-3);
        for (int64_t at = 0; at < count; ++at)
        {
            int64_t const c = at % channels;
            int64_t const column = at / channels % width;
            int64_t const row = at / channels / width;
            double sum = 0.0;
            double inside = 0.0;
            for (int64_t k = 0; k < 9; ++k)
            {
                int64_t const i = row + k / 3 - 1;
                int64_t const j = column + k % 3 - 1;
                if (i >= 0 && i < height && j >= 0 && j < width)
                {
                    sum += v[(i * width + j) * channels + c] - v[at];
                    inside += 1.0;
                }
            }
            expected.push_back(mixed ? v[at] + sum / inside * inverse * scale.values[c]
                                     : (v[at] - mean) * inverse * scale.values[c] + shift.values[c]);
        }
    }
    using group_norm::Route;
    void* workspace = nullptr;
    must(cudaMalloc(&workspace, static_cast<size_t>(group_norm::workspaceBytes(batch)) + 1), "cudaMalloc");
    for (Route const route : {Route::kAuto, Route::kImages, Route::kParts, Route::kPartsInTurn})
    {
        Output y(type, batch * count, skip);
        group_norm::Problem const p{type, batch, height, width, channels, 1e-3F, mixed, route};
        must(group_norm::launch(p, x.data, scale.data, shift.data, y.data, workspace, nullptr), "group_norm");
        tally.add("group_norm " + text({batch, height, width, channels, mixed, static_cast<int64_t>(offset), skip,
                      static_cast<int64_t>(route)}),
            type, y.error(expected));
    }
    cudaFree(workspace);
}

inline void checkGroupNorms(Tally& tally, ElementType type, bool quick, float offset)
{
    for (bool const mixed : {false, true})
    {
        // One image and several, of each number of packs to a thread, too large for registers, of odd sizes and of none.
        checkGroupNorm(tally, type, 1, 56, 56, 64, mixed, offset, 0);
        checkGroupNorm(tally, type, 5, 28, 28, 128, mixed, 0.0F, 0);
        checkGroupNorm(tally, type, 8, 14, 14, 320, mixed, offset, 0);
        checkGroupNorm(tally, type, 3, 7, 7, 512, mixed, 0.0F, 1);
        checkGroupNorm(tally, type, 1, quick ? 40 : 160, 112, 64, mixed, 0.0F, 0);
        checkGroupNorm(tally, type, 1, quick ? 61 : 161, 113, 24, mixed, offset, 0);
        checkGroupNorm(tally, type, 1, 1, 129, 40, mixed, offset, 1);
        checkGroupNorm(tally, type, 1, 33, 1, 8, mixed, offset, 0);
        checkGroupNorm(tally, type, 1, 7, 7, 512, mixed, offset, 0);
        checkGroupNorm(tally, type, 2, 9, 5, 7, mixed, 0.0F, 0);
        checkGroupNorm(tally, type, 3, 1, 1, 8, mixed, 0.0F, 0);
        checkGroupNorm(tally, type, 1, 2, 3, 16, mixed, offset, 0);
        checkGroupNorm(tally, type, 0, 4, 4, 8, mixed, 0.0F, 0);
        checkGroupNorm(tally, type, quick ? 20 : 300, 7, 7, 64, mixed, 0.0F, 0);
    }
}

inline void checkRows(Tally& tally, ElementType type, bool quick)
{
    using linear::Activation;
    for (Activation const activation : {Activation::kNone, Activation::kGelu, Activation::kGeluTangent})
    {
        for (bool const added : {false, true})
        {
            // Of one row, of sizes that no access of 16 bytes divides, and of none.
            for (linear::Problem const& p : {linear::Problem{type, 1, 64, 128}, {type, 197, 96, 288}, {type, 33, 7, 5},
                     {type, 50, 130, 66}, {type, 0, 8, 8}, {type, quick ? 40 : 1576, 192, 64}})
            {
                linear::Problem problem = p;
                problem.activation = activation;
                problem.added = added;
                checkLinear(tally, type, problem, 0);
                checkLinear(tally, type, problem, 1);
                problem.tf32 = true;
                checkLinear(tally, type, problem, 0);
            }
        }
    }
    float const offset = type == ElementType::kFloat32 ? 300.0F : 8.0F;
    for (int64_t const channels : {1, 7, 32, 64, 96, 130, 192, 320, 384, 768, 1000, 1024, 2048, 2056, 5000})
    {
        checkLayerNorm(tally, type, 1, channels, 0.0F, 0);
        checkLayerNorm(tally, type, 37, channels, channels > 1 ? offset : 0.0F, 0);
        checkLayerNorm(tally, type, 5, channels, 0.0F, 1);
    }
    checkLayerNorm(tally, type, 0, 64, 0.0F, 0);
    checkGroupNorms(tally, type, quick, offset);
    for (bool const gelu : {false, true})
    {
        checkConvolution(tally, type, 2, 14, 14, 64, gelu, 0);
        checkConvolution(tally, type, 1, 7, 5, 24, gelu, 0);
        checkConvolution(tally, type, 3, 1, 9, 7, gelu, 0);
        checkConvolution(tally, type, 1, 6, 1, 16, gelu, 1);
        checkConvolution(tally, type, 0, 4, 4, 8, gelu, 0);
    }
}
} // namespace trtconv::checks
