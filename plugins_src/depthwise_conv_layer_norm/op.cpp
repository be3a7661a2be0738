#include "adapters/op.h"
#include "adapters/shapes.h"
#include "depthwise_conv_layer_norm/kernel.h"
#include "trtconv_descriptions.h"

namespace trtconv
{
namespace
{
using depthwise_conv_layer_norm::Attributes;

bool shapes(void const* attributes, nvinfer1::DimsExprs const* inputs, nvinfer1::DimsExprs* outputs, nvinfer1::IExprBuilder&)
{
    auto const& a = *static_cast<Attributes const*>(attributes);
    if (inputs[0].nbDims != 4 || inputs[1].nbDims != 3 || (a.channels > 1024 && a.channels % 2 != 0))
    {
        return false;
    }
    auto const* const* const weight = inputs[1].d;
    int64_t const size = weight[0]->isConstant() ? weight[0]->getConstantValue() : 3;
    if (isNot(inputs[0].d[3], a.channels) || (size != 3 && size != 5 && size != 7) || isNot(weight[1], size)
        || isNot(weight[2], a.channels))
    {
        return false;
    }
    for (int32_t i = 2; i < 5; ++i)
    {
        if (inputs[i].nbDims != 1 || isNot(inputs[i].d[0], a.channels))
        {
            return false;
        }
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
    depthwise_conv_layer_norm::Problem p;
    p.type = x.type;
    p.batch = x.dims[0];
    p.height = x.dims[1];
    p.width = x.dims[2];
    p.channels = x.dims[3];
    p.size = static_cast<int32_t>(in[1].dims[0]);
    p.epsilon = a.epsilon;
    return depthwise_conv_layer_norm::launch(
        p, x.data, in[1].data, in[2].data, in[3].data, in[4].data, out[0].data, stream);
}

constexpr Attributes kDefaults;
} // namespace

extern Op const kDepthwiseConvLayerNorm{
    &depthwise_conv_layer_norm::kSignature, &kDefaults, shapes, workspace, enqueue};
} // namespace trtconv
