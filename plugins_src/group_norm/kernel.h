// Normalisation of each image x[height, width, channels] of a batch as one group, with a scale and a shift to each channel;
// or x plus what an average over 3 x 3 neighbours changes of it, which is how PoolFormer mixes tokens.
#pragma once

#include "common/element.h"

#include <cuda_runtime_api.h>

namespace trtconv::group_norm
{
struct Problem
{
    // Of every tensor.
    ElementType type{ElementType::kFloat32};
    int64_t batch{0};
    int64_t height{0};
    int64_t width{0};
    int64_t channels{0};
    float epsilon{1e-5F};
    // y = x + (mean of the neighbours of u - u) * scale, u being x normalised, in place of y = u * scale + shift.
    bool mixed{false};
};

// scale[channels], shift[channels]; the shift is not read where neighbours are mixed.
cudaError_t launch(
    Problem const& problem, void const* x, void const* scale, void const* shift, void* y, cudaStream_t stream);
} // namespace trtconv::group_norm
