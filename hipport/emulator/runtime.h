/* What every translated kernel stands on: number formats, memory with checks, the scheduler.
 *
 * The translator defines before including this text:
 *   L            lanes of a wavefront (32 or 64)
 *   NV           vector registers a wavefront has
 *   NSITES       memory accesses in the kernel
 *   HP_UNINIT, HP_RACES, HP_LANES, HP_ALIGN, HP_BARRIER   1 for each optional check
 */
#include <stdint.h>
#include <stddef.h>

typedef uint8_t u8; typedef uint16_t u16; typedef uint32_t u32; typedef uint64_t u64;
typedef int8_t i8; typedef int16_t i16; typedef int32_t i32; typedef int64_t i64;
typedef unsigned __int128 u128; typedef __int128 i128;

void *memset(void *, int, size_t); void *memcpy(void *, const void *, size_t);
void *calloc(size_t, size_t); void *malloc(size_t); void free(void *);
double exp2(double); double log2(double); double sin(double); double cos(double);
double floor(double); double trunc(double); double rint(double); double sqrt(double);
double ldexp(double, int); double frexp(double, int *); double fmod(double, double);
float rintf(float); float floorf(float); float truncf(float); float ceilf(float);
double ceil(double); float sqrtf(float); float ldexpf(float, int); float frexpf(float, int *);
int sched_yield(void);

#define LIKELY(x) __builtin_expect(!!(x), 1)
#define UNLIKELY(x) __builtin_expect(!!(x), 0)
#define INLINE static inline __attribute__((always_inline))
#define FULL (L == 64 ? ~0ull : 0xffffffffull)

/* ------------------------------------------------------------------ bits */
INLINE u32 f2u(float x) { u32 r; __builtin_memcpy(&r, &x, 4); return r; }
INLINE float u2f(u32 x) { float r; __builtin_memcpy(&r, &x, 4); return r; }
INLINE u64 d2u(double x) { u64 r; __builtin_memcpy(&r, &x, 8); return r; }
INLINE double u2d(u64 x) { double r; __builtin_memcpy(&r, &x, 8); return r; }
INLINE u32 shlu32(u32 x, u32 n) { return n < 32 ? x << (n & 31) : 0; }
INLINE i32 shli32(i32 x, u32 n) { return n < 32 ? (i32)((u32)x << (n & 31)) : 0; }
INLINE u64 shlu64(u64 x, u32 n) { return n < 64 ? x << (n & 63) : 0; }
INLINE i64 shli64(i64 x, u32 n) { return n < 64 ? (i64)((u64)x << (n & 63)) : 0; }
INLINE u32 shru32(u32 x, u32 n) { return n < 32 ? x >> (n & 31) : 0; }
INLINE i32 shri32(i32 x, u32 n) { return x >> (n < 32 ? n : 31); }
INLINE u64 shru64(u64 x, u32 n) { return n < 64 ? x >> (n & 63) : 0; }
INLINE i64 shri64(i64 x, u32 n) { return x >> (n < 64 ? n : 63); }
INLINE u128 shlu128(u128 x, u32 n) { return n < 128 ? x << n : 0; }
INLINE u128 shru128(u128 x, u32 n) { return n < 128 ? x >> n : 0; }
INLINE i32 sext_from32(u32 x, u32 n) {
  if (n == 0) return 0;
  return n >= 32 ? (i32)x : (i32)(x << (32 - n)) >> (32 - n);
}
INLINE i64 sext_from64(u64 x, u32 n) {
  if (n == 0) return 0;
  return n >= 64 ? (i64)x : (i64)(x << (64 - n)) >> (64 - n);
}
INLINE u32 brev32(u32 x) {
  x = ((x >> 1) & 0x55555555u) | ((x & 0x55555555u) << 1);
  x = ((x >> 2) & 0x33333333u) | ((x & 0x33333333u) << 2);
  x = ((x >> 4) & 0x0f0f0f0fu) | ((x & 0x0f0f0f0fu) << 4);
  return __builtin_bswap32(x);
}
INLINE u64 brev64(u64 x) { return (u64)brev32((u32)x) << 32 | brev32((u32)(x >> 32)); }
INLINE u32 popc32(u32 x) {
  x -= (x >> 1) & 0x55555555u;
  x = (x & 0x33333333u) + ((x >> 2) & 0x33333333u);
  x = (x + (x >> 4)) & 0x0f0f0f0fu;
  return (x * 0x01010101u) >> 24;
}
INLINE i32 ctz32(u32 x) { return x ? __builtin_ctz(x) : -1; }
INLINE i32 ctz64(u64 x) { return x ? __builtin_ctzll(x) : -1; }
INLINE i32 clz32(u32 x) { return x ? __builtin_clz(x) : -1; }
INLINE i32 clz64(u64 x) { return x ? __builtin_clzll(x) : -1; }
INLINE i32 cls32(i32 x) { u32 y = (u32)(x ^ (x >> 31)); return y ? __builtin_clz(y) : -1; }
INLINE i32 cls64(i64 x) { u64 y = (u64)(x ^ (x >> 63)); return y ? __builtin_clzll(y) : -1; }

/* ------------------------------------------------------------------ floating point
 * Denormals of f32 are flushed where the kernel's mode says so; f16 and f64 share one mode bit. */
