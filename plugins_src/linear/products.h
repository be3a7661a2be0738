// Products by cuBLASLt. Its handles, and the algorithm that its heuristic chose for each shape, are the one thing that the
// kernels keep between calls: a choice takes longer than a small product. Nothing is timed, so that every process computes
// with the same algorithms.
#pragma once

#include "linear/cublas_lt.h"
#include "linear/kernel.h"

#include <array>
#include <map>
#include <memory>
#include <mutex>

namespace trtconv::linear
{
struct Tensors
{
    void const* x;
    void const* weight;
    void const* bias;
    void const* addend;
    void* y;
};

class Products
{
public:
    // The one of this process. It is never destroyed: the driver may be gone before static objects are.
    static Products& instance()
    {
        static Products& products = *new Products;
        return products;
    }

    // Whether cuBLASLt is here and works on the current device.
    bool ready() noexcept
    {
        std::lock_guard<std::mutex> const lock(mMutex);
        return handleOfDevice() != nullptr;
    }

    // y = x weight^T + bias, plus the addend where the problem has one, through GELU by the tangent where `tangent` is set.
    cudaError_t run(Problem const& p, bool tangent, Tensors const& t, void* workspace, cudaStream_t stream)
    {
        Plan plan;
        if (cudaError_t const status = planOf(p, tangent, t, plan); status != cudaSuccess)
        {
            return status;
        }
        Description const d = describe(p, tangent, t.bias);
        float const one = 1.0F;
        float const beta = p.added ? 1.0F : 0.0F;
        void const* const addend = p.added ? t.addend : t.y;
        bool const launched = d.product
            && mFunctions.multiply(plan.handle, d.product.get(), &one, t.weight, d.weight.get(), t.x, d.x.get(), &beta, addend,
                   d.y.get(), t.y, d.y.get(), &plan.algorithm, workspace, kWorkspaceBytes, stream)
                == 0;
        if (launched)
        {
            return cudaSuccess;
        }
        cudaError_t const last = cudaGetLastError();
        return last == cudaSuccess ? cudaErrorUnknown : last;
    }

private:
    using Owner = std::unique_ptr<void, Status (*)(void*)>;
    // What an algorithm depends on: device, type, sizes, epilogue and the alignment of each tensor.
    using Key = std::array<int64_t, 12>;

    struct Plan
    {
        void* handle{nullptr};
        lt::Algorithm algorithm{};
    };

    // cuBLASLt's matrices are column by column, so that a matrix here is the transpose of one there: y^T = weight x^T. It is
    // given the weight's transpose to turn, which is what most of its kernels are tuned for.
    struct Description
    {
        Owner product;
        Owner weight;
        Owner x;
        Owner y;
    };

    static constexpr size_t kMostPlans = 4096;

    static cudaDataType typeOf(ElementType type) noexcept
    {
        return type == ElementType::kFloat32 ? CUDA_R_32F : type == ElementType::kFloat16 ? CUDA_R_16F : CUDA_R_16BF;
    }

    static int64_t alignmentOf(void const* pointer) noexcept
    {
        constexpr int64_t kMost = 256;
        auto const bits = static_cast<int64_t>(reinterpret_cast<uintptr_t>(pointer)) | kMost;
        return bits & -bits;
    }

    void* handleOfDevice() noexcept
    {
        int32_t device = 0;
        if (cudaGetDevice(&device) != cudaSuccess)
        {
            return nullptr;
        }
        void*& handle = mHandles[device];
        if (handle == nullptr && !(mFunctions.create == nullptr ? openCublasLt(mFunctions, handle) : mFunctions.create(&handle) == 0))
        {
            handle = nullptr;
        }
        return handle;
    }

    Owner layout(ElementType type, int64_t rows, int64_t columns) const
    {
        void* layout = nullptr;
        mFunctions.createLayout(&layout, typeOf(type), static_cast<uint64_t>(columns), static_cast<uint64_t>(rows), columns);
        return {layout, mFunctions.destroyLayout};
    }

    Description describe(Problem const& p, bool tangent, void const* bias) const
    {
        void* product = nullptr;
        int32_t const turned = 1;
        int32_t const epilogue = tangent ? lt::kEpilogueGeluBias : lt::kEpilogueBias;
        bool const described = mFunctions.createProduct(&product, lt::kCompute32F, CUDA_R_32F) == 0
            && mFunctions.setProduct(product, lt::kTransposeA, &turned, sizeof(turned)) == 0
            && mFunctions.setProduct(product, lt::kEpilogue, &epilogue, sizeof(epilogue)) == 0
            && mFunctions.setProduct(product, lt::kBiasPointer, &bias, sizeof(bias)) == 0;
        Owner owner(product, mFunctions.destroyProduct);
        return {described ? std::move(owner) : Owner(nullptr, mFunctions.destroyProduct),
            layout(p.type, p.columns, p.depth), layout(p.type, p.rows, p.depth), layout(p.type, p.rows, p.columns)};
    }

    cudaError_t planOf(Problem const& p, bool tangent, Tensors const& t, Plan& plan)
    {
        std::lock_guard<std::mutex> const lock(mMutex);
        plan.handle = handleOfDevice();
        if (plan.handle == nullptr)
        {
            return cudaErrorSharedObjectInitFailed;
        }
        void const* const addend = p.added ? t.addend : t.y;
        int32_t device = 0;
        cudaGetDevice(&device);
        std::array<int64_t, 4> const alignments
            = {alignmentOf(t.weight), alignmentOf(t.x), alignmentOf(addend), alignmentOf(t.y)};
        Key const key = {device, static_cast<int64_t>(p.type), p.rows, p.depth, p.columns, p.added, tangent, alignments[0],
            alignments[1], alignments[2], alignments[3], alignmentOf(t.bias)};
        if (auto const entry = mAlgorithms.find(key); entry != mAlgorithms.end())
        {
            plan.algorithm = entry->second;
            return cudaSuccess;
        }
        if (!choose(describe(p, tangent, t.bias), alignments, plan))
        {
            return cudaErrorNotSupported;
        }
        if (mAlgorithms.size() >= kMostPlans)
        {
            mAlgorithms.clear();
        }
        mAlgorithms.emplace(key, plan.algorithm);
        return cudaSuccess;
    }

    bool choose(Description const& d, std::array<int64_t, 4> const& alignments, Plan& plan) const
    {
        void* memory = nullptr;
        if (!d.product || mFunctions.createPreference(&memory) != 0)
        {
            return false;
        }
        Owner const preference(memory, mFunctions.destroyPreference);
        auto const bytes = static_cast<uint64_t>(kWorkspaceBytes);
        mFunctions.setPreference(memory, lt::kMaxWorkspaceBytes, &bytes, sizeof(bytes));
        for (int32_t i = 0; i < 4; ++i)
        {
            auto const alignment = static_cast<uint32_t>(alignments[i]);
            mFunctions.setPreference(memory, lt::kMinAlignmentA + i, &alignment, sizeof(alignment));
        }
        lt::Heuristic result{};
        int32_t count = 0;
        bool const chosen = mFunctions.choose(plan.handle, d.product.get(), d.weight.get(), d.x.get(), d.y.get(), d.y.get(),
                                memory, 1, &result, &count)
                == 0
            && count == 1 && result.status == 0;
        plan.algorithm = result.algorithm;
        return chosen;
    }

    std::mutex mMutex;
    CublasLt mFunctions;
    std::map<int32_t, void*> mHandles;
    std::map<Key, lt::Algorithm> mAlgorithms;
};
} // namespace trtconv::linear
