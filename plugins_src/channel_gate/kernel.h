// The gate of each channel of x[batch, channels, height, width] by the means of its planes: squeeze and excitation.
#pragma once

#include "common/element.h"

#include <cuda_runtime_api.h>

namespace trtconv::channel_gate
{
enum class Activation : int32_t
{
    kSilu = 0,
    kRelu = 1,
};

enum class Gate : int32_t
{
    kSigmoid = 0,
    kHardSigmoid = 1, // x / 6 + 1 / 2 within 0 and 1
};

struct Problem
{
    // Of every tensor.
    ElementType type{ElementType::kFloat32};
    int64_t batch{0};
    int64_t channels{0};
    int64_t area{0};
    int64_t hidden{0};
    Activation activation{Activation::kSilu};
    Gate gate{Gate::kSigmoid};
    // Elements from a position of an image to the next where channels lie last, in x and in y; 0 where planes are dense.
    int64_t pitch{0};
};

// Bytes of device memory that `launch` needs, for x of any layout.
int64_t workspaceBytes(int64_t batch, int64_t channels, int64_t area, int64_t hidden) noexcept;

// reduce[hidden, channels], reduceBias[hidden], expand[channels, hidden], expandBias[channels], y[batch, channels].
cudaError_t launch(Problem const& problem, void const* x, void const* reduce, void const* reduceBias, void const* expand,
    void const* expandBias, void* y, void* workspace, cudaStream_t stream);
} // namespace trtconv::channel_gate
