#include "adapters/op.h"
#include "reflection_pad/kernel.h"
#include "trtconv_descriptions.h"

namespace trtconv
{
namespace
{
using reflection_pad::Attributes;

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
        int32_t const axis = rank - 2 + i;
        int64_t const low = a.pads[i];
        int64_t const high = a.pads[i + 2];
        auto const* const size = inputs[0].d[axis];
        int64_t const most = low > high ? low : high;
        // Where the size is not known yet, the launch checks it.
        if (size->isConstant() && most > 0 && most >= size->getConstantValue())
        {
            return false;
        }
        auto const* const grown = builder.constant(low + high);
        outputs[0].d[axis] = builder.operation(nvinfer1::DimensionOperation::kSUM, *size, *grown);
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
    reflection_pad::Problem p;
    p.type = x.type;
    p.planes = x.volume(0, x.rank - 2);
    p.height = x.dims[x.rank - 2];
    p.width = x.dims[x.rank - 1];
    p.top = a.pads[0];
    p.left = a.pads[1];
    p.bottom = a.pads[2];
    p.right = a.pads[3];
    return reflection_pad::launch(p, x.data, out[0].data, stream);
}

constexpr Attributes kDefaults;
} // namespace

extern Op const kReflectionPad{&reflection_pad::kSignature, &kDefaults, shapes, workspace, enqueue};
} // namespace trtconv