INLINE float flush_(float x) {
  u32 b = f2u(x);
  return (b & 0x7f800000u) ? x : u2f(b & 0x80000000u);
}
/* `ftz` is in scope wherever the translator writes these */
#define fl32(x) (ftz ? flush_(x) : (x))
#define u2fi(x) (ftz ? flush_(u2f(x)) : u2f(x))
int fesetround(int);
#if defined(__x86_64__) || defined(__i386__)
#define HOST_ROUND {0, 0x800, 0x400, 0xc00}   /* nearest, up, down, zero */
#elif defined(__aarch64__)
#define HOST_ROUND {0, 0x400000, 0x800000, 0xc00000}
#else
#define HOST_ROUND {0, 0, 0, 0}
#endif
/* MODE bits 0-1 round f32, 2-3 round f64 and f16; the host has one mode for both */
static void host_round(u32 mode) {
  static const int host[4] = HOST_ROUND;
  u32 f = mode & 3, d = (mode >> 2) & 3;
  fesetround(host[f ? f : d]);
}
INLINE float h2f(u32 h) {
  u32 s = (h & 0x8000u) << 16, e = (h >> 10) & 31, m = h & 0x3ffu;
  u32 normal = s | ((e + 112) << 23) | (m << 13);
  u32 special = s | 0x7f800000u | (m << 13);
  float tiny = (float)(i32)m * 0x1p-24f;
  u32 small = s | f2u(tiny);
  return u2f(e == 31 ? special : e == 0 ? small : normal);
}
INLINE u32 f2h(float f) {
  u32 x = f2u(f), s = (x >> 16) & 0x8000u, a = x & 0x7fffffffu;
  /* normal: round to nearest even on the 13 dropped bits */
  u32 n = (a - 0x38000000u + 0xfffu + ((a >> 13) & 1)) >> 13;
  /* denormal: add a number whose unit in the last place is 2^-24 */
  u32 d = f2u(u2f(a) + 0.5f) - 0x3f000000u;
  u32 r = a >= 0x38800000u ? n : d;
  r = a >= 0x477ff000u ? 0x7c00u : r;
  r = a > 0x7f800000u ? (0x7e00u | ((a >> 13) & 0x3ffu)) : r;
  return s | r;
}
INLINE u32 f2h_rtz(float f) {
  u32 x = f2u(f), s = (x >> 16) & 0x8000u, a = x & 0x7fffffffu;
  if (a > 0x7f800000u) return s | 0x7e00u | ((a >> 13) & 0x3ffu);
  if (a == 0x7f800000u) return s | 0x7c00u;
  if (a >= 0x47800000u) return s | 0x7bffu;
  if (a >= 0x38800000u) return s | ((a - 0x38000000u) >> 13);
  u32 sh = 113 - (a >> 23);
  if (sh > 24) return s;
  return s | (((a & 0x7fffffu) | 0x800000u) >> (13 + sh));
}
INLINE float rh(float x) { return h2f(f2h(x)); }
/* double to float, rounding to odd: a second rounding to a narrower format is then exact */
INLINE float d2f_odd(double d) {
  float f = (float)d;
  double back = (double)f;
  u32 b = f2u(f);
  if (back == d || d != d || (b & 0x7fffffffu) == 0x7f800000u) {
    if ((b & 0x7fffffffu) == 0x7f800000u && back != d) return u2f((b & 0x80000000u) | 0x7f7fffffu);
    return f;
  }
  if (!(b & 1)) {
    double ab = back < 0 ? -back : back, ad = d < 0 ? -d : d;
    b = ab > ad ? b - 1 : b + 1;
    if ((b & 0x7fffffffu) == 0x7fffffffu) b = (d < 0 ? 0x80000001u : 1u);
  }
  return u2f(b);
}
INLINE u32 d2h(double d) { return f2h(d2f_odd(d)); }
INLINE float d2h_f(double d) { return h2f(d2h(d)); }
INLINE u32 fma_h(float a, float b, float c) { return d2h((double)a * (double)b + (double)c); }
INLINE float bf2f(u32 x) { return u2f(x << 16); }
INLINE u32 f2bf(float f) {
  u32 x = f2u(f);
  u32 r = (x + 0x7fffu + ((x >> 16) & 1)) >> 16;
  return (x & 0x7fffffffu) > 0x7f800000u ? (x >> 16) | 0x40u : r;
}
INLINE u32 isnan_h(u32 x) { return (x & 0x7fffu) > 0x7c00u; }
INLINE u32 isnan_f(u32 x) { return (x & 0x7fffffffu) > 0x7f800000u; }
INLINE u32 isnan_bf(u32 x) { return (x & 0x7fffu) > 0x7f80u; }
INLINE u32 isnan_d(u64 x) { return (x & 0x7fffffffffffffffull) > 0x7ff0000000000000ull; }
INLINE u32 issnan_h(u32 x) { return isnan_h(x) && !(x & 0x200u); }
INLINE u32 issnan_f(u32 x) { return isnan_f(x) && !(x & 0x400000u); }
INLINE u32 issnan_d(u64 x) { return isnan_d(x) && !(x & 0x8000000000000ull); }
INLINE u32 isqnan_h(u32 x) { return isnan_h(x) && (x & 0x200u); }
INLINE u32 isqnan_f(u32 x) { return isnan_f(x) && (x & 0x400000u); }
INLINE u32 isqnan_d(u64 x) { return isnan_d(x) && (x & 0x8000000000000ull); }
/* ldexp without double rounding: scale in double, once */
INLINE double ldexp_d(double x, i32 e) { return ldexp(x, e); }
INLINE float ldexp_f(float x, i32 e) {
  if (e > 600) e = 600;
  if (e < -600) e = -600;
  return (float)((double)x * u2d((u64)(1023 + e) << 52));
}
INLINE float frexp_f(float x) { int e; return frexpf(x, &e); }
INLINE double frexp_d(double x) { int e; return frexp(x, &e); }

