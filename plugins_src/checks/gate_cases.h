// The gates of channels, of planes that are dense and of channels that lie last.
#pragma once

#include "channel_gate/kernel.h"
#include "checks/tally.h"

namespace trtconv::checks
{
inline double sigmoidReference(double x)
{
    return 1.0 / (1.0 + std::exp(-x));
}

// `pitch` 0: planes; else channels last, of which those beyond `channels` are no part of the image.
inline void checkChannelGate(Tally& tally, ElementType type, channel_gate::Problem p, float offset, int64_t skip)
{
    p.type = type;
    int64_t const positions = p.pitch == 0 ? p.channels : p.pitch;
    Input const x(type, p.batch * p.area * positions, 1, offset, skip);
    Input const reduce(type, p.hidden * p.channels, 2, 0.0F, skip);
    Input const reduceBias(type, p.hidden, 3, 0.0F, 0);
    Input const expand(type, p.channels * p.hidden, 4, 0.0F, 0);
    Input const expandBias(type, p.channels, 5, 0.0F, skip);
    Output y(type, p.batch * positions, skip);
    void* workspace = nullptr;
    must(cudaMalloc(&workspace, static_cast<size_t>(channel_gate::workspaceBytes(p.batch, p.channels, p.area, p.hidden)) + 1),
        "cudaMalloc");
    must(channel_gate::launch(
             p, x.data, reduce.data, reduceBias.data, expand.data, expandBias.data, y.data, workspace, nullptr),
        "channel_gate");
    std::vector<double> expected;
    for (int64_t n = 0; n < p.batch; ++n)
    {
        std::vector<double> hidden(reduceBias.values);
        for (int64_t c = 0; c < p.channels; ++c)
        {
            double mean = 0.0;
            for (int64_t at = 0; at < p.area; ++at)
            {
                mean += x.values[p.pitch == 0 ? (n * p.channels + c) * p.area + at : (n * p.area + at) * p.pitch + c];
            }
            for (int64_t r = 0; r < p.hidden; ++r)
            {
                hidden[r] += mean / static_cast<double>(p.area) * reduce.values[r * p.channels + c];
            }
        }
        for (double& value : hidden)
        {
            value = p.activation == channel_gate::Activation::kSilu ? value * sigmoidReference(value) : std::fmax(value, 0.0);
        }
        for (int64_t c = 0; c < positions; ++c)
        {
            double sum = c < p.channels ? expandBias.values[c] : 0.0;
            for (int64_t r = 0; c < p.channels && r < p.hidden; ++r)
            {
                sum += hidden[r] * expand.values[c * p.hidden + r];
            }
            double const gate = p.gate == channel_gate::Gate::kSigmoid ? sigmoidReference(sum)
                                                                       : std::fmin(std::fmax(sum / 6.0 + 0.5, 0.0), 1.0);
            expected.push_back(c < p.channels ? gate : 0.0);
        }
    }
    tally.add("channel_gate " + text({p.batch, p.channels, p.area, p.hidden, p.pitch, static_cast<int64_t>(p.activation),
                  static_cast<int64_t>(p.gate), static_cast<int64_t>(offset), skip}),
        type, y.error(expected));
    cudaFree(workspace);
}

inline void checkChannelGates(Tally& tally, ElementType type, bool quick)
{
    using channel_gate::Activation;
    using channel_gate::Gate;
    using channel_gate::Problem;
    for (Gate const gate : {Gate::kSigmoid, Gate::kHardSigmoid})
    {
        for (Activation const activation : {Activation::kSilu, Activation::kRelu})
        {
            // Of each way to sum planes, of odd sizes, of one position, and of none.
            for (Problem const& size : {Problem{type, 2, 32, quick ? 4600 : 12544, 8}, Problem{type, 1, 96, 3136, 4},
                     Problem{type, 3, 40, 784, 10}, Problem{type, 2, 1152, 49, 48}, Problem{type, 5, 7, 33, 3},
                     Problem{type, 1, 18, 1, 1}, Problem{type, 2, 96, 1, 24}, Problem{type, 2, 4360, 4, 5},
                     Problem{type, 1, 2504, 9, 66}, Problem{type, 0, 8, 16, 2}, Problem{type, 1, 5, 5001, 2}})
            {
                Problem p = size;
                p.gate = gate;
                p.activation = activation;
                checkChannelGate(tally, type, p, 0.0F, 0);
                checkChannelGate(tally, type, p, 0.0F, 1);
                if (type != ElementType::kFloat32)
                {
                    p.pitch = (p.channels + 7) / 8 * 8;
                    checkChannelGate(tally, type, p, 0.0F, 0);
                    checkChannelGate(tally, type, p, 0.0F, 1);
                }
            }
        }
    }
}
} // namespace trtconv::checks
