#include "adapters/op.h"
#include "adapters/shapes.h"
#include "depthwise_conv/kernel.h"
#include "trtconv_descriptions.h"

namespace trtconv
{
namespace
{
using depthwise_conv::Attributes;

bool shapes(void const* attributes, nvinfer1::DimsExprs const* inputs, nvinfer1::DimsExprs* outputs, nvinfer1::IExprBuilder&)
{
    auto const& a = *static_cast<Attributes const*>(attributes);
    if (inputs[0].nbDims != 3 || inputs[1].nbDims != 3 || inputs[2].nbDims != 1 || isNot(inputs[0].d[2], a.channels)
        || isNot(inputs[1].d[0], 3) || isNot(inputs[1].d[1], 3) || isNot(inputs[1].d[2], a.channels)
        || isNot(inputs[2].d[0], a.channels))
    {
        return false;
    }
    outputs[0] = inputs[0];
    return true;
}

int64_t workspace(void const*, TensorView const*)
{
    return 0;
}

cudaError_t enqueue(void const* attributes, TensorView const* in, TensorView const* out, void*, cudaStream_t stream)
{
    auto const& a = *static_cast<Attributes const*>(attributes);
    TensorView const& x = in[0];
    if (x.dims[1] % a.width != 0)
    {
        return cudaErrorInvalidValue;
    }
    depthwise_conv::Problem p;
    p.type = x.type;
    p.batch = x.dims[0];
    p.width = a.width;
    p.height = x.dims[1] / a.width;
    p.channels = x.dims[2];
    p.gelu = a.gelu != 0;
    return depthwise_conv::launch(p, x.data, in[1].data, in[2].data, out[0].data, stream);
}

constexpr Attributes kDefaults;
} // namespace

extern Op const kDepthwiseConv{&depthwise_conv::kSignature, &kDefaults, shapes, workspace, enqueue};
} // namespace trtconv
