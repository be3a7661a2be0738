// activation(x[rows, depth] weight[columns, depth]^T + bias[columns] + addend[rows, columns]) by cuBLASLt, sums in float32.
#pragma once

#include "common/element.h"

#include <cuda_runtime_api.h>

namespace trtconv::linear
{
enum class Activation : int32_t
{
    kNone = 0,
    kGelu = 1,        // by the error function
    kGeluTangent = 2, // by the hyperbolic tangent
};

struct Problem
{
    // Of every tensor.
    ElementType type{ElementType::kFloat32};
    int64_t rows{0};
    int64_t depth{0};
    int64_t columns{0};
    Activation activation{Activation::kNone};
    bool added{false};
    // Operands in float32 may be rounded to TF32.
    bool tf32{false};
};

// What cuBLASLt's documentation recommends for Hopper.
inline constexpr int64_t kWorkspaceBytes = int64_t{32} << 20;

// Whether cuBLASLt is on the loader's path and works on the current device.
bool hasLibrary() noexcept;

// `addend` is not read unless the problem says so.
cudaError_t launch(Problem const& problem, void const* x, void const* weight, void const* bias, void const* addend, void* y,
    void* workspace, cudaStream_t stream);
} // namespace trtconv::linear
