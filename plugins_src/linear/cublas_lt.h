// The part of cuBLASLt's C interface that is called, and the library itself, which is opened when the first product is
// computed: an engine without products of this kind needs none. Types and numbers are those of its ABI from CUDA 11 on, so
// that no header of one version is needed to call the library of another; where there is one, the numbers are compared.
#pragma once

#include <cuda_runtime_api.h>
#include <library_types.h>

#include <dlfcn.h>

#include <cstddef>
#include <cstdint>

#if __has_include(<cublasLt.h>)
#include <cublasLt.h>
#endif

namespace trtconv::linear
{
// 0 is success.
using Status = int32_t;

namespace lt
{
inline constexpr int32_t kCompute32F = 68; // products of 16 or 32 bits, sums in 32
inline constexpr int32_t kCompute32FFastTf32 = 77;
inline constexpr int32_t kTransposeA = 3;  // attributes of a product
inline constexpr int32_t kEpilogue = 7;
inline constexpr int32_t kBiasPointer = 8;
inline constexpr int32_t kEpilogueBias = 4;
inline constexpr int32_t kEpilogueGeluBias = 36; // by the tangent
inline constexpr int32_t kMaxWorkspaceBytes = 1; // attributes of a preference
inline constexpr int32_t kMinAlignmentA = 5;     // and of the other three behind it

struct Algorithm
{
    uint64_t data[8];
};

struct Heuristic
{
    Algorithm algorithm;
    size_t workspaceBytes;
    Status status;
    float waves;
    int32_t reserved[4];
};

#if __has_include(<cublasLt.h>)
static_assert(CUBLAS_COMPUTE_32F == kCompute32F && CUBLAS_COMPUTE_32F_FAST_TF32 == kCompute32FFastTf32
    && CUBLASLT_MATMUL_DESC_TRANSA == kTransposeA && CUBLAS_OP_T == 1
    && CUBLASLT_MATMUL_DESC_EPILOGUE == kEpilogue
    && CUBLASLT_MATMUL_DESC_BIAS_POINTER == kBiasPointer && CUBLASLT_EPILOGUE_BIAS == kEpilogueBias
    && CUBLASLT_EPILOGUE_GELU_BIAS == kEpilogueGeluBias && CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES == kMaxWorkspaceBytes
    && CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES == kMinAlignmentA
    && CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES == kMinAlignmentA + 3
    && sizeof(cublasLtMatmulHeuristicResult_t) == sizeof(Heuristic));
#endif
} // namespace lt

struct CublasLt
{
    Status (*create)(void** handle){nullptr};
    Status (*createProduct)(void** product, int32_t computeType, cudaDataType scaleType){nullptr};
    Status (*setProduct)(void* product, int32_t attribute, void const* value, size_t bytes){nullptr};
    Status (*destroyProduct)(void* product){nullptr};
    Status (*createLayout)(void** layout, cudaDataType type, uint64_t rows, uint64_t columns, int64_t stride){nullptr};
    Status (*destroyLayout)(void* layout){nullptr};
    Status (*createPreference)(void** preference){nullptr};
    Status (*setPreference)(void* preference, int32_t attribute, void const* value, size_t bytes){nullptr};
    Status (*destroyPreference)(void* preference){nullptr};
    Status (*choose)(void* handle, void* product, void* a, void* b, void* c, void* d, void* preference, int32_t most,
        lt::Heuristic* results, int32_t* count){nullptr};
    Status (*multiply)(void* handle, void* product, void const* alpha, void const* a, void* aLayout, void const* b,
        void* bLayout, void const* beta, void const* c, void* cLayout, void* d, void* dLayout,
        lt::Algorithm const* algorithm, void* workspace, size_t workspaceBytes, cudaStream_t stream){nullptr};
};

template <typename Function>
bool resolve(void* library, char const* name, Function& function) noexcept
{
    function = reinterpret_cast<Function>(dlsym(library, name));
    return function != nullptr;
}

inline bool resolveAll(void* library, CublasLt& f) noexcept
{
    return resolve(library, "cublasLtCreate", f.create) && resolve(library, "cublasLtMatmulDescCreate", f.createProduct)
        && resolve(library, "cublasLtMatmulDescSetAttribute", f.setProduct)
        && resolve(library, "cublasLtMatmulDescDestroy", f.destroyProduct)
        && resolve(library, "cublasLtMatrixLayoutCreate", f.createLayout)
        && resolve(library, "cublasLtMatrixLayoutDestroy", f.destroyLayout)
        && resolve(library, "cublasLtMatmulPreferenceCreate", f.createPreference)
        && resolve(library, "cublasLtMatmulPreferenceSetAttribute", f.setPreference)
        && resolve(library, "cublasLtMatmulPreferenceDestroy", f.destroyPreference)
        && resolve(library, "cublasLtMatmulAlgoGetHeuristic", f.choose) && resolve(library, "cublasLtMatmul", f.multiply);
}

// Opens the library: one that the process has already, else the newest on the loader's path. One that does not work here
// (a newer one than the driver) is passed over. False where there is none; `handle` is of the current device.
inline bool openCublasLt(CublasLt& functions, void*& handle) noexcept
{
    for (int const loaded : {RTLD_NOLOAD, 0})
    {
        for (char const* const name : {"libcublasLt.so.13", "libcublasLt.so.12", "libcublasLt.so.11"})
        {
            CublasLt candidate;
            void* const library = dlopen(name, RTLD_NOW | RTLD_LOCAL | loaded);
            if (library != nullptr && resolveAll(library, candidate) && candidate.create(&handle) == 0)
            {
                functions = candidate;
                return true;
            }
        }
    }
    return false;
}
} // namespace trtconv::linear