/* saturating conversions; NaN gives 0 */
INLINE i32 cvt_f_i32(float x) {
  return x != x ? 0 : x >= 0x1p31f ? 0x7fffffff : x <= -0x1p31f ? (i32)0x80000000 : (i32)x;
}
INLINE u32 cvt_f_u32(float x) {
  float y = x > 0x1.fffffep31f ? 0.0f : x;
  y = y > 0.0f ? y : 0.0f;
  /* through signed halves, which every vector unit has */
  u32 r = y >= 0x1p31f ? (u32)(i32)(y - 0x1p31f) + 0x80000000u : (u32)(i32)y;
  return x > 0x1.fffffep31f ? 0xffffffffu : r;
}
INLINE i32 cvt_d_i32(double x) {
  return x != x ? 0 : x >= 0x1p31 ? 0x7fffffff : x <= -0x1p31 ? (i32)0x80000000 : (i32)x;
}
INLINE u32 cvt_d_u32(double x) { return !(x > 0) ? 0 : x >= 0x1p32 ? 0xffffffffu : (u32)(i64)x; }
INLINE i32 cvt_f_i16(float x) { return x != x ? 0 : x >= 32767.f ? 32767 : x <= -32768.f ? -32768 : (i32)x; }
INLINE u32 cvt_f_u16(float x) { return !(x > 0) ? 0 : x >= 65535.f ? 65535u : (u32)(i32)x; }
INLINE u32 cvt_f_u8(float x) {
  /* V_CVT_PK_U8_F32 rounds to nearest even and saturates */
  return !(x > 0) ? 0 : x >= 255.f ? 255u : (u32)(i32)rintf(x);
}
INLINE u32 sat_u32_u16(u32 x) { return x > 65535u ? 65535u : x; }
INLINE i32 sat_i32_i16(i32 x) { return x > 32767 ? 32767 : x < -32768 ? -32768 : x; }
INLINE i32 p_snorm(float x) {
  float y = x != x ? 0.f : x > 1.f ? 1.f : x < -1.f ? -1.f : x;
  return (i32)rintf(y * 32767.f);
}
INLINE u32 p_unorm(float x) {
  float y = x != x ? 0.f : x > 1.f ? 1.f : x < 0.f ? 0.f : x;
  return (u32)(i32)rintf(y * 65535.f);
}
/* minimum and maximum of the number kind: a NaN loses, -0 < +0 */
#define MINMAX(name, T, U, tobits, frombits, sbit, one)                                    \
  INLINE T p_min_##name(T a, T b) {                                                        \
    T r = a < b ? a : b;                                                                   \
    T z = frombits(tobits(a) | tobits(b));                                                 \
    r = a == b ? z : r;                                                                    \
    r = a != a ? b : r;                                                                    \
    r = b != b ? a : r;                                                                    \
    return one ? r : r;                                                                    \
  }                                                                                        \
  INLINE T p_max_##name(T a, T b) {                                                        \
    T r = a > b ? a : b;                                                                   \
    T z = frombits(tobits(a) & tobits(b));                                                 \
    r = a == b ? z : r;                                                                    \
    r = a != a ? b : r;                                                                    \
    r = b != b ? a : r;                                                                    \
    return r;                                                                              \
  }                                                                                        \
  INLINE T p_minimum_##name(T a, T b) { T r = p_min_##name(a, b); return a != a ? a : b != b ? b : r; } \
  INLINE T p_maximum_##name(T a, T b) { T r = p_max_##name(a, b); return a != a ? a : b != b ? b : r; }
MINMAX(f32, float, u32, f2u, u2f, 0x80000000u, 1)
MINMAX(f64, double, u64, d2u, u2d, 0x8000000000000000ull, 1)
MINMAX(f16, float, u32, f2u, u2f, 0x80000000u, 1)
/* V_MIN_F32 and V_MAX_F32 with IEEE mode: a signalling NaN wins, quieted */
INLINE u32 ieee_min_f32(u32 a, u32 b) {
  u32 r = f2u(p_min_f32(u2f(a), u2f(b)));
  u32 sa = isnan_f(a) & !(a & 0x400000u), sb = isnan_f(b) & !(b & 0x400000u);
  r = sb ? b | 0x400000u : r;
  return sa ? a | 0x400000u : r;
}
INLINE u32 ieee_max_f32(u32 a, u32 b) {
  u32 r = f2u(p_max_f32(u2f(a), u2f(b)));
  u32 sa = isnan_f(a) & !(a & 0x400000u), sb = isnan_f(b) & !(b & 0x400000u);
  r = sb ? b | 0x400000u : r;
  return sa ? a | 0x400000u : r;
}
INLINE float p_imin_f32(float a, float b) { return u2f(ieee_min_f32(f2u(a), f2u(b))); }
INLINE float p_imax_f32(float a, float b) { return u2f(ieee_max_f32(f2u(a), f2u(b))); }
#define p_imin_f16 p_imin_f32
#define p_imax_f16 p_imax_f32
INLINE u64 ieee_snan(u64 a) { return isnan_d(a) && !(a & 0x8000000000000ull); }
INLINE double p_imin_f64(double a, double b) {
  u64 x = d2u(a), y = d2u(b), q = 0x8000000000000ull;
  return ieee_snan(x) ? u2d(x | q) : ieee_snan(y) ? u2d(y | q) : p_min_f64(a, b);
}
INLINE double p_imax_f64(double a, double b) {
  u64 x = d2u(a), y = d2u(b), q = 0x8000000000000ull;
  return ieee_snan(x) ? u2d(x | q) : ieee_snan(y) ? u2d(y | q) : p_max_f64(a, b);
}
#define IMINMAX(name, T)                                      \
  INLINE T p_min_##name(T a, T b) { return a < b ? a : b; }   \
  INLINE T p_max_##name(T a, T b) { return a > b ? a : b; }
