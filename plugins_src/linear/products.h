// Products by cuBLASLt. Its handles, and the algorithm of each shape, are the one thing that the kernels keep between calls:
// a choice takes longer than a product. At the first call of a shape those that the heuristic names first are timed, for it
// is wrong by up to a half of a product's time; while a graph is captured nothing is, and the heuristic's first is taken.
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
        void* handle = nullptr;
        Description d(mFunctions);
        lt::Algorithm algorithm{};
        {
            std::lock_guard<std::mutex> const lock(mMutex);
            handle = handleOfDevice();
            if (handle == nullptr)
            {
                return cudaErrorSharedObjectInitFailed;
            }
            describe(p, tangent, t.bias, d);
            if (!d.product || !chooseAlgorithm(handle, p, tangent, t, d, workspace, stream, algorithm))
            {
                return cudaErrorNotSupported;
            }
        }
        if (multiply(handle, p, t, d, algorithm, workspace, stream))
        {
            return cudaSuccess;
        }
        cudaError_t const last = cudaGetLastError();
        return last == cudaSuccess ? cudaErrorUnknown : last;
    }

private:
    using Owner = std::unique_ptr<void, Status (*)(void*)>;
    // What an algorithm depends on: device, type, sizes, epilogue, the alignment of each tensor, and TF32.
    using Key = std::array<int64_t, 13>;

    // cuBLASLt's matrices are column by column, so that a matrix here is the transpose of one there: y^T = weight x^T. It is
    // given the weight's transpose to turn, which is what most of its kernels are tuned for.
    struct Description
    {
        explicit Description(CublasLt const& f)
            : product(nullptr, f.destroyProduct)
            , weight(nullptr, f.destroyLayout)
            , x(nullptr, f.destroyLayout)
            , y(nullptr, f.destroyLayout)
        {
        }
        Owner product;
        Owner weight;
        Owner x;
        Owner y;
    };

    struct Choice
    {
        lt::Algorithm algorithm;
        bool timed;
    };

    static constexpr size_t kMostChoices = 4096;
    // Algorithms that are tried, calls of each that are timed, and how much faster than the heuristic's first one has to be.
    static constexpr int32_t kTried = 8;
    static constexpr int32_t kCalls = 8;
    static constexpr float kFaster = 0.97F;

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

    void describe(Problem const& p, bool tangent, void const* bias, Description& d) const
    {
        void* product = nullptr;
        int32_t const turned = 1;
        int32_t const epilogue = tangent ? lt::kEpilogueGeluBias : lt::kEpilogueBias;
        bool const rounded = p.tf32 && p.type == ElementType::kFloat32;
        if (mFunctions.createProduct(&product, rounded ? lt::kCompute32FFastTf32 : lt::kCompute32F, CUDA_R_32F) != 0)
        {
            return;
        }
        d = Description(mFunctions);
        d.product.reset(product);
        d.weight = layout(p.type, p.columns, p.depth);
        d.x = layout(p.type, p.rows, p.depth);
        d.y = layout(p.type, p.rows, p.columns);
        if (mFunctions.setProduct(product, lt::kTransposeA, &turned, sizeof(turned)) != 0
            || mFunctions.setProduct(product, lt::kEpilogue, &epilogue, sizeof(epilogue)) != 0
            || mFunctions.setProduct(product, lt::kBiasPointer, &bias, sizeof(bias)) != 0)
        {
            d.product.reset();
        }
    }

    bool multiply(void* handle, Problem const& p, Tensors const& t, Description const& d, lt::Algorithm const& algorithm,
        void* workspace, cudaStream_t stream) const
    {
        float const one = 1.0F;
        float const beta = p.added ? 1.0F : 0.0F;
        return mFunctions.multiply(handle, d.product.get(), &one, t.weight, d.weight.get(), t.x, d.x.get(), &beta,
                   addendOf(p, t), d.y.get(), t.y, d.y.get(), &algorithm, workspace, kWorkspaceBytes, stream)
            == 0;
    }

    static void const* addendOf(Problem const& p, Tensors const& t) noexcept
    {
        return p.added ? t.addend : t.y;
    }

    bool chooseAlgorithm(void* handle, Problem const& p, bool tangent, Tensors const& t, Description const& d, void* workspace,
        cudaStream_t stream, lt::Algorithm& algorithm)
    {
        int32_t device = 0;
        cudaGetDevice(&device);
        std::array<int64_t, 4> const alignments
            = {alignmentOf(t.weight), alignmentOf(t.x), alignmentOf(addendOf(p, t)), alignmentOf(t.y)};
        Key const key = {device, static_cast<int64_t>(p.type), p.rows, p.depth, p.columns, p.added, tangent, alignments[0],
            alignments[1], alignments[2], alignments[3], alignmentOf(t.bias), p.tf32};
        cudaStreamCaptureStatus capture = cudaStreamCaptureStatusNone;
        bool const captures = cudaStreamIsCapturing(stream, &capture) != cudaSuccess || capture != cudaStreamCaptureStatusNone;
        auto const entry = mChoices.find(key);
        if (entry != mChoices.end() && (captures || entry->second.timed))
        {
            algorithm = entry->second.algorithm;
            return true;
        }
        std::array<lt::Heuristic, kTried> results{};
        int32_t const count = candidates(handle, d, alignments, results);
        if (count == 0)
        {
            return false;
        }
        int32_t best = 0;
        if (!captures && count > 1)
        {
            best = fastest(count, stream, [&](int32_t i) {
                return results[i].status == 0 && multiply(handle, p, t, d, results[i].algorithm, workspace, stream);
            });
        }
        algorithm = results[best].algorithm;
        if (mChoices.size() >= kMostChoices)
        {
            mChoices.clear();
        }
        mChoices[key] = {algorithm, !captures};
        return true;
    }

    int32_t candidates(void* handle, Description const& d, std::array<int64_t, 4> const& alignments,
        std::array<lt::Heuristic, kTried>& results) const
    {
        void* memory = nullptr;
        if (mFunctions.createPreference(&memory) != 0)
        {
            return 0;
        }
        Owner const preference(memory, mFunctions.destroyPreference);
        auto const bytes = static_cast<uint64_t>(kWorkspaceBytes);
        mFunctions.setPreference(memory, lt::kMaxWorkspaceBytes, &bytes, sizeof(bytes));
        for (int32_t i = 0; i < 4; ++i)
        {
            auto const alignment = static_cast<uint32_t>(alignments[i]);
            mFunctions.setPreference(memory, lt::kMinAlignmentA + i, &alignment, sizeof(alignment));
        }
        int32_t count = 0;
        bool const asked = mFunctions.choose(handle, d.product.get(), d.weight.get(), d.x.get(), d.y.get(), d.y.get(), memory,
                               kTried, results.data(), &count)
            == 0;
        return asked && count > 0 && results[0].status == 0 ? count : 0;
    }

    // The number of the fastest of `count` launches, each of which may be repeated; the first where none can be timed.
    template <typename Launch>
    static int32_t fastest(int32_t count, cudaStream_t stream, Launch const& launch)
    {
        cudaEvent_t begin = nullptr;
        cudaEvent_t end = nullptr;
        int32_t best = 0;
        if (cudaEventCreate(&begin) == cudaSuccess && cudaEventCreate(&end) == cudaSuccess)
        {
            float least = 0.0F;
            for (int32_t i = 0; i < count; ++i)
            {
                bool launched = launch(i) && cudaEventRecord(begin, stream) == cudaSuccess;
                for (int32_t call = 0; call < kCalls; ++call)
                {
                    launched = launched && launch(i);
                }
                float milliseconds = 0.0F;
                launched = launched && cudaEventRecord(end, stream) == cudaSuccess && cudaEventSynchronize(end) == cudaSuccess
                    && cudaEventElapsedTime(&milliseconds, begin, end) == cudaSuccess;
                if (launched && (least == 0.0F || milliseconds < least))
                {
                    best = least == 0.0F || milliseconds < kFaster * least ? i : best;
                    least = best == i ? milliseconds : least;
                }
            }
        }
        cudaEventDestroy(begin);
        cudaEventDestroy(end);
        return best;
    }

    std::mutex mMutex;
    CublasLt mFunctions;
    std::map<int32_t, void*> mHandles;
    std::map<Key, Choice> mChoices;
};
} // namespace trtconv::linear
