// The list of ops.
#include "adapters/op.h"

namespace trtconv
{
Op const* const kOps[] = {&kL2Norm, &kInstanceNorm, &kReflectionPad, &kAdaptivePool};
int32_t const kOpCount = sizeof(kOps) / sizeof(kOps[0]);
} // namespace trtconv
