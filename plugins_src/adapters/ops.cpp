// The list of ops.
#include "adapters/op.h"

namespace trtconv
{
Op const* const kOps[] = {&kAdaptivePool, &kAttention, &kChannelGate, &kDepthwiseConv, &kDepthwiseConvLayerNorm, &kGroupNorm,
    &kInstanceNorm, &kL2Norm, &kLayerNorm, &kLinear, &kReflectionPad};
int32_t const kOpCount = sizeof(kOps) / sizeof(kOps[0]);
} // namespace trtconv
