// hipport_compat.h: small functions that converted CUDA code may call, in plain HIP.
// Part of the converted project: keep, change or inline it as you like.
#ifndef HIPPORT_COMPAT_H
#define HIPPORT_COMPAT_H

#include <hip/hip_runtime.h>

// Bit field of `length` bits from `start`, as PTX bfe: start and length are taken modulo 256, bits
// beyond the top are zero (unsigned) or the sign (signed).
static inline __device__ unsigned int hipport_bfe_u32(unsigned int value, unsigned int start,
                                                      unsigned int length) {
  start &= 255u;
  length &= 255u;
  if (start > 31u || length == 0u) return 0u;
  const unsigned int rest = value >> start;
  return length > 31u ? rest : rest & ((1u << length) - 1u);
}

static inline __device__ int hipport_bfe_s32(int value, unsigned int start, unsigned int length) {
  start &= 255u;
  length &= 255u;
  if (length == 0u) return 0;
  const int rest = value >> (start > 31u ? 31u : start);
  // The sign is the field's last bit, or the value's where the field runs past the top.
  if (start + length > 31u) return rest;
  const unsigned int left = 32u - length;
  return static_cast<int>(static_cast<unsigned int>(rest) << left) >> left;
}

static inline __device__ unsigned long long hipport_bfe_u64(unsigned long long value,
                                                            unsigned int start,
                                                            unsigned int length) {
  start &= 255u;
  length &= 255u;
  if (start > 63u || length == 0u) return 0ull;
  const unsigned long long rest = value >> start;
  return length > 63u ? rest : rest & ((1ull << length) - 1ull);
}

// `insert` put into `base` at `start`, `length` bits, as PTX bfi.
static inline __device__ unsigned int hipport_bfi_b32(unsigned int insert, unsigned int base,
                                                      unsigned int start, unsigned int length) {
  start &= 255u;
  length &= 255u;
  if (start > 31u || length == 0u) return base;
  const unsigned int ones = length > 31u ? 0xffffffffu : (1u << length) - 1u;
  const unsigned int mask = ones << start;
  return (base & ~mask) | ((insert << start) & mask);
}

static inline __device__ unsigned long long hipport_bfi_b64(unsigned long long insert,
                                                            unsigned long long base,
                                                            unsigned int start,
                                                            unsigned int length) {
  start &= 255u;
  length &= 255u;
  if (start > 63u || length == 0u) return base;
  const unsigned long long ones = length > 63u ? ~0ull : (1ull << length) - 1ull;
  const unsigned long long mask = ones << start;
  return (base & ~mask) | ((insert << start) & mask);
}

// Byte permute as PTX prmt in its default mode: bit 3 of a selector replicates the byte's sign.
static inline __device__ unsigned int hipport_prmt(unsigned int low, unsigned int high,
                                                   unsigned int selector) {
  const unsigned long long bytes = (static_cast<unsigned long long>(high) << 32) | low;
  unsigned int result = 0u;
  for (int i = 0; i < 4; ++i) {
    const unsigned int pick = selector >> (4 * i);
    const unsigned int byte = static_cast<unsigned int>(bytes >> (8 * (pick & 7u))) & 0xffu;
    const unsigned int sign = (byte & 0x80u) ? 0xffu : 0u;
    result |= ((pick & 8u) ? sign : byte) << (8 * i);
  }
  return result;
}

// Four 8-bit products summed onto c, as CUDA's __dp4a; overflow wraps.
static inline __device__ int hipport_dp4a(int a, int b, int c) {
#if defined(__gfx906__) || defined(__gfx908__) || defined(__gfx90a__) || defined(__gfx942__) || \
    defined(__gfx950__) || defined(__gfx1030__)
  return __builtin_amdgcn_sdot4(a, b, c, false);
#elif defined(__gfx1100__) || defined(__gfx1101__) || defined(__gfx1102__) || \
    defined(__gfx1103__) || defined(__gfx1150__) || defined(__gfx1151__) || \
    defined(__gfx1200__) || defined(__gfx1201__)
  return __builtin_amdgcn_sudot4(true, a, true, b, c, false);
#else
  unsigned int sum = static_cast<unsigned int>(c);
  for (int i = 0; i < 32; i += 8) {
    sum += static_cast<unsigned int>(static_cast<signed char>(a >> i) *
                                     static_cast<signed char>(b >> i));
  }
  return static_cast<int>(sum);
#endif
}

static inline __device__ unsigned int hipport_dp4a(unsigned int a, unsigned int b, unsigned int c) {
  unsigned int sum = c;
  for (int i = 0; i < 32; i += 8) sum += ((a >> i) & 0xffu) * ((b >> i) & 0xffu);
  return sum;
}

static inline __device__ int hipport_dp2a_lo(int a, int b, int c) {
  return static_cast<int>(static_cast<unsigned int>(c) +
                          static_cast<unsigned int>(static_cast<short>(a) *
                                                    static_cast<signed char>(b)) +
                          static_cast<unsigned int>(static_cast<short>(a >> 16) *
                                                    static_cast<signed char>(b >> 8)));
}

static inline __device__ unsigned int hipport_dp2a_lo(unsigned int a, unsigned int b,
                                                      unsigned int c) {
  return c + (a & 0xffffu) * (b & 0xffu) + (a >> 16) * ((b >> 8) & 0xffu);
}

static inline __device__ int hipport_dp2a_hi(int a, int b, int c) {
  return hipport_dp2a_lo(a, b >> 16, c);
}

static inline __device__ unsigned int hipport_dp2a_hi(unsigned int a, unsigned int b,
                                                      unsigned int c) {
  return hipport_dp2a_lo(a, b >> 16, c);
}

#endif  // HIPPORT_COMPAT_H