IMINMAX(i32, i32) IMINMAX(u32, u32) IMINMAX(i16, i32) IMINMAX(u16, u32)
INLINE u32 absdiff(u32 a, u32 b) { return a > b ? a - b : b - a; }
INLINE u32 p_sad_u8(u32 a, u32 b, u32 c) {
  for (int i = 0; i < 32; i += 8) c += absdiff((a >> i) & 255, (b >> i) & 255);
  return c;
}
INLINE u32 p_msad_u8(u32 a, u32 b, u32 c) {
  for (int i = 0; i < 32; i += 8)
    if ((b >> i) & 255) c += absdiff((a >> i) & 255, (b >> i) & 255);
  return c;
}
INLINE float p_floor_f(float x) { return floorf(x); }
INLINE double p_floor_d(double x) { return floor(x); }
INLINE float p_trunc_f(float x) { return truncf(x); }
INLINE double p_trunc_d(double x) { return trunc(x); }
INLINE float p_sqrt_f(float x) { return sqrtf(x); }
INLINE double p_sqrt_d(double x) { return sqrt(x); }
INLINE float p_fract_f(float x) {
  float r = x - floorf(x);
  return r >= 1.0f ? 0x1.fffffep-1f : r;
}
INLINE double p_fract_d(double x) {
  double r = x - floor(x);
  return r >= 1.0 ? 0x1.fffffffffffffp-1 : r;
}
INLINE float h_fract(float x) {
  float r = x - floorf(x);
  return r >= 0x1.ffep-1f ? 0x1.ffcp-1f : r;
}
INLINE float p_log2_f(float x) { return (float)log2((double)x); }
INLINE float p_exp2_f(float x) { return (float)exp2((double)x); }
/* V_SIN and V_COS take revolutions: reduce exactly before multiplying by 2 pi */
INLINE double turns(double x) {
  if (!(x - x == 0)) return __builtin_nan("");
  return fmod(x, 1.0) * 6.283185307179586476925286766559;
}
INLINE double sin_turns(double x) {
  double r = fmod(x, 1.0);
  if (r == 0.0 || r == 0.5 || r == -0.5) return __builtin_copysign(0.0, x);
  return sin(turns(x));
}
INLINE double cos_turns(double x) {
  double r = fmod(x < 0 ? -x : x, 1.0);
  if (r == 0.25 || r == 0.75) return 0.0;
  return cos(turns(x));
}
INLINE u32 p_iseven(double x) { return fmod(x, 2.0) == 0.0; }

/* ------------------------------------------------------------------ 8-bit floats
 * FNUZ formats of gfx940: bias 8 (fp8) or 16 (bf8), no infinities, 0x80 is the only NaN. */
INLINE float fp8_to_f(u32 x) {
  u32 e = (x >> 3) & 15, m = x & 7;
  float v = e ? u2f(((e - 8 + 127) << 23) | (m << 20)) : (float)(i32)m * 0x1p-10f;
  if ((x & 0xff) == 0x80) return u2f(0x7fc00000u);
  return (x & 0x80) ? -v : v;
}
INLINE float bf8_to_f(u32 x) {
  u32 e = (x >> 2) & 31, m = x & 3;
  float v = e ? u2f(((e - 16 + 127) << 23) | (m << 21)) : (float)(i32)m * 0x1p-17f;
  if ((x & 0xff) == 0x80) return u2f(0x7fc00000u);
  return (x & 0x80) ? -v : v;
}
static u32 f_to_8(float f, int mbits, int bias, int clamp) {
  u32 x = f2u(f), sign = (x >> 24) & 0x80u, a = x & 0x7fffffffu;
  u32 emax = mbits == 3 ? 15 : 31, top = (emax << mbits) | ((1u << mbits) - 1);
  if (a > 0x7f800000u) return 0x80;
  if (a == 0x7f800000u) return clamp ? sign | top : 0x80;
  if (a == 0) return 0;
  i32 e = (i32)(a >> 23) - 127 + bias;
  u64 m = (a & 0x7fffffu) | ((a >> 23) ? 0x800000u : 0);
  i32 drop = 23 - mbits;
  if (e < 1) { drop += 1 - e; e = 0; }
  if (drop > 40) return 0;
  u64 half = 1ull << (drop - 1), rest = m & ((1ull << drop) - 1), q = m >> drop;
  if (rest > half || (rest == half && (q & 1))) q++;
  u32 r;
  if (e == 0) r = (u32)q;
  else r = ((u32)e << mbits) + (u32)q - (1u << mbits);
  if (r > top) return clamp ? sign | top : 0x80;
  return r ? sign | r : 0;
}

