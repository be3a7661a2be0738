// What an op gives to the adapters: its signature, its shape rule in TensorRT's expressions, and its launch. The adapters
// know nothing else of an op, and an op nothing of plugin interfaces.
#pragma once

#include "common/element.h"
#include "common/signature.h"

#include <NvInferRuntime.h>
#include <cuda_runtime_api.h>

namespace trtconv
{
struct Op
{
    Signature const* signature;
    // An Attributes struct of the op with every default.
    void const* defaults;
    // Fills outputs[0..signature->outputs); false for inputs that the op refuses.
    bool (*shapes)(void const* attributes, nvinfer1::DimsExprs const* inputs, nvinfer1::DimsExprs* outputs,
        nvinfer1::IExprBuilder& builder);
    // Bytes of device memory for the largest inputs.
    int64_t (*workspace)(void const* attributes, TensorView const* inputs);
    cudaError_t (*enqueue)(void const* attributes, TensorView const* inputs, TensorView const* outputs, void* workspace,
        cudaStream_t stream);
    // What the op needs beside TensorRT and this process lacks, as a sentence without a full stop; null when it can run.
    char const* (*missing)(){nullptr};
    // Whether images in 16 bits may lie channels last, in packs of eight channels, as convolutions write and read them.
    bool channelsLast{false};
};

inline constexpr int32_t kMaxTensors = 8;

// All ops, in the order of trtconv/plugins/described.
extern Op const* const kOps[];
extern int32_t const kOpCount;

extern Op const kAdaptivePool;
extern Op const kAttention;
extern Op const kChannelGate;
extern Op const kDepthwiseConv;
extern Op const kDepthwiseConvLayerNorm;
extern Op const kGroupNorm;
extern Op const kInstanceNorm;
extern Op const kL2Norm;
extern Op const kLayerNorm;
extern Op const kLinear;
extern Op const kReflectionPad;
} // namespace trtconv
