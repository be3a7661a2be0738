// Attention of all head sizes, with rows of one tensor and of three, and with biases of every form.
#pragma once

#include "attention/kernel.h"
#include "checks/tally.h"

namespace trtconv::checks
{
inline std::vector<double> attentionReference(attention::Problem const& p, std::vector<double> const& query,
    std::vector<double> const& key, std::vector<double> const& value, std::vector<double> const& bias)
{
    std::vector<double> y(static_cast<size_t>(p.batch * p.queries * p.heads * p.size));
    std::vector<double> scores(static_cast<size_t>(p.keys));
    for (int64_t line = 0; line < p.batch * p.heads * p.queries; ++line)
    {
        int64_t const row = line % p.queries;
        int64_t const head = line / p.queries % p.heads;
        int64_t const element = line / p.queries / p.heads;
        int64_t const ofHead = (element % p.bias[0] * p.bias[1] + (p.bias[1] > 1 ? head : 0)) * p.bias[2];
        double const* const biases = bias.data() + (ofHead + (p.bias[2] > 1 ? row : 0)) * p.bias[3];
        double const* const q = query.data() + (element * p.queries + row) * p.widths[0] + p.offsets[0] + head * p.size;
        double largest = -HUGE_VAL;
        for (int64_t j = 0; j < p.keys; ++j)
        {
            double const* const k = key.data() + (element * p.keys + j) * p.widths[1] + p.offsets[1] + head * p.size;
            double sum = 0.0;
            for (int32_t i = 0; i < p.size; ++i)
            {
                sum += q[i] * k[i];
            }
            scores[j] = p.scale * sum + biases[p.bias[3] > 1 ? j : 0];
            largest = std::max(largest, scores[j]);
        }
        double total = 0.0;
        double* const to = y.data() + (element * p.queries + row) * p.heads * p.size + head * p.size;
        for (int64_t j = 0; j < p.keys; ++j)
        {
            double const weight = std::exp(scores[j] - largest);
            double const* const v = value.data() + (element * p.keys + j) * p.widths[2] + p.offsets[2] + head * p.size;
            total += weight;
            for (int32_t i = 0; i < p.size; ++i)
            {
                to[i] += weight * v[i];
            }
        }
        for (int32_t i = 0; i < p.size; ++i)
        {
            to[i] = p.keys > 0 ? to[i] / total : 0.0;
        }
    }
    return y;
}

// `packed` rows hold query, key and value beside one another; `skip` elements lie before each tensor.
inline void checkAttention(Tally& tally, ElementType type, int64_t batch, int64_t queries, int64_t keys, int32_t heads,
    int32_t size, std::vector<int64_t> const& bias, bool packed, int64_t skip, bool tf32 = false)
{
    int64_t const width = int64_t{heads} * size;
    attention::Problem p;
    p.type = type;
    p.batch = batch;
    p.queries = queries;
    p.keys = keys;
    p.heads = heads;
    p.size = size;
    p.scale = 1.0F / std::sqrt(static_cast<float>(size));
    p.tf32 = tf32;
    for (int i = 0; i < 3; ++i)
    {
        p.widths[i] = packed ? 3 * width : width;
        p.offsets[i] = packed ? i * width : 0;
    }
    std::copy(bias.begin(), bias.end(), p.bias);
    Input const query(type, batch * queries * p.widths[0], 1, 0.0F, skip);
    Input const key(type, packed ? 0 : batch * keys * width, 2, 0.0F, skip);
    Input const value(type, packed ? 0 : batch * keys * width, 3, 0.0F, skip);
    Input const summand(type, bias[0] * bias[1] * bias[2] * bias[3], 4, 0.0F, skip);
    Output y(type, batch * queries * width, skip);
    must(attention::launch(p, query.data, packed ? query.data : key.data, packed ? query.data : value.data, summand.data,
             y.data, nullptr),
        "attention");
    auto const& k = packed ? query.values : key.values;
    auto const& v = packed ? query.values : value.values;
    auto const name = "attention " + text({batch, queries, keys, heads, size, bias[0], bias[1], bias[2], bias[3], packed, skip});
    double const error = y.error(attentionReference(p, query.values, k, v, summand.values));
    if (tf32)
    {
        tally.addTf32(name, error);
    }
    else
    {
        tally.add(name, type, error);
    }
}

inline void checkAttentionShapes(Tally& tally, ElementType type, bool quick)
{
    for (int32_t const size : {1, 5, 8, 17, 24, 32, 40, 64, 72, 96, 127, 128})
    {
        for (int64_t const queries : {1, 49, 65})
        {
            for (int64_t const keys : {1, 33, 64, 129})
            {
                checkAttention(tally, type, 6, queries, keys, 3, size, {3, 1, queries, keys}, false, 0);
            }
            checkAttention(tally, type, 4, queries, queries, 2, size, {2, 2, 1, queries}, true, 0);
            checkAttention(tally, type, 2, queries, queries, 2, size, {1, 2, queries, queries}, true, 1); // unaligned
        }
    }
    if (type == ElementType::kFloat32)
    {
        for (int32_t const size : {5, 32, 64, 96})
        {
            checkAttention(tally, type, 4, 65, 65, 2, size, {2, 2, 65, 65}, true, 0, true);
            checkAttention(tally, type, 2, 49, 129, 2, size, {1, 1, 1, 129}, false, 1, true);
        }
    }
    checkAttention(tally, type, 0, 4, 4, 2, 32, {1, 1, 1, 1}, true, 0);
    checkAttention(tally, type, 2, 0, 4, 2, 32, {1, 1, 1, 1}, false, 0);
    checkAttention(tally, type, 2, 4, 0, 2, 32, {1, 1, 1, 1}, false, 0);
    checkAttention(tally, type, quick ? 16 : 128, 49, 49, 3, 32, {16, 3, 49, 49}, true, 0);
    checkAttention(tally, type, quick ? 1 : 4, 300, 1100, 2, 64, {1, 1, 1, 1}, false, 0);
}
} // namespace trtconv::checks
