// A block has 64 rows of the query of one head, each warp 16 of them. Keys and values come by tiles; a row's largest score
// and its sum of exponentials go from tile to tile (Milakov and Gimelshein, "Online normalizer calculation for softmax",
// 2018; Dao et al., "FlashAttention", 2022), so that no score is ever written to memory.
#pragma once

#include "attention/fragments.cuh"
#include "common/divider.cuh"

namespace trtconv::attention
{
inline constexpr int32_t kWarps = 4;
inline constexpr int32_t kRows = 16 * kWarps;

__device__ __forceinline__ float infinity()
{
    return floatOf(0x7F800000U);
}

// Where things lie, in elements.
struct Layout
{
    // Blocks of one head, heads, and groups of the bias.
    Divider byTiles;
    Divider byHeads;
    Divider byGroups;
    int32_t size;
    int32_t queries;
    int32_t keys;
    // From row to row, and the first column.
    int32_t pitches[3];
    int32_t offsets[3];
    // Of the bias from group to group, head to head, row to row and column to column; 0 where all share one.
    int32_t groupStep;
    int32_t headStep;
    int32_t rowStep;
    int32_t columnStep;
    // Elements of the whole bias, and whether it is aligned and has a row of all keys for every query.
    int32_t biasSize;
    bool wholeRows;
    float scale;
};

// Rows of key or value of a tile. Two tiles of both lie in 48 KiB: one is on its way while the other is used.
template <typename T, int D>
inline constexpr int kTile = sizeof(T) * D > 256 ? 16 : sizeof(T) * D > 128 ? 32 : 64;
// From row to row there. Neighbouring rows begin four banks apart, so that the lanes of a load meet no bank twice.
template <typename T, int D>
inline constexpr int kPitch = D + 16 / static_cast<int>(sizeof(T));
// Elements of a tile of key and value.
template <typename T, int D>
inline constexpr int kStage = 2 * kTile<T, D> * kPitch<T, D>;
// Blocks that share a multiprocessor, which bounds their registers.
template <typename T, int D>
inline constexpr int kResident = sizeof(T) * D > 128 ? 2 : sizeof(T) == 2 && D == 64 ? 3 : 4;

// e^(value - base). Half precision and TF32 are content with the GPU's own powers of two.
template <typename T, bool EXACT>
__device__ __forceinline__ float exponential(float value, float base)
{
#if defined(__CUDA_ARCH__)
    if constexpr (sizeof(T) == 2 || !EXACT)
    {
        constexpr float log2e = 1.4426950408889634F;
        float power = 0.0F;
        asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(power) : "f"(fmaf(value, log2e, -base * log2e)));
        return power;
    }
#endif
    return expf(value - base);
}

// 16 bytes to shared memory, zero where there are none; they are there after waitForCopies.
__device__ __forceinline__ void copyGranule(void* to, void const* from, bool exists)
{
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(static_cast<uint32_t>(__cvta_generic_to_shared(to))),
        "l"(from), "r"(exists ? 16 : 0));
#else
    *static_cast<uint4*>(to) = exists ? *static_cast<uint4 const*>(from) : uint4{0, 0, 0, 0};
#endif
}
__device__ __forceinline__ void endCopies()
{
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800
    asm volatile("cp.async.commit_group;");
#endif
}
// All groups but the last `PENDING` are there, for the thread that copied them.
template <int PENDING>
__device__ __forceinline__ void waitForCopies()
{
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800
    asm volatile("cp.async.wait_group %0;" ::"n"(PENDING));
#endif
}

// `count` rows of a head to shared memory, zero beyond them and beyond its columns.
template <typename T, int D, bool VECTOR>
__device__ __forceinline__ void loadTile(T* to, T const* from, int32_t pitch, int32_t count, int32_t size)
{
    constexpr int width = VECTOR ? 16 / static_cast<int>(sizeof(T)) : 1;
    constexpr int across = D / width;
#pragma unroll 4
    for (int i = 0; i < kTile<T, D> * across; i += 32 * kWarps)
    {
        int32_t const number = i + static_cast<int32_t>(threadIdx.x);
        int32_t const row = number / across;
        int32_t const column = number % across * width;
        bool const exists = row < count && column < size;
        T const* const address = exists ? from + int64_t{row} * pitch + column : from;
        if constexpr (VECTOR)
        {
            copyGranule(to + row * kPitch<T, D> + column, address, exists);
        }
        else
        {
            to[row * kPitch<T, D> + column] = exists ? *address : fromFloat<T>(0.0F);
        }
    }
}