/* ------------------------------------------------------------------ machine state */
enum { READY = 0, AT_BARRIER = 1, DONE = 2, YIELD = 3, FAULTED = 4 };
enum {
  F_NONE, F_BOUNDS, F_READONLY, F_LDS, F_SCRATCH, F_ALIGN, F_UNINIT, F_UNINIT_LDS, F_RACE, F_LDS_RACE,
  F_BARRIER, F_LANE, F_BUDGET, F_TRAP, F_JUMP, F_DEADLOCK, F_MODE, F_MESSAGE
};

struct Shadow;
typedef struct { u64 lo, hi; u32 flags, id; u8 *init; struct Shadow *shadow; } Region;  /* flags: 1 = writable */
typedef struct { u64 lo, len; Region *r; } Hit;

typedef struct {
  u32 kind, site, lane, size, wave, write;
  u64 addr, group, other, other_site;
} Fault;

typedef struct {
  u64 groups, next, budget, slice;
  u32 grid[3], block[3];
  u32 threads, waves, lds_size, scratch_size;
  u32 user[64]; u32 user_count;
  u32 id_enable;       /* 1 2 4: work-group ids in SGPRs; 8: work-group info; 16: scratch offset */
  u32 id_mode;         /* 0 x only, 1 x y, 2 x y z packed in v0 */
  u32 mode, stop;
  u32 nregions; u32 deterministic;
  Region *regions;
  u64 image;
  u64 instructions;
  u32 resident_limit, pad;
} Ctx;

typedef struct {
  u32 s[136];
  u32 scc, resume, state, id, mode, pad;
  u64 icount, tick, live, group, missing;
  u32 *v;
  u8 *scratch;
} Wave;

typedef struct Group {
  u8 *lds; u8 *lds_init; struct Shadow *lds_shadow;
  u64 id; u32 active, used;
  u64 epoch;
  Wave *waves;
  u32 *regs; u8 *scratch;
} Group;

typedef struct {
  Ctx *c;
  Group *g;
  Fault fault;
  u8 *pending; u8 pend_old[16];
  u64 pend_addr; u32 pend_n, pend_site, pend_lane, pend_kind, pend_other, pend_group, pend_osite, pend_wave, serial;
  u64 pend_mine;
  Hit hits[NSITES + 1];
} Worker;

#define SHARED_HI 0x10000u
#define PRIVATE_HI 0x20000u

static __attribute__((noinline, cold)) u8 *fail(Worker *k, Wave *w, u32 kind, u32 site, u32 lane,
                                                u64 addr, u32 n, u32 write) {
  Fault *f = &k->fault;
  if (f->kind == F_NONE) {
    f->kind = kind; f->site = site; f->lane = lane; f->addr = addr; f->size = n;
    f->write = write; f->group = w->group; f->wave = w->id;
  }
  return 0;
}

static __attribute__((noinline)) u8 *find(Worker *k, Wave *w, u32 site, u64 a, u32 n, u32 write, u32 lane) {
  Ctx *c = k->c;
  u32 lo = 0, hi = c->nregions;
  while (lo < hi) {
    u32 mid = (lo + hi) / 2;
    if (c->regions[mid].hi <= a) lo = mid + 1; else hi = mid;
  }
  if (lo < c->nregions) {
    Region *r = &c->regions[lo];
    if (a >= r->lo && a + n <= r->hi) {
      if (write && !(r->flags & 1)) return fail(k, w, F_READONLY, site, lane, a, n, write);
      Hit *h = &k->hits[site];
      h->lo = r->lo; h->len = r->hi - r->lo; h->r = r;
      return (u8 *)a;
    }
  }
  return fail(k, w, F_BOUNDS, site, lane, a, n, write);
}

#if HP_RACES
/* One record a byte: the last write and the last reads, by whom, in which barrier interval.
 * Accesses of one wavefront in different instructions are ordered; those of two wavefronts of a
 * block are ordered only by a barrier; those of two blocks never, unless the later block has done a
 * global atomic before (the usual hand-over by a counter or flag). */
