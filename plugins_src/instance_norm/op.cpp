#include "adapters/op.h"
#include "adapters/shapes.h"
#include "instance_norm/kernel.h"
#include "trtconv_descriptions.h"

namespace trtconv
{
namespace
{
using instance_norm::Attributes;

bool shapes(void const*, nvinfer1::DimsExprs const* inputs, nvinfer1::DimsExprs* outputs, nvinfer1::IExprBuilder&)
{
    if (inputs[0].nbDims < 3)
    {
        return false;
    }
    auto const* const channels = inputs[0].d[1];
    if (!mayBeVectorOf(inputs[1], channels) || !mayBeVectorOf(inputs[2], channels))
    {
        return false;
    }
    outputs[0] = inputs[0];
    return true;
}

int64_t workspace(void const*, TensorView const* inputs)
{
    TensorView const& x = inputs[0];
    return instance_norm::workspaceBytes(x.type, x.volume(0, 2), x.volume(2, x.rank));
}

cudaError_t enqueue(void const* attributes, TensorView const* in, TensorView const* out, void* memory, cudaStream_t stream)
{
    auto const& a = *static_cast<Attributes const*>(attributes);
    TensorView const& x = in[0];
    if (in[1].type != in[2].type)
    {
        return cudaErrorInvalidValue;
    }
    instance_norm::Problem p;
    p.type = x.type;
    p.parameterType = in[1].type;
    p.planes = x.volume(0, 2);
    p.channels = x.dims[1];
    p.area = x.volume(2, x.rank);
    p.epsilon = a.epsilon;
    p.relu = a.relu != 0;
    return instance_norm::launch(p, x.data, in[1].data, in[2].data, out[0].data, memory, stream);
}

constexpr Attributes kDefaults;
} // namespace

extern Op const kInstanceNorm{&instance_norm::kSignature, &kDefaults, shapes, workspace, enqueue};
} // namespace trtconv
