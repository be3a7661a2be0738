// Layer normalisation of x[rows, channels] over its channels.
#pragma once

#include "common/element.h"

#include <cuda_runtime_api.h>

namespace trtconv::layer_norm
{
struct Problem
{
    // Of every tensor.
    ElementType type{ElementType::kFloat32};
    int64_t rows{0};
    int64_t channels{0};
    float epsilon{1e-5F};
};

// scale[channels], shift[channels].
cudaError_t launch(
    Problem const& problem, void const* x, void const* scale, void const* shift, void* y, cudaStream_t stream);
} // namespace trtconv::layer_norm
