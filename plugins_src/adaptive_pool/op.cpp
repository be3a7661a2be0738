#include "adapters/op.h"
#include "adaptive_pool/kernel.h"
#include "trtconv_descriptions.h"

namespace trtconv
{
namespace
{
using adaptive_pool::Attributes;

bool shapes(
    void const* attributes, nvinfer1::DimsExprs const* inputs, nvinfer1::DimsExprs* outputs, nvinfer1::IExprBuilder& builder)
{
    auto const& a = *static_cast<Attributes const*>(attributes);
    int32_t const rank = inputs[0].nbDims;
    if (rank < 2)
    {
        return false;
    }
    outputs[0] = inputs[0];
    for (int32_t i = 0; i < 2; ++i)
    {
        auto const* const size = inputs[0].d[rank - 2 + i];
        if (size->isConstant() && size->getConstantValue() < 1)
        {
            return false;
        }
        outputs[0].d[rank - 2 + i] = builder.constant(a.output_size[i]);
    }
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
    adaptive_pool::Problem p;
    p.type = x.type;
    p.planes = x.volume(0, x.rank - 2);
    p.height = x.dims[x.rank - 2];
    p.width = x.dims[x.rank - 1];
    p.outHeight = a.output_size[0];
    p.outWidth = a.output_size[1];
    p.maximum = a.mode == 1;
    return adaptive_pool::launch(p, x.data, out[0].data, stream);
}

constexpr Attributes kDefaults;
} // namespace

extern Op const kAdaptivePool{&adaptive_pool::kSignature, &kDefaults, shapes, workspace, enqueue};
} // namespace trtconv