// A run of elements to shared memory, in whole granules from the one in which it begins; returns where it begins there.
// `before` elements of the tensor, which is aligned, lie before the run, and `after` from its first one on.
template <typename T>
__device__ __forceinline__ int32_t loadRun(T* to, T const* from, int32_t count, int64_t before, int32_t after)
{
    constexpr int width = 16 / static_cast<int>(sizeof(T));
    auto const skip = static_cast<int32_t>(before % width);
    for (int32_t i = static_cast<int32_t>(threadIdx.x) * width; i < skip + count; i += 32 * kWarps * width)
    {
        if (i + width <= skip + after)
        {
            copyGranule(to + i, from - skip + i, true);
        }
        else
        {
            for (int32_t j = i; j < skip + after; ++j)
            {
                to[j] = from[j - skip];
            }
        }
    }
    return skip;
}

// The left sides of a warp's rows of the query; `first` and `second` are the lane's two rows, null beyond the last.
template <typename T, int D, bool VECTOR>
__device__ __forceinline__ void loadQuery(uint32_t (&query)[D / kDepth<T>][4], T const* first, T const* second, int32_t size)
{
    constexpr int across = sizeof(T) == 4 ? 1 : 2;
    int32_t const t = static_cast<int32_t>(threadIdx.x) & 3;
#pragma unroll
    for (int k = 0; k < D / kDepth<T>; ++k)
    {
#pragma unroll
        for (int i = 0; i < 4; ++i)
        {
            T const* const row = i % 2 == 0 ? first : second;
            int32_t const column = k * kDepth<T> + i / 2 * (kDepth<T> / 2) + t * across;
            uint32_t bits = 0;
            if (row != nullptr && column < size)
            {
                if constexpr (VECTOR || across == 1)
                {
                    bits = *reinterpret_cast<uint32_t const*>(row + column);
                }
                else
                {
                    bits = packed<T>(toFloat(row[column]), column + 1 < size ? toFloat(row[column + 1]) : 0.0F);
                }
            }
            query[k][i] = bits;
        }
    }
}

// The largest, or the sum, of what the four lanes of a row have.
__device__ __forceinline__ float largestOfRow(float value)
{
    value = fmaxf(value, __shfl_xor_sync(0xffffffffU, value, 1));
    return fmaxf(value, __shfl_xor_sync(0xffffffffU, value, 2));
}
__device__ __forceinline__ float sumOfRow(float value)
{
    value += __shfl_xor_sync(0xffffffffU, value, 1);
    return value + __shfl_xor_sync(0xffffffffU, value, 2);
}

// Scores become scaled and biased: `bias` gives that of a row of the block and a column of the tile.
template <typename T, int TILE, typename Bias>
__device__ __forceinline__ void addBias(float (&scores)[TILE / 8][4], float scale, int32_t row, Bias const& bias)
{
    int32_t const t = static_cast<int32_t>(threadIdx.x) & 3;
#pragma unroll
    for (int half = 0; half < 2; ++half)
    {
        auto const ofRow = bias(row + 8 * half);
#pragma unroll
        for (int j = 0; j < TILE / 8; ++j)
        {
#pragma unroll
            for (int i = 0; i < 2; ++i)
            {
                float& score = scores[j][2 * half + i];
                score = fmaf(score, scale, ofRow(2 * t, 8 * j + i));
            }
        }
    }
}

// Scores of columns from `count` on, where there are no keys.
template <int TILE>
__device__ __forceinline__ void hideBeyond(float (&scores)[TILE / 8][4], int32_t count)
{
    int32_t const t = static_cast<int32_t>(threadIdx.x) & 3;
#pragma unroll
    for (int j = 0; j < TILE / 8; ++j)
    {
#pragma unroll
        for (int i = 0; i < 4; ++i)
        {
            scores[j][i] = 8 * j + i % 2 < count - 2 * t ? scores[j][i] : -infinity();
        }
    }
}

