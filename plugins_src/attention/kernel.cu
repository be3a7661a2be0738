// Which form of the kernel takes a problem.
#include "attention/kernel.h"

#include "attention/blocks.cuh"
#include "common/device.h"

#include <algorithm>

namespace trtconv::attention
{
namespace
{
struct Tensors
{
    void const* inputs[3];
    void const* bias;
    void* y;
};

// Whether all rows of all heads begin where 16 bytes may be moved at once.
bool movesVectors(Problem const& p, Tensors const& t)
{
    int64_t const width = 16 / sizeOf(p.type);
    bool whole = p.size % width == 0 && reinterpret_cast<uint64_t>(t.y) % 16 == 0;
    for (int i = 0; i < 3; ++i)
    {
        whole = whole && p.widths[i] % width == 0 && p.offsets[i] % width == 0
            && reinterpret_cast<uint64_t>(t.inputs[i]) % 16 == 0;
    }
    return whole;
}

template <typename T, int D>
cudaError_t launchTyped(Problem const& p, Tensors const& t, cudaStream_t stream)
{
    int64_t const tiles = ceilDiv(p.queries, kRows);
    int64_t const count = p.batch * p.heads * tiles;
    int64_t const biasSize = p.bias[0] * p.bias[1] * p.bias[2] * p.bias[3];
    int64_t const widest = std::max({p.widths[0], p.widths[1], p.widths[2], p.queries, p.keys, biasSize});
    if (count > kMaxGrid || widest > kMaxGrid)
    {
        return cudaErrorInvalidConfiguration;
    }
    auto const narrow = [](int64_t number) { return static_cast<int32_t>(number); };
    auto const step = [&](int axis, int64_t elements) { return p.bias[axis] == 1 ? 0 : narrow(elements); };
    Layout const layout{Divider(tiles), Divider(p.heads), Divider(p.bias[0]), p.size, narrow(p.queries), narrow(p.keys),
        {narrow(p.widths[0]), narrow(p.widths[1]), narrow(p.widths[2])},
        {narrow(p.offsets[0]), narrow(p.offsets[1]), narrow(p.offsets[2])}, narrow(p.bias[1] * p.bias[2] * p.bias[3]),
        step(1, p.bias[2] * p.bias[3]), step(2, p.bias[3]), step(3, 1), narrow(biasSize),
        p.bias[2] == p.queries && p.bias[3] == p.keys && reinterpret_cast<uint64_t>(t.bias) % 16 == 0, p.scale};
    auto const run = [&](auto kernel) {
        kernel<<<static_cast<uint32_t>(count), 32 * kWarps, 0, stream>>>(static_cast<T const*>(t.inputs[0]),
            static_cast<T const*>(t.inputs[1]), static_cast<T const*>(t.inputs[2]), static_cast<T const*>(t.bias),
            static_cast<T*>(t.y), layout);
        return cudaGetLastError();
    };
    bool const vectors = movesVectors(p, t);
    if constexpr (sizeof(T) == 4)
    {
        if (p.tf32)
        {
            return vectors ? run(blocks<T, D, true, false>) : run(blocks<T, D, false, false>);
        }
    }
    return vectors ? run(blocks<T, D, true>) : run(blocks<T, D, false>);
}

template <typename T>
cudaError_t dispatchSize(Problem const& p, Tensors const& t, cudaStream_t stream)
{
    if (p.size <= 32)
    {
        return launchTyped<T, 32>(p, t, stream);
    }
    return p.size <= 64 ? launchTyped<T, 64>(p, t, stream) : launchTyped<T, kLargestHead>(p, t, stream);
}

bool isOneOr(int64_t value, int64_t other)
{
    return value == 1 || value == other;
}
} // namespace

cudaError_t launch(Problem const& problem, void const* query, void const* key, void const* value, void const* bias, void* y,
    cudaStream_t stream)
{
    Problem const& p = problem;
    bool valid = p.batch >= 0 && p.queries >= 0 && p.keys >= 0 && p.heads > 0 && p.size > 0 && p.size <= kLargestHead
        && p.bias[0] > 0 && p.batch % p.bias[0] == 0 && isOneOr(p.bias[1], p.heads) && isOneOr(p.bias[2], p.queries)
        && isOneOr(p.bias[3], p.keys);
    for (int i = 0; i < 3; ++i)
    {
        valid = valid && p.offsets[i] >= 0 && p.offsets[i] + int64_t{p.heads} * p.size <= p.widths[i];
    }
    if (!valid)
    {
        return cudaErrorInvalidValue;
    }
    if (p.batch == 0 || p.queries == 0)
    {
        return cudaSuccess;
    }
    return dispatchElement(
        p.type, [&](auto element) { return dispatchSize<decltype(element)>(p, {{query, key, value}, bias, y}, stream); });
}
} // namespace trtconv::attention
