// hipport_warp.h: logical warps of 32 lanes on wavefronts of 32 and 64, in plain HIP.
// Part of the converted project: keep, change or inline it as you like.
//
// A logical warp is one half of a 64-lane wavefront, or a whole 32-lane one. Every function works
// among the active lanes of the caller's logical warp. Masks are 32 bits, bit i for lane i of it.
#ifndef HIPPORT_WARP_H
#define HIPPORT_WARP_H

#include <hip/hip_runtime.h>

// Lanes may hand over a value that only some of them have set. clang takes by-value parameters as
// always set unless told otherwise, and may then drop the condition under which they are.
#if defined(__has_attribute)
#if __has_attribute(maybe_undef)
#define HIPPORT_VALUE __attribute__((maybe_undef))
#endif
#endif
#ifndef HIPPORT_VALUE
#define HIPPORT_VALUE
#endif

static inline __device__ unsigned int hipport_lane() { return __lane_id() & 31u; }

static inline __device__ unsigned int hipport_ballot(HIPPORT_VALUE int predicate) {
  return static_cast<unsigned int>(__ballot(predicate) >> (__lane_id() & 32u));
}

static inline __device__ unsigned int hipport_active() { return hipport_ballot(1); }

static inline __device__ unsigned int hipport_ballot_sync(unsigned int mask,
                                                          HIPPORT_VALUE int predicate) {
  return hipport_ballot(predicate) & mask;
}

static inline __device__ int hipport_any_sync(unsigned int mask, HIPPORT_VALUE int predicate) {
  return (hipport_ballot(predicate) & mask) != 0u;
}

static inline __device__ int hipport_all_sync(unsigned int mask, HIPPORT_VALUE int predicate) {
  return (hipport_ballot(!predicate) & mask) == 0u;
}

// Orders memory accesses of the wavefront's lanes; lockstep alone does not stop the compiler.
static inline __device__ void hipport_syncwarp() {
  __builtin_amdgcn_fence(__ATOMIC_RELEASE, "wavefront");
  __builtin_amdgcn_wave_barrier();
  __builtin_amdgcn_fence(__ATOMIC_ACQUIRE, "wavefront");
}

// Value of `from`, a lane of the caller's logical warp. Types that HIP's shuffles lack go by words.
template <typename T>
static inline __device__ T hipport_read_lane(HIPPORT_VALUE T value, unsigned int from) {
  union Words {
    T value;
    int words[(sizeof(T) + sizeof(int) - 1) / sizeof(int)];
    __device__ Words() {}
  } out;
  out.value = value;
  for (unsigned int i = 0; i < sizeof(out.words) / sizeof(int); ++i) {
    out.words[i] = __shfl(out.words[i], static_cast<int>(from), 32);
  }
  return out.value;
}

// Lanes of `mask` whose value equals the caller's.
template <typename T>
static inline __device__ unsigned int hipport_match_any_sync(unsigned int mask,
                                                             HIPPORT_VALUE T value) {
  unsigned int left = hipport_active() & mask;
  unsigned int mine = 0u;
  const unsigned int self = 1u << hipport_lane();
  while (left != 0u) {
    const T first = hipport_read_lane(value, static_cast<unsigned int>(__ffs(left) - 1));
    const unsigned int same = hipport_ballot(value == first) & left;
    if (same & self) mine = same;
    left &= ~same;
  }
  return mine;
}

// All lanes of `mask` if they hold one value, else none; `*predicate` says which.
template <typename T>
static inline __device__ unsigned int hipport_match_all_sync(unsigned int mask,
                                                             HIPPORT_VALUE T value,
                                                             int* predicate) {
  const unsigned int lanes = hipport_active() & mask;
  const T first = hipport_read_lane(value, static_cast<unsigned int>(__ffs(lanes) - 1));
  const bool same = (hipport_ballot(value == first) & lanes) == lanes;
  *predicate = same ? 1 : 0;
  return same ? lanes : 0u;
}

template <typename T>
struct hipport_plus {
  __host__ __device__ T operator()(T a, T b) const { return a + b; }
};
template <typename T>
struct hipport_less {
  __host__ __device__ T operator()(T a, T b) const { return b < a ? b : a; }
};
template <typename T>
struct hipport_greater {
  __host__ __device__ T operator()(T a, T b) const { return a < b ? b : a; }
};
template <typename T>
struct hipport_bit_and {
  __host__ __device__ T operator()(T a, T b) const { return a & b; }
};
template <typename T>
struct hipport_bit_or {
  __host__ __device__ T operator()(T a, T b) const { return a | b; }
};
template <typename T>
struct hipport_bit_xor {
  __host__ __device__ T operator()(T a, T b) const { return a ^ b; }
};

// Combines the values of the lanes of `mask`, in the order of the lanes; every lane gets the result.
template <typename T, typename Op>
static inline __device__ T hipport_fold_sync(unsigned int mask, HIPPORT_VALUE T value, Op op) {
  unsigned int left = hipport_active() & mask;
  T result = hipport_read_lane(value, static_cast<unsigned int>(__ffs(left) - 1));
  left &= left - 1u;
  while (left != 0u) {
    result = op(result, hipport_read_lane(value, static_cast<unsigned int>(__ffs(left) - 1)));
    left &= left - 1u;
  }
  return result;
}

template <typename T>
static inline __device__ T hipport_reduce_add_sync(unsigned int mask, HIPPORT_VALUE T value) {
  return hipport_fold_sync(mask, value, hipport_plus<T>());
}
template <typename T>
static inline __device__ T hipport_reduce_min_sync(unsigned int mask, HIPPORT_VALUE T value) {
  return hipport_fold_sync(mask, value, hipport_less<T>());
}
template <typename T>
static inline __device__ T hipport_reduce_max_sync(unsigned int mask, HIPPORT_VALUE T value) {
  return hipport_fold_sync(mask, value, hipport_greater<T>());
}
template <typename T>
static inline __device__ T hipport_reduce_and_sync(unsigned int mask, HIPPORT_VALUE T value) {
  return hipport_fold_sync(mask, value, hipport_bit_and<T>());
}
template <typename T>
static inline __device__ T hipport_reduce_or_sync(unsigned int mask, HIPPORT_VALUE T value) {
  return hipport_fold_sync(mask, value, hipport_bit_or<T>());
}
template <typename T>
static inline __device__ T hipport_reduce_xor_sync(unsigned int mask, HIPPORT_VALUE T value) {
  return hipport_fold_sync(mask, value, hipport_bit_xor<T>());
}

// cg::reduce over a tile whose size is a power of two: every lane of the tile gets the result.
template <typename Tile, typename T, typename Op>
static inline __device__ T hipport_reduce(const Tile& tile, HIPPORT_VALUE T value, Op op) {
  for (unsigned int step = tile.size() / 2; step > 0; step /= 2) {
    value = op(value, hipport_read_lane(value, hipport_lane() ^ step));
  }
  return value;
}

#endif  // HIPPORT_WARP_H