// Scores become exponentials beside the row's largest score so far; returns by what the sums before are multiplied. A row
// without a score above -inf has no sum yet; at the end its result is 0 / 0, as ONNX's Softmax says.
template <typename T, bool EXACT, int TILE>
__device__ __forceinline__ float exponentiate(float (&scores)[TILE / 8][4], int half, float& largest, float& sum)
{
    float highest = largest;
#pragma unroll
    for (int j = 0; j < TILE / 8; ++j)
    {
        highest = fmaxf(highest, fmaxf(scores[j][2 * half], scores[j][2 * half + 1]));
    }
    highest = largestOfRow(highest);
    float const base = highest == -infinity() ? 0.0F : highest;
    float const factor = exponential<T, EXACT>(largest, base);
    sum *= factor;
#pragma unroll
    for (int j = 0; j < TILE / 8; ++j)
    {
#pragma unroll
        for (int i = 2 * half; i < 2 * half + 2; ++i)
        {
            scores[j][i] = exponential<T, EXACT>(scores[j][i], base);
            sum += scores[j][i];
        }
    }
    largest = highest;
    return factor;
}

template <typename T, int D, bool VECTOR, bool EXACT = true>
__global__ void __launch_bounds__(32 * kWarps, kResident<T, D>) blocks(T const* __restrict__ query, T const* __restrict__ key,
    T const* __restrict__ value, T const* __restrict__ bias, T* __restrict__ y, Layout const p)
{
    constexpr int tile = kTile<T, D>;
    constexpr int pitch = kPitch<T, D>;
    constexpr int depth = kDepth<T>;
    constexpr int stage = kStage<T, D>;
    static_assert(stage >= kRows * tile + 16, "a second stage holds the bias of a block's rows");
    __shared__ __align__(16) T stages[2 * stage];

    uint32_t const line = p.byTiles(blockIdx.x);
    uint32_t const batch = p.byHeads(line);
    auto const head = static_cast<int32_t>(line - batch * p.byHeads.divisor);
    uint32_t const group = batch - p.byGroups(batch) * p.byGroups.divisor;
    int64_t const element = batch;
    auto const thread = static_cast<int32_t>(threadIdx.x);
    int32_t const first = static_cast<int32_t>(blockIdx.x - line * p.byTiles.divisor) * kRows;
    int32_t const rows = min(kRows, p.queries - first);
    int32_t const row = thread / 32 * 16 + thread % 32 / 4;
    bool const active = thread / 32 * 16 < rows;

    key += element * p.keys * p.pitches[1] + p.offsets[1] + head * p.size;
    value += element * p.keys * p.pitches[2] + p.offsets[2] + head * p.size;
    auto const load = [&](int32_t begin) {
        T* const to = stages + begin / tile % 2 * stage;
        int32_t const count = min(tile, p.keys - begin);
        loadTile<T, D, VECTOR>(to, key + int64_t{begin} * p.pitches[1], p.pitches[1], count, p.size);
        loadTile<T, D, VECTOR>(to + stage / 2, value + int64_t{begin} * p.pitches[2], p.pitches[2], count, p.size);
    };
    load(0);
    int64_t const before = int64_t{group} * p.groupStep + int64_t{head} * p.headStep + int64_t{first} * p.rowStep;
    bias += before;
    bool const shared = p.rowStep == 0 && p.columnStep == 0;
    bool const staged = !shared && p.wholeRows && p.keys <= tile;
    T const* biases = stages + stage;
    if (staged)
    {
        biases += loadRun(stages + stage, bias, rows * p.keys, before, static_cast<int32_t>(p.biasSize - before));
    }
    float const one = shared ? toFloat(*bias) : 0.0F;
    endCopies();

    uint32_t left[D / depth][4];
    query += (element * p.queries + first) * p.pitches[0] + p.offsets[0] + head * p.size;
    auto const rowOf = [&](int32_t number) { return number < rows ? query + int64_t{number} * p.pitches[0] : nullptr; };
    loadQuery<T, D, VECTOR>(left, rowOf(row), rowOf(row + 8), p.size);

    float sums[D / 8][4] = {};
    float largest[2] = {-infinity(), -infinity()};
    float totals[2] = {0.0F, 0.0F};
    for (int32_t begin = 0; begin < p.keys; begin += tile)
    {
        if (begin + tile < p.keys)
        {
            load(begin + tile);
        }
        endCopies();
        waitForCopies<1>();
        __syncthreads();
        T const* const keys = stages + begin / tile % 2 * stage;
        T const* const values = keys + stage / 2;
        if (active)
        {
            float scores[tile / 8][4] = {};
#pragma unroll
            for (int k = 0; k < D / depth; k += 2)
            {
                Left<T, EXACT> const a(left[k]);
                Left<T, EXACT> const next(left[k + 1]);
#pragma unroll
                for (int j = 0; j < tile / 8; ++j)
                {
                    uint32_t right[2][2];
                    loadRows(right, keys + j * 8 * pitch + k * depth, pitch);
                    multiply<T, EXACT>(scores[j], a, right[0]);
                    multiply<T, EXACT>(scores[j], next, right[1]);
                }
            }
            int32_t const count = min(tile, p.keys - begin);
            if (shared)
            {
                addBias<T, tile>(scores, p.scale, row, [&](int32_t) { return [&](int32_t, int32_t) { return one; }; });
            }
            else if (staged)
            {
                addBias<T, tile>(scores, p.scale, row, [&](int32_t number) {
                    T const* const from = biases + min(number, rows - 1) * p.keys;
                    return [from](int32_t lane, int32_t step) { return toFloat((from + lane)[step]); };
                });
            }
            else
            {
                addBias<T, tile>(scores, p.scale, row, [&](int32_t number) {
                    T const* const from = bias + int64_t{min(number, rows - 1)} * p.rowStep;
                    return [from, begin, &p](int32_t lane, int32_t step) {
                        return toFloat(__ldg(from + min(begin + lane + step, p.keys - 1) * p.columnStep));
                    };
                });
            }
            if (count < tile)
            {
                hideBeyond<tile>(scores, count);
            }
#pragma unroll
            for (int half = 0; half < 2; ++half)
            {
                float const factor = exponentiate<T, EXACT, tile>(scores, half, largest[half], totals[half]);
#pragma unroll
                for (int j = 0; j < D / 8; ++j)
                {
                    sums[j][2 * half] *= factor;
                    sums[j][2 * half + 1] *= factor;
                }
            }
#pragma unroll
            for (int k = 0; k < tile / depth; ++k)
            {
                Left<T, EXACT> const weights = leftOf<T, EXACT>(scores + k * depth / 8);
#pragma unroll
                for (int j = 0; j < D / 8; j += 2)
                {
                    uint32_t right[2][2];
                    loadColumns(right, values + k * depth * pitch + j * 8, pitch);
                    multiply<T, EXACT>(sums[j], weights, right[0]);
                    multiply<T, EXACT>(sums[j + 1], weights, right[1]);
                }
            }
        }
        __syncthreads(); // this tile's place is filled next
    }

    int32_t const t = thread & 3;
#pragma unroll
    for (int half = 0; half < 2; ++half)
    {
        float const inverse = 1.0F / (p.keys > 0 ? sumOfRow(totals[half]) : 1.0F);
        int32_t const number = row + 8 * half;
        T* const to = y + (element * p.queries + first + number) * (p.byHeads.divisor * p.size) + head * p.size;
#pragma unroll
        for (int j = 0; j < D / 8; ++j)
        {
            int32_t const column = 8 * j + 2 * t;
            float const pair[2] = {sums[j][2 * half] * inverse, sums[j][2 * half + 1] * inverse};
            if (VECTOR && number < rows && column < p.size)
            {
                *reinterpret_cast<Pack<T, 2>*>(to + column) = repack<T, 2>(pair);
            }
            else if (number < rows)
            {
#pragma unroll
                for (int i = 0; i < 2; ++i)
                {
                    if (column + i < p.size)
                    {
                        to[column + i] = fromFloat<T>(pair[i]);
                    }
                }
            }
        }
    }
}
} // namespace trtconv::attention
