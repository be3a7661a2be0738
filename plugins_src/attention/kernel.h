// Attention of several heads over tensors [batch, length, width] of which each head has some neighbouring columns:
// softmax(scale * query key^T + bias) value, head beside head in the result.
#pragma once

#include "common/element.h"

#include <cuda_runtime_api.h>

namespace trtconv::attention
{
// The most columns of a head.
inline constexpr int32_t kLargestHead = 128;

struct Problem
{
    // Of every tensor.
    ElementType type{ElementType::kFloat32};
    int64_t batch{0};
    // Rows of the query, and of key and value.
    int64_t queries{0};
    int64_t keys{0};
    int32_t heads{0};
    // Columns of a head.
    int32_t size{0};
    float scale{1};
    // Operands in float32 may be rounded to TF32.
    bool tf32{false};
    // Columns of the tensors, and the first one that is used. Tensors may be one and the same.
    int64_t widths[3]{};
    int64_t offsets[3]{};
    // bias[groups, heads or 1, queries or 1, keys or 1]; the batch is a multiple of the groups, and its element b has the
    // bias of group b % groups.
    int64_t bias[4]{1, 1, 1, 1};
};

// query, key, value, bias and y[batch, queries, heads * size].
cudaError_t launch(Problem const& problem, void const* query, void const* key, void const* value, void const* bias, void* y,
    cudaStream_t stream);
} // namespace trtconv::attention