struct Shadow {
  u32 wgroup, rgroup, wepoch, repoch, wserial, wsite, rsite;
  u16 wthread, rthread;
  u8 wkind, rkind; /* 0 none, 1 plain, 2 atomic (reads: 1 one wavefront, 2 several) */
};
static __attribute__((noinline)) u8 *race(Worker *k, Wave *w, u32 kind, u32 site, u32 lane, u64 a, u32 n,
                                          u32 write, u32 group, u32 thread, u32 other_site) {
  if (k->fault.kind == F_NONE) {
    fail(k, w, kind, site, lane, a, n, write);
    k->fault.other = (u64)group << 16 | thread;
    k->fault.other_site = other_site;
  }
  return 0;
}
/* two unordered stores to one place race only if the second leaves another value */
static int race_settle(Worker *k, Wave *w) {
  if (!k->pending) return 1;
  u8 *p = k->pending;
  k->pending = 0;
  for (u32 i = 0; i < k->pend_n; i++)
    if (p[i] != k->pend_old[i]) {
      race(k, w, k->pend_kind, k->pend_site, k->pend_lane, k->pend_addr, k->pend_n, 1, k->pend_group,
           k->pend_other, k->pend_osite);
      k->fault.wave = k->pend_wave; k->fault.group = k->pend_mine;
      return 0;
    }
  return 1;
}
static void race_defer(Worker *k, Wave *w, u32 kind, u32 site, u64 a, u8 *p, u32 n, u32 lane, struct Shadow *x) {
  if (k->pending) return;
  k->pending = p; k->pend_n = n; k->pend_site = site; k->pend_lane = lane; k->pend_addr = a;
  k->pend_wave = w->id; k->pend_mine = w->group;
  k->pend_kind = kind; k->pend_other = x->wthread; k->pend_group = x->wgroup; k->pend_osite = x->wsite;
  for (u32 b = 0; b < n; b++) k->pend_old[b] = p[b];
}
static int race_check(Worker *k, Wave *w, u32 kind, u32 site, u64 a, u8 *p, u32 n, u32 write, u32 lane,
                      struct Shadow *sh) {
  if (!race_settle(k, w)) return 0;
  u32 group = (u32)w->group, epoch = (u32)k->g->epoch, thread = w->id * L + lane, wave = w->id;
  int atomic = write == 3, synced = k->g->used;
  for (u32 i = 0; i < n; i++) {
    struct Shadow *x = &sh[i];
    if (x->wkind && !(atomic && x->wkind == 2)) {
      int bad = 0;
      if (x->wgroup != group) bad = (write || x->wkind == 1) && !synced;
      else if (x->wthread / L != wave) bad = x->wepoch == epoch && (write ? 1 : x->wkind == 1);
      else bad = write && x->wserial == k->serial && x->wthread != thread && !atomic;
      if (bad && write && !atomic && x->wkind == 1) race_defer(k, w, kind, site, a, p, n, lane, x);
      else if (bad) { race(k, w, kind, site, lane, a, n, write, x->wgroup, x->wthread, x->wsite); return 0; }
    }
    if (write && !atomic && x->rkind) {
      int bad = 0;
      if (x->rgroup != group) bad = !synced;
      else if (x->repoch == epoch) bad = x->rkind == 2 || x->rthread / L != wave;
      if (bad) { race(k, w, kind, site, lane, a, n, write, x->rgroup, x->rthread, x->rsite); return 0; }
    }
    if (write) {
      x->wkind = atomic ? 2 : 1; x->wgroup = group; x->wepoch = epoch; x->wthread = (u16)thread;
      x->wserial = k->serial; x->wsite = site;
    } else {
      int many = x->rkind && x->rgroup == group && x->repoch == epoch &&
                 (x->rkind == 2 || x->rthread / L != wave);
      x->rkind = many ? 2 : 1; x->rgroup = group; x->repoch = epoch; x->rthread = (u16)thread;
      x->rsite = site;
    }
  }
  if (atomic && kind == F_RACE) k->g->used = 1;
  return 1;
}
#define RACE_TICK (k->serial++)
#else
#define RACE_TICK (void)0
#endif
#if HP_UNINIT
INLINE int init_check(u8 *m, u32 n, u32 write, u32 *at) {
  if (write != 1)
    for (u32 i = 0; i < n; i++)
      if (!m[i]) { *at = i; return 0; }
  if (write) memset(m, 1, n);
  return 1;
}
#endif

INLINE u8 *gptr(Worker *k, Wave *w, u32 site, u64 a, u32 n, u32 write, u32 lane) {
  Hit *h = &k->hits[site];
  u64 d = a - h->lo;
  u8 *p = (u8 *)a;
#if HP_ALIGN
  if (UNLIKELY(a & ((n >= 4 ? 4 : n) - 1))) return fail(k, w, F_ALIGN, site, lane, a, n, write);
#endif
  if (UNLIKELY(!(d < h->len && d + n <= h->len))) { p = find(k, w, site, a, n, write, lane); if (!p) return 0; }
#if HP_UNINIT
  Region *r = k->hits[site].r;
  u32 at;
  if (r->init && !init_check(r->init + (a - r->lo), n, write, &at))
    return fail(k, w, F_UNINIT, site, lane, a + at, n, 0);
#endif
#if HP_RACES
  Region *q = k->hits[site].r;
  if (q->shadow && !race_check(k, w, F_RACE, site, a, p, n, write, lane, q->shadow + (a - q->lo))) return 0;
#endif
  return p;
}
INLINE u8 *lptr(Worker *k, Wave *w, u32 site, u32 a, u32 n, u32 write, u32 lane) {
  u32 size = k->c->lds_size;
  if (UNLIKELY((u64)a + n > size)) return fail(k, w, F_LDS, site, lane, a, n, write);
#if HP_ALIGN
  if (UNLIKELY(a & ((n >= 4 ? 4 : n) - 1))) return fail(k, w, F_ALIGN, site, lane, a, n, write);
#endif
#if HP_UNINIT
  u32 at;
  if (!init_check(k->g->lds_init + a, n, write, &at))
    return fail(k, w, F_UNINIT_LDS, site, lane, a + at, n, 0);
#endif
#if HP_RACES
  if (!race_check(k, w, F_LDS_RACE, site, a, k->g->lds + a, n, write, lane, k->g->lds_shadow + a)) return 0;
#endif
  return k->g->lds + a;
}
INLINE u8 *sptr(Worker *k, Wave *w, u32 site, u32 a, u32 n, u32 write, u32 lane) {
  u32 size = k->c->scratch_size;
  if (UNLIKELY((u64)a + n > size)) return fail(k, w, F_SCRATCH, site, lane, a, n, write);
  return w->scratch + (size_t)lane * size + a;
}
INLINE u8 *fptr(Worker *k, Wave *w, u32 site, u64 a, u32 n, u32 write, u32 lane) {
  u32 hi = (u32)(a >> 32);
  if (hi == SHARED_HI) return lptr(k, w, site, (u32)a, n, write, lane);
  if (hi == PRIVATE_HI) return sptr(k, w, site, (u32)a, n, write, lane);
  return gptr(k, w, site, a, n, write, lane);
}
INLINE u32 ld8(const u8 *p) { return *p; }
INLINE u32 ld16(const u8 *p) { u16 x; __builtin_memcpy(&x, p, 2); return x; }
INLINE u32 ld32(const u8 *p) { u32 x; __builtin_memcpy(&x, p, 4); return x; }
INLINE u64 ld64(const u8 *p) { u64 x; __builtin_memcpy(&x, p, 8); return x; }
INLINE void st8(u8 *p, u32 x) { *p = (u8)x; }
INLINE void st16(u8 *p, u32 x) { u16 y = (u16)x; __builtin_memcpy(p, &y, 2); }
INLINE void st32(u8 *p, u32 x) { __builtin_memcpy(p, &x, 4); }

