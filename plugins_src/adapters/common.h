// What both plugin interfaces need: types and formats, tensor views, and the launch with its error message.
#pragma once

#include "adapters/attributes.h"
#include "adapters/log.h"

#include <string>

namespace trtconv
{
inline ElementType elementOf(nvinfer1::DataType type) noexcept
{
    switch (type)
    {
    case nvinfer1::DataType::kFLOAT: return ElementType::kFloat32;
    case nvinfer1::DataType::kHALF: return ElementType::kFloat16;
#if NV_TENSORRT_MAJOR >= 10
    case nvinfer1::DataType::kBF16: return ElementType::kBFloat16;
#endif
    default: return ElementType::kUnsupported;
    }
}

template <typename Dims>
TensorView viewOf(nvinfer1::DataType type, Dims const& dims, void const* data) noexcept
{
    TensorView view;
    view.data = const_cast<void*>(data);
    view.type = elementOf(type);
    view.rank = dims.nbDims < kMaxRank ? dims.nbDims : kMaxRank;
    for (int32_t i = 0; i < view.rank; ++i)
    {
        view.dims[i] = dims.d[i];
    }
    return view;
}

inline constexpr int32_t kImageRank = 4;
inline constexpr int64_t kPackedChannels = 8;

// With the tensor's format.
inline TensorView viewOf(nvinfer1::PluginTensorDesc const& desc, void const* data) noexcept
{
    TensorView view = viewOf(desc.type, desc.dims, data);
    if (desc.format == nvinfer1::TensorFormat::kHWC8)
    {
        view.pitch = (view.dims[1] + kPackedChannels - 1) / kPackedChannels * kPackedChannels;
    }
    return view;
}

// Whether a tensor may have its format: an image the first input's, which the op allows, others are row-major.
inline bool supportsFormat(Op const& op, nvinfer1::PluginTensorDesc const& desc, nvinfer1::PluginTensorDesc const& first) noexcept
{
    bool const isImage = op.channelsLast && desc.dims.nbDims == kImageRank;
    return isImage && first.format == nvinfer1::TensorFormat::kHWC8
        ? desc.format == first.format && sizeOf(elementOf(desc.type)) == 2
        : desc.format == nvinfer1::TensorFormat::kLINEAR;
}

// Whether tensor `pos` may have its type and format, given those before it: of a type that its variable allows, and the same
// as every earlier tensor of that variable. descOf(i) is the description of tensor i, inputs first.
template <typename DescOf>
bool supports(Op const& op, int32_t pos, DescOf const& descOf) noexcept
{
    Signature const& signature = *op.signature;
    nvinfer1::PluginTensorDesc const& desc = descOf(pos);
    int32_t const slot = signature.slots[pos];
    ElementType const type = elementOf(desc.type);
    if (type == ElementType::kUnsupported || !supportsFormat(op, desc, descOf(0))
        || ((signature.typeMasks[slot] >> static_cast<int32_t>(type)) & 1U) == 0)
    {
        return false;
    }
    for (int32_t i = 0; i < pos; ++i)
    {
        if (signature.slots[i] == slot && descOf(i).type != desc.type)
        {
            return false;
        }
    }
    return true;
}

// Whether the op can run in this process; says what is missing.
inline bool canRun(Op const& op) noexcept
{
    char const* const missing = op.missing == nullptr ? nullptr : op.missing();
    if (missing != nullptr)
    {
        logError(std::string(op.signature->name) + ": " + missing);
    }
    return missing == nullptr;
}

// 0 when the op was launched, otherwise 1 after a message.
inline int32_t enqueueOp(Op const& op, AttributeBlock const& attributes, nvinfer1::PluginTensorDesc const* inputDesc,
    nvinfer1::PluginTensorDesc const* outputDesc, void const* const* inputs, void* const* outputs, void* workspace,
    cudaStream_t stream) noexcept
{
    TensorView in[kMaxTensors];
    TensorView out[kMaxTensors];
    for (int32_t i = 0; i < op.signature->inputs; ++i)
    {
        in[i] = viewOf(inputDesc[i], inputs[i]);
    }
    for (int32_t i = 0; i < op.signature->outputs; ++i)
    {
        out[i] = viewOf(outputDesc[i], outputs[i]);
    }
    cudaError_t const status = op.enqueue(attributes.data(), in, out, workspace, stream);
    if (status == cudaSuccess)
    {
        return 0;
    }
    std::string shape;
    for (int32_t i = 0; i < in[0].rank; ++i)
    {
        shape += (i == 0 ? "" : "x") + std::to_string(in[0].dims[i]);
    }
    logError(std::string(op.signature->name) + " on an input of " + shape + ": " + cudaGetErrorString(status));
    return 1;
}

// The type of an output: that of the first input with the same type variable.
inline nvinfer1::DataType outputType(Signature const& signature, int32_t output, nvinfer1::DataType const* inputs) noexcept
{
    int32_t const slot = signature.slots[signature.inputs + output];
    for (int32_t i = 0; i < signature.inputs; ++i)
    {
        if (signature.slots[i] == slot)
        {
            return inputs[i];
        }
    }
    return nvinfer1::DataType::kFLOAT;
}
} // namespace trtconv
