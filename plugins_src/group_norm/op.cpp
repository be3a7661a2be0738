#include "adapters/op.h"
#include "adapters/shapes.h"
#include "group_norm/kernel.h"
#include "trtconv_descriptions.h"

namespace trtconv
{
namespace
{
using group_norm::Attributes;

bool shapes(void const*, nvinfer1::DimsExprs const* inputs, nvinfer1::DimsExprs* outputs, nvinfer1::IExprBuilder&)
{
    nvinfer1::DimsExprs const& x = inputs[0];
    if (x.nbDims != 4)
    {
        return false;
    }
    nvinfer1::IDimensionExpr const* const channels = x.d[3];
    if (!mayBeVectorOf(inputs[1], channels) || !mayBeVectorOf(inputs[2], channels))
    {
        return false;
    }
    outputs[0] = x;
    return true;
}

int64_t workspace(void const*, TensorView const* inputs)
{
    return group_norm::workspaceBytes(inputs[0].dims[0]);
}

cudaError_t enqueue(void const* attributes, TensorView const* in, TensorView const* out, void* memory, cudaStream_t stream)
{
    auto const& a = *static_cast<Attributes const*>(attributes);
    TensorView const& x = in[0];
    group_norm::Problem p;
    p.type = x.type;
    p.batch = x.dims[0];
    p.height = x.dims[1];
    p.width = x.dims[2];
    p.channels = x.dims[3];
    p.epsilon = a.epsilon;
    p.mixed = a.mixed != 0;
    if (in[1].dims[0] != p.channels || in[2].dims[0] != p.channels)
    {
        return cudaErrorInvalidValue;
    }
    return group_norm::launch(p, x.data, in[1].data, in[2].data, out[0].data, memory, stream);
}

constexpr Attributes kDefaults;
} // namespace

extern Op const kGroupNorm{&group_norm::kSignature, &kDefaults, shapes, workspace, enqueue};
} // namespace trtconv