/* ------------------------------------------------------------------ lanes */
INLINE void expand(u64 m, u32 *out) {
  u32 lo = (u32)m, hi = (u32)(m >> 32);
  for (int l = 0; l < 32; l++) out[l] = -((lo >> l) & 1);
  if (L == 64) for (int l = 0; l < 32; l++) out[32 + l % 32] = -((hi >> l) & 1);
}
#if HP_BARRIER
/* a lane that a barrier left out and that runs again had not exited: the barrier was divergent */
#define REJOIN do { if (UNLIKELY(w->missing & (S[126] | (L == 64 ? (u64)S[127] << 32 : 0)))) { \
  u64 miss_ = w->missing & (S[126] | (L == 64 ? (u64)S[127] << 32 : 0)); \
  fail(k, w, F_BARRIER, w->pad, (u32)__builtin_ctzll(miss_), 0, 0, 0); goto fault; } } while (0)
#else
#define REJOIN (void)0
#endif
INLINE u64 pack(const u32 *m) {
  u64 r = 0;
  for (int l = 0; l < L; l += 8) {
    u32 b = 0;
    for (int i = 0; i < 8; i++) b |= (m[l + i] & 1) << i;
    r |= (u64)b << l;
  }
  return r;
}
INLINE u64 bcast(u32 lo, u32 hi) { return (u64)hi << 32 | lo; }
#define S64(n) (*(u64 *)&S[n])

/* ------------------------------------------------------------------ the kernel */
static int kernel(Worker *k, Wave *w, u32 NVx);

static void start_wave(Ctx *c, Group *g, u32 i) {
  Wave *w = &g->waves[i];
  u32 *regs = w->v; u8 *scratch = w->scratch;
  memset(w, 0, sizeof *w);
  w->v = regs; w->scratch = scratch;
  memset(regs, 0, sizeof(u32) * NV * L);
  w->id = i; w->group = g->id; w->mode = c->mode; w->state = READY;
  u64 id = g->id;
  u32 gx = (u32)(id % c->grid[0]), gy = (u32)(id / c->grid[0] % c->grid[1]);
  u32 gz = (u32)(id / c->grid[0] / c->grid[1]);
  u32 n = c->user_count;
  memcpy(w->s, c->user, 4 * n);
  if (c->id_enable & 1) w->s[n++] = gx;
  if (c->id_enable & 2) w->s[n++] = gy;
  if (c->id_enable & 4) w->s[n++] = gz;
  if (c->id_enable & 8) w->s[n++] = 0;
  if (c->id_enable & 16) w->s[n++] = 0;
  u32 first = i * L;
  u32 count = c->threads - first < L ? c->threads - first : L;
  u64 exec = count == 64 ? ~0ull : (1ull << count) - 1;
  w->live = exec;
  w->s[126] = (u32)exec; w->s[127] = (u32)(exec >> 32);
  for (u32 l = 0; l < count; l++) {
    u32 t = first + l, x = t % c->block[0], y = t / c->block[0] % c->block[1];
    u32 z = t / c->block[0] / c->block[1];
    regs[l] = c->id_mode == 0 ? x : c->id_mode == 1 ? x | y << 10 : x | y << 10 | z << 20;
  }
}

static void start_group(Ctx *c, Group *g, u64 id) {
  g->id = id; g->active = 1; g->epoch = 1; g->used = 0;
#if HP_RACES
  memset(g->lds_shadow, 0, sizeof(struct Shadow) * (c->lds_size + 64));
#endif
  u32 *lds = (u32 *)g->lds;
  for (u32 i = 0; i < (c->lds_size + 3) / 4; i++) lds[i] = 0xffc5c5c5u;
#if HP_UNINIT
  memset(g->lds_init, 0, c->lds_size);
#endif
  for (u32 i = 0; i < c->waves; i++) start_wave(c, g, i);
}

