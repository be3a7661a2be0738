// GELU by the error function.
#pragma once

#include <cuda_runtime.h>

namespace trtconv
{
// x / 2 * erfc(-x / sqrt(2)). In 16 bits the complement is that of Abramowitz and Stegun, "Handbook of Mathematical Functions"
// (1964), 7.1.26: off by 1.5e-7, relative to x, which is less than half precision can say.
template <typename T>
__device__ __forceinline__ float gelu(float x)
{
    constexpr float kInverseRoot = 0.70710678F;
    if constexpr (sizeof(T) == 4)
    {
        return 0.5F * x * (1.0F + erff(x * kInverseRoot));
    }
    else
    {
        float const z = fabsf(x) * kInverseRoot;
#ifdef __CUDA_ARCH__
        float const t = __fdividef(1.0F, fmaf(0.3275911F, z, 1.0F));
        float const tail = __expf(-z * z);
#else
        float const t = 1.0F / fmaf(0.3275911F, z, 1.0F);
        float const tail = expf(-z * z);
#endif
        float sum = fmaf(t, 1.061405429F, -1.453152027F);
        sum = fmaf(t, sum, 1.421413741F);
        sum = fmaf(t, sum, -0.284496736F);
        sum = fmaf(t, sum, 0.254829592F);
        float const complement = t * sum * tail; // erfc(z)
        float const share = x < 0.0F ? complement : 2.0F - complement;
        // An infinity below is 0 times itself here; the limit is -0.
        return x < -20.0F ? -0.0F : 0.5F * x * share;
    }
}
} // namespace trtconv
