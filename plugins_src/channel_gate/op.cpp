#include "adapters/op.h"
#include "adapters/shapes.h"
#include "channel_gate/kernel.h"
#include "trtconv_descriptions.h"

namespace trtconv
{
namespace
{
using channel_gate::Attributes;

bool mayBeMatrixOf(
    nvinfer1::DimsExprs const& tensor, nvinfer1::IDimensionExpr const* rows, nvinfer1::IDimensionExpr const* columns)
{
    auto const mayEqual = [](nvinfer1::IDimensionExpr const* one, nvinfer1::IDimensionExpr const* other) {
        return !(one->isConstant() && isNot(other, one->getConstantValue()));
    };
    return tensor.nbDims == 2 && mayEqual(tensor.d[0], rows) && mayEqual(tensor.d[1], columns);
}

bool shapes(void const*, nvinfer1::DimsExprs const* inputs, nvinfer1::DimsExprs* outputs, nvinfer1::IExprBuilder& builder)
{
    nvinfer1::DimsExprs const& x = inputs[0];
    if (x.nbDims != 4 || inputs[2].nbDims != 1)
    {
        return false;
    }
    nvinfer1::IDimensionExpr const* const channels = x.d[1];
    nvinfer1::IDimensionExpr const* const hidden = inputs[2].d[0];
    if (!mayBeMatrixOf(inputs[1], hidden, channels) || !mayBeMatrixOf(inputs[3], channels, hidden)
        || !mayBeVectorOf(inputs[4], channels))
    {
        return false;
    }
    outputs[0] = x;
    outputs[0].d[2] = builder.constant(1);
    outputs[0].d[3] = builder.constant(1);
    return true;
}

int64_t workspace(void const*, TensorView const* inputs)
{
    TensorView const& x = inputs[0];
    return channel_gate::workspaceBytes(x.dims[0], x.dims[1], x.volume(2, 4), inputs[2].dims[0]);
}

cudaError_t enqueue(void const* attributes, TensorView const* in, TensorView const* out, void* memory, cudaStream_t stream)
{
    auto const& a = *static_cast<Attributes const*>(attributes);
    TensorView const& x = in[0];
    channel_gate::Problem p;
    p.type = x.type;
    p.batch = x.dims[0];
    p.channels = x.dims[1];
    p.area = x.volume(2, 4);
    p.hidden = in[2].dims[0];
    p.activation = static_cast<channel_gate::Activation>(a.activation);
    p.gate = static_cast<channel_gate::Gate>(a.gate);
    p.pitch = x.pitch;
    if (in[1].dims[0] != p.hidden || in[1].dims[1] != p.channels || in[3].dims[0] != p.channels || in[3].dims[1] != p.hidden
        || in[4].dims[0] != p.channels)
    {
        return cudaErrorInvalidValue;
    }
    return channel_gate::launch(p, x.data, in[1].data, in[2].data, in[3].data, in[4].data, out[0].data, memory, stream);
}

constexpr Attributes kDefaults;
} // namespace

extern Op const kChannelGate{
    &channel_gate::kSignature, &kDefaults, shapes, workspace, enqueue, nullptr, /*channelsLast=*/true};
} // namespace trtconv