static Group *new_group(Ctx *c) {
  Group *g = calloc(1, sizeof *g);
  g->lds = malloc(c->lds_size + 64);
  g->lds_init = calloc(1, c->lds_size + 64);
#if HP_RACES
  g->lds_shadow = calloc(c->lds_size + 64, sizeof(struct Shadow));
#endif
  g->waves = calloc(c->waves, sizeof(Wave));
  size_t per = (size_t)NV * L;
  g->regs = malloc(per * 4 * c->waves + 64);
  u32 *aligned = (u32 *)(((size_t)g->regs + 63) & ~(size_t)63);
  if (c->scratch_size) g->scratch = calloc(c->waves, (size_t)L * c->scratch_size);
  for (u32 i = 0; i < c->waves; i++) {
    g->waves[i].v = aligned + per * i;
    g->waves[i].scratch = g->scratch + (size_t)L * c->scratch_size * i;
  }
  return g;
}
static void free_group(Group *g) {
  free(g->lds); free(g->lds_init); free(g->lds_shadow); free(g->waves); free(g->regs); free(g->scratch); free(g);
}

/* One pass over a group's waves. 0 finished, 1 progress, 2 every wave only spun, <0 fault. */
static int pass(Worker *k, Group *g) {
  Ctx *c = k->c;
  u32 done = 0, waiting = 0, moved = 0;
  k->g = g;
  for (u32 i = 0; i < c->waves; i++) {
    Wave *w = &g->waves[i];
    if (w->state == READY) {
      int r = kernel(k, w, NV);
      if (r == FAULTED) return -1;
      if (r == YIELD) { if (__atomic_load_n(&c->stop, __ATOMIC_RELAXED)) return -2; }
      else { w->state = (u32)r; moved = 1; }
#if HP_RACES
      if (!race_settle(k, w)) return -1;
#endif
    }
    if (w->state == DONE) done++;
    else if (w->state == AT_BARRIER) waiting++;
  }
  if (done == c->waves) return 0;
  if (waiting && waiting + done == c->waves) {
#if HP_BARRIER
    Wave *first = 0;
    for (u32 i = 0; i < c->waves; i++) {
      Wave *w = &g->waves[i];
      if (w->state != AT_BARRIER) continue;
      if (!first) first = w;
      else if (w->pad != first->pad) {
        fail(k, w, F_BARRIER, w->pad, 0, first->id, 0, 0);
        k->fault.other = (u64)first->id * L;
        k->fault.other_site = first->pad;
        return -1;
      }
    }
#endif
    g->epoch++;
    for (u32 i = 0; i < c->waves; i++)
      if (g->waves[i].state == AT_BARRIER) g->waves[i].state = READY;
    return 1;
  }
  return moved ? 1 : 2;
}

__attribute__((visibility("default"))) size_t hp_shadow_size(void) {
#if HP_RACES
  return sizeof(struct Shadow);
#else
  return 0;
#endif
}
__attribute__((visibility("default"))) size_t hp_worker_size(void) { return sizeof(Worker); }
__attribute__((visibility("default"))) size_t hp_ctx_size(void) { return sizeof(Ctx); }

/* Runs groups until none is left. A group all of whose waves spin lets the next ones start, so
 * that kernels whose groups wait for each other finish. Returns 0, or 1 after a fault. */
__attribute__((visibility("default"))) int hp_run(Ctx *c, Worker *k) {
  memset(k, 0, sizeof *k);
  k->c = c;
  for (u32 i = 0; i <= NSITES; i++) k->hits[i].lo = ~0ull;
  u32 limit = c->resident_limit ? c->resident_limit : 1, count = 0, made = 0;
  Group **slot = calloc(limit, sizeof *slot);
  u64 total = 0;
  int bad = 0, more = 1;
  u64 spins = 0;
  while (!bad) {
    if (__atomic_load_n(&c->stop, __ATOMIC_RELAXED)) break;
    int want = count == 0;
    if (!want) {
      int moved = 0;
      for (u32 i = 0; i < count && !bad; i++) {
        int r;
        do r = pass(k, slot[i]); while (r == 1);
        if (r < 0) { bad = 1; break; }
        if (r == 0) {
          for (u32 j = 0; j < c->waves; j++) total += slot[i]->waves[j].icount;
          Group *t = slot[i]; slot[i] = slot[--count]; slot[count] = t;
          moved = 1; i--;
        }
      }
      if (bad) break;
      if (!moved && count) {
        if (more && count < limit) want = 1; else { sched_yield(); spins++; }
      }
      if (count == 0) want = 1;
    }
    if (want && more) {
      u64 id = __atomic_fetch_add(&c->next, 1, __ATOMIC_RELAXED);
      if (id >= c->groups) { more = 0; }
      else {
        if (count == made) slot[made++] = new_group(c);
        start_group(c, slot[count++], id);
        /* the newest group runs first */
        Group *t = slot[0]; slot[0] = slot[count - 1]; slot[count - 1] = t;
      }
    }
    if (!more && count == 0) break;
  }
  for (u32 i = 0; i < made; i++) free_group(slot[i]);
  free(slot);
  __atomic_fetch_add(&c->instructions, total, __ATOMIC_RELAXED);
  if (k->fault.kind) { __atomic_store_n(&c->stop, 1, __ATOMIC_RELAXED); return 1; }
  return 0;
}
