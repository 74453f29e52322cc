"""Operations whose meaning is written here by hand, each with where it is from and why.

Everything else comes from the manuals' pseudocode (`pcode.py`). An entry is C for one lane (or
for the scalar unit) over `S0 S1 S2` (the operands' bits, modifiers applied), `d0` (the result's
bits; holds the old value before), `cin`/`cout` (carry or mask bit), `scc`, `l` (lane number).

Sources, by title:
  MI300: "AMD Instinct MI300 Instruction Set Architecture Reference Guide"
  MI200: "AMD Instinct MI200 Instruction Set Architecture Reference Guide"
  RDNA3: "RDNA3 Instruction Set Architecture Reference Guide"
  LLVM:  "User Guide for AMDGPU Backend" and the code generator's own use of the instruction
"""

# ruff: noqa: E501  (lines of C)
from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Hand:
    """C text, and the reason it is not taken from the pseudocode."""

    c: str
    why: str


_EXACT = "RDNA3/MI300: the pseudocode's floor(x + 0.5) rounds twice; rounds to nearest even"
_FRACT = "LLVM: the hardware clamps below one (pattern min(x - floor(x), 1 - ulp))"
_TURNS = "RDNA3/MI300: argument in revolutions; reduced exactly, computed in double, rounded once"
_ONCE = "RDNA3/MI300: computed in double and rounded once instead of twice"
_BITS = "same meaning as the pseudocode's bit loop, in a form C compilers vectorise"
_MINMAX = "same meaning as the pseudocode's branches, in a form C compilers vectorise"
_FMAS = (
    "RDNA3: scale by 2**64 up or down by the quotient's exponent; the CDNA text's 2**32 does"
    " not undo V_DIV_SCALE"
)
_FIXUP = (
    "RDNA3/MI300, with the overflow case as an exponent difference: the text's own condition"
    " (an infinite divisor) is handled before it and would leave x/y = NaN on overflow"
)
_SCALE = "RDNA3: 1/S1 is judged in the operand's own format; D0 is S0 where nothing is scaled"
_CARRY = "same meaning as the pseudocode's 64-bit sum, in 32 bits, which vectorise better"
_MAC = "MI200: not fused; the tables at hand are of later chips, which fuse"
_FREXP = (
    "RDNA3/MI300: the value is mantissa * 2**exponent, so a denormal's exponent counts its leading"
    " zeros, which the text's bare exponent field does not"
)
_TABLE = "MI300: the pseudocode names a table it does not give: signed 4 bits / 16"

LANE: dict[str, Hand] = {
    "v_rndne_f32": Hand("d0 = f2u(rintf(u2f(S0)));", _EXACT),
    "v_rndne_f64": Hand("d0 = d2u(rint(u2d(S0)));", _EXACT),
    "v_rndne_f16": Hand("d0 = f2h(rintf(h2f(S0)));", _EXACT),
    "s_rndne_f32": Hand("d0 = f2u(rintf(u2f(S0)));", _EXACT),
    "s_rndne_f16": Hand("d0 = f2h(rintf(h2f(S0)));", _EXACT),
    "v_floor_f32": Hand("d0 = f2u(floorf(u2f(S0)));", _MINMAX),
    "v_ceil_f32": Hand("d0 = f2u(ceilf(u2f(S0)));", _MINMAX),
    "v_floor_f64": Hand("d0 = d2u(floor(u2d(S0)));", _MINMAX),
    "v_ceil_f64": Hand("d0 = d2u(ceil(u2d(S0)));", _MINMAX),
    "v_floor_f16": Hand("d0 = f2h(floorf(h2f(S0)));", _MINMAX),
    "v_ceil_f16": Hand("d0 = f2h(ceilf(h2f(S0)));", _MINMAX),
    "s_floor_f32": Hand("d0 = f2u(floorf(u2f(S0)));", _MINMAX),
    "s_ceil_f32": Hand("d0 = f2u(ceilf(u2f(S0)));", _MINMAX),
    "s_floor_f16": Hand("d0 = f2h(floorf(h2f(S0)));", _MINMAX),
    "s_ceil_f16": Hand("d0 = f2h(ceilf(h2f(S0)));", _MINMAX),
    "v_fract_f32": Hand("d0 = f2u(p_fract_f(u2f(S0)));", _FRACT),
    "v_fract_f64": Hand("d0 = d2u(p_fract_d(u2d(S0)));", _FRACT),
    "v_fract_f16": Hand("d0 = f2h(h_fract(h2f(S0)));", _FRACT),
    "v_sin_f32": Hand("d0 = f2u((float)sin_turns((double)u2f(S0)));", _TURNS),
    "v_cos_f32": Hand("d0 = f2u((float)cos_turns((double)u2f(S0)));", _TURNS),
    "v_sin_f16": Hand("d0 = d2h(sin_turns((double)h2f(S0)));", _TURNS),
    "v_cos_f16": Hand("d0 = d2h(cos_turns((double)h2f(S0)));", _TURNS),
    "v_rsq_f32": Hand("d0 = f2u((float)(1.0 / sqrt((double)u2f(S0))));", _ONCE),
    "v_rsq_f16": Hand("d0 = d2h(1.0 / sqrt((double)h2f(S0)));", _ONCE),
    "v_exp_f16": Hand("d0 = d2h(exp2((double)h2f(S0)));", _ONCE),
    "v_log_f16": Hand("d0 = d2h(log2((double)h2f(S0)));", _ONCE),
    "v_ffbh_u32": Hand("d0 = (u32)clz32(S0);", _BITS),
    "v_ffbl_b32": Hand("d0 = (u32)ctz32(S0);", _BITS),
    "v_ffbh_i32": Hand("d0 = (u32)cls32((i32)S0);", _BITS),
    "v_clz_i32_u32": Hand("d0 = (u32)clz32(S0);", _BITS),
    "v_ctz_i32_b32": Hand("d0 = (u32)ctz32(S0);", _BITS),
    "v_cls_i32": Hand("d0 = (u32)cls32((i32)S0);", _BITS),
    "v_bcnt_u32_b32": Hand("d0 = popc32(S0) + S1;", _BITS),
    "v_mbcnt_lo_u32_b32": Hand(
        "d0 = popc32(S0 & (l >= 32 ? 0xffffffffu : (1u << (l & 31)) - 1u)) + S1;", _BITS
    ),
    "v_mbcnt_hi_u32_b32": Hand(
        "d0 = popc32(S0 & (l >= 32 ? (1u << (l & 31)) - 1u : 0u)) + S1;", _BITS
    ),
    "v_add_co_u32": Hand("d0 = S0 + S1; cout = d0 < S0;", _CARRY),
    "v_addc_co_u32": Hand("d0 = S0 + S1 + cin; cout = (d0 < S0) | (cin & (d0 == S0));", _CARRY),
    "v_add_co_ci_u32": Hand("d0 = S0 + S1 + cin; cout = (d0 < S0) | (cin & (d0 == S0));", _CARRY),
    "v_subb_co_u32": Hand("d0 = S0 - S1 - cin; cout = (S0 < S1) | (cin & (S0 == S1));", _CARRY),
    "v_sub_co_ci_u32": Hand("d0 = S0 - S1 - cin; cout = (S0 < S1) | (cin & (S0 == S1));", _CARRY),
    "v_subbrev_co_u32": Hand("d0 = S1 - S0 - cin; cout = (S1 < S0) | (cin & (S0 == S1));", _CARRY),
    "v_subrev_co_ci_u32": Hand(
        "d0 = S1 - S0 - cin; cout = (S1 < S0) | (cin & (S0 == S1));", _CARRY
    ),
    "v_mac_f32": Hand("d0 = f2u(fl32(u2fi(S0) * u2fi(S1)) + u2fi(d0));", _MAC),
    "v_mad_f32": Hand("d0 = f2u(fl32(u2fi(S0) * u2fi(S1)) + u2fi(S2));", _MAC),
    "v_madmk_f32": Hand("d0 = f2u(fl32(u2fi(S0) * u2fi(LITERAL)) + u2fi(S1));", _MAC),
    "v_madak_f32": Hand("d0 = f2u(fl32(u2fi(S0) * u2fi(S1)) + u2fi(LITERAL));", _MAC),
    "v_perm_b32": Hand("d0 = p_perm(S0, S1, S2);", _BITS),
    "s_ff1_i32_b32": Hand("d0 = (u32)ctz32(S0);", _BITS),
    "s_ff1_i32_b64": Hand("d0 = (u32)ctz64(S0);", _BITS),
    "s_ctz_i32_b32": Hand("d0 = (u32)ctz32(S0);", _BITS),
    "s_ctz_i32_b64": Hand("d0 = (u32)ctz64(S0);", _BITS),
    "s_ff0_i32_b32": Hand("d0 = (u32)ctz32(~S0);", _BITS),
    "s_ff0_i32_b64": Hand("d0 = (u32)ctz64(~S0);", _BITS),
    "s_flbit_i32_b32": Hand("d0 = (u32)clz32(S0);", _BITS),
    "s_flbit_i32_b64": Hand("d0 = (u32)clz64(S0);", _BITS),
    "s_clz_i32_u32": Hand("d0 = (u32)clz32(S0);", _BITS),
    "s_clz_i32_u64": Hand("d0 = (u32)clz64(S0);", _BITS),
    "s_flbit_i32": Hand("d0 = (u32)cls32((i32)S0);", _BITS),
    "s_flbit_i32_i64": Hand("d0 = (u32)cls64((i64)S0);", _BITS),
    "s_cls_i32": Hand("d0 = (u32)cls32((i32)S0);", _BITS),
    "s_cls_i32_i64": Hand("d0 = (u32)cls64((i64)S0);", _BITS),
    "s_bcnt0_i32_b32": Hand("d0 = (u32)__builtin_popcount(~S0); scc = d0 != 0;", _BITS),
    "s_bcnt0_i32_b64": Hand("d0 = (u32)__builtin_popcountll(~S0); scc = d0 != 0;", _BITS),
    "s_bcnt1_i32_b32": Hand("d0 = (u32)__builtin_popcount(S0); scc = d0 != 0;", _BITS),
    "s_bcnt1_i32_b64": Hand("d0 = (u32)__builtin_popcountll(S0); scc = d0 != 0;", _BITS),
    "v_div_scale_f32": Hand("d0 = div_scale_f32(S0, S1, S2, &cout);", _SCALE),
    "v_div_scale_f64": Hand("d0 = div_scale_f64(S0, S1, S2, &cout);", _SCALE),
    "v_div_fmas_f32": Hand("d0 = div_fmas_f32(S0, S1, S2, cin);", _FMAS),
    "v_div_fmas_f64": Hand("d0 = div_fmas_f64(S0, S1, S2, cin);", _FMAS),
    "v_div_fixup_f32": Hand("d0 = div_fixup_f32(S0, S1, S2);", _FIXUP),
    "v_div_fixup_f64": Hand("d0 = div_fixup_f64(S0, S1, S2);", _FIXUP),
    "v_frexp_exp_i32_f32": Hand("d0 = (u32)frexp_e((double)u2f(S0));", _FREXP),
    "v_frexp_exp_i32_f64": Hand("d0 = (u32)frexp_e(u2d(S0));", _FREXP),
    "v_frexp_exp_i16_f16": Hand("d0 = (u32)frexp_e((double)h2f(S0)) & 0xffffu;", _FREXP),
    "v_cvt_off_f32_i4": Hand("d0 = f2u((float)((i32)(S0 << 28) >> 28) * 0.0625f);", _TABLE),
    "v_trig_preop_f64": Hand(
        "d0 = trig_preop(S0, S1);",
        "RDNA3/MI300: 53 bits of 2/pi from a 1201-bit expansion; needs wide integers",
    ),
    "v_cvt_sr_fp8_f32": Hand(
        "d0 = sr_insert(d0, f_to_8(sr_add(S0, S1, 12), 3, 8, fp8_clamp), OPSEL);",
        "MI300: stochastic rounding adds random bits below the last kept place",
    ),
    "v_cvt_sr_bf8_f32": Hand(
        "d0 = sr_insert(d0, f_to_8(sr_add(S0, S1, 11), 2, 16, fp8_clamp), OPSEL);",
        "MI300: stochastic rounding adds random bits below the last kept place",
    ),
    "v_cvt_f32_fp8": Hand(
        "d0 = f2u(fp8_to_f(S0 & 0xff));", "MI300: the byte is chosen by SDWA or byte 0"
    ),
    "v_cvt_f32_bf8": Hand(
        "d0 = f2u(bf8_to_f(S0 & 0xff));", "MI300: the byte is chosen by SDWA or byte 0"
    ),
    "v_cvt_pk_f32_fp8": Hand(
        "d0 = (u64)f2u(fp8_to_f((S0 >> 8) & 0xff)) << 32 | f2u(fp8_to_f(S0 & 0xff));",
        "MI300: the word is chosen by SDWA or word 0",
    ),
    "v_cvt_pk_f32_bf8": Hand(
        "d0 = (u64)f2u(bf8_to_f((S0 >> 8) & 0xff)) << 32 | f2u(bf8_to_f(S0 & 0xff));",
        "MI300: the word is chosen by SDWA or word 0",
    ),
    "v_cvt_pk_i16_f32": Hand(
        "d0 = ((u32)cvt_f_i16(u2f(S1)) << 16) | ((u32)cvt_f_i16(u2f(S0)) & 0xffffu);",
        "RDNA3: the pseudocode calls an operation it does not define",
    ),
    "v_cvt_pk_u16_f32": Hand(
        "d0 = (cvt_f_u16(u2f(S1)) << 16) | cvt_f_u16(u2f(S0));",
        "RDNA3: the pseudocode calls an operation it does not define",
    ),
}
for _size in ("f32",):
    for _op in ("min", "max"):
        LANE[f"v_{_op}_{_size}"] = Hand(f"d0 = {{ieee}}_{_op}_{_size}(S0, S1);", _MINMAX)

NOTES: dict[str, str] = {
    "mfma": "MI200/MI300, chapter on matrix arithmetic: element layout of A, B, C and D by lane",
    "wmma": "RDNA3, chapter on wave matrix multiply accumulate: element layout by lane",
    "memory": "RDNA3/MI300: address arithmetic of FLAT, GLOBAL, SCRATCH, BUFFER, DS and SMEM",
    "pairs": "MI200/MI300: packed f32 operations, as two 32-bit values each",
    "cross-lane": "RDNA3/MI300: DPP, DS_SWIZZLE, DS_(B)PERMUTE, PERMLANE, READLANE, WRITELANE",
    "control": "RDNA3/MI300: branches, calls, barriers, waits, messages, hardware registers",
}

HELPERS = r"""
INLINE i32 frexp_e(double x) {
  int e;
  if (!(x - x == 0) || x == 0) return 0;
  frexp(x, &e);
  return e;
}
INLINE u32 p_perm(u32 hi, u32 lo, u32 sel) {
  u64 data = (u64)hi << 32 | lo;
  u32 r = 0;
  for (int i = 0; i < 4; i++) {
    u32 s = (sel >> (8 * i)) & 255, b;
    if (s >= 13) b = 255;
    else if (s == 12) b = 0;
    else if (s >= 8) b = ((data >> (16 * (s - 8) + 15)) & 1) ? 255 : 0;
    else b = (u32)(data >> (8 * s)) & 255;
    r |= b << (8 * i);
  }
  return r;
}
INLINE u32 denorm_f(float x) { u32 a = f2u(x) & 0x7fffffffu; return a && a < 0x800000u; }
INLINE u32 denorm_d(double x) { u64 a = d2u(x) & 0x7fffffffffffffffull; return a && a < 0x10000000000000ull; }
static u32 div_scale_f32(u32 s0, u32 s1, u32 s2, u32 *vcc) {
  float n = u2f(s2), d = u2f(s1), x = u2f(s0);
  i32 en = (s2 >> 23) & 255, ed = (s1 >> 23) & 255;
  *vcc = 0;
  if (n == 0.0f || d == 0.0f) return 0x7fc00000u;
  if (en - ed >= 96) { *vcc = 1; return x == d ? f2u(ldexp_f(x, 64)) : s0; }
  if (denorm_f(d)) return f2u(ldexp_f(x, 64));
  int tiny = denorm_f((float)(1.0 / (double)d)), small = denorm_f((float)((double)n / (double)d));
  if (tiny && small) { *vcc = 1; return x == d ? f2u(ldexp_f(x, 64)) : s0; }
  if (tiny) return f2u(ldexp_f(x, -64));
  if (small) { *vcc = 1; return x == n ? f2u(ldexp_f(x, 64)) : s0; }
  if (en <= 23) return f2u(ldexp_f(x, 64));
  return s0;
}
static u64 div_scale_f64(u64 s0, u64 s1, u64 s2, u32 *vcc) {
  double n = u2d(s2), d = u2d(s1), x = u2d(s0);
  i32 en = (s2 >> 52) & 2047, ed = (s1 >> 52) & 2047;
  *vcc = 0;
  if (n == 0.0 || d == 0.0) return 0x7ff8000000000000ull;
  if (en - ed >= 768) { *vcc = 1; return x == d ? d2u(ldexp(x, 128)) : s0; }
  if (denorm_d(d)) return d2u(ldexp(x, 128));
  int tiny = denorm_d(1.0 / d), small = denorm_d(n / d);
  if (tiny && small) { *vcc = 1; return x == d ? d2u(ldexp(x, 128)) : s0; }
  if (tiny) return d2u(ldexp(x, -128));
  if (small) { *vcc = 1; return x == n ? d2u(ldexp(x, 128)) : s0; }
  if (en <= 53) return d2u(ldexp(x, 128));
  return s0;
}
/* the scaled fma rounds once: multiply-add in a wider range first */
static u32 div_fmas_f32(u32 a, u32 b, u32 c, u32 scale) {
  float r = __builtin_fmaf(u2f(a), u2f(b), u2f(c));
  if (!scale) return f2u(r);
  if (((c >> 23) & 255) > 127) return f2u(r * 0x1p64f);
  /* exact sum in double where it fits, so that a denormal result is rounded once */
  double p = (double)u2f(a) * (double)u2f(b), q = (double)u2f(c), s = p + q;
  double e = (p - (s - q)) + (q - (s - (s - q)));
  if (e != 0 && s == s) {
    u64 bits = d2u(s);
    if (!(bits & 1)) s = u2d(((e > 0) == (s > 0)) ? bits + 1 : bits - 1);
  }
  double t = s * 0x1p-64;
  return f2u((float)t);
}
static u64 div_fmas_f64(u64 a, u64 b, u64 c, u32 scale) {
  double r = __builtin_fma(u2d(a), u2d(b), u2d(c));
  if (!scale) return d2u(r);
  if (((c >> 52) & 2047) > 1023) return d2u(r * 0x1p128);
  return d2u(r * 0x1p-128);
}
static u32 div_fixup_f32(u32 q, u32 d, u32 n) {
  u32 sign = (d ^ n) & 0x80000000u, ad = d & 0x7fffffffu, an = n & 0x7fffffffu;
  if (an > 0x7f800000u) return n | 0x400000u;
  if (ad > 0x7f800000u) return d | 0x400000u;
  if ((ad == 0 && an == 0) || (ad == 0x7f800000u && an == 0x7f800000u)) return 0xffc00000u;
  if (ad == 0 || an == 0x7f800000u) return sign | 0x7f800000u;
  if (ad == 0x7f800000u || an == 0) return sign;
  i32 e = (i32)(an >> 23) - (i32)(ad >> 23);
  if (e < -150) return sign;
  if (e > 128) return sign | 0x7f800000u;
  return sign | (q & 0x7fffffffu);
}
static u64 div_fixup_f64(u64 q, u64 d, u64 n) {
  const u64 top = 0x8000000000000000ull, inf = 0x7ff0000000000000ull;
  u64 sign = (d ^ n) & top, ad = d & ~top, an = n & ~top;
  if (an > inf) return n | 0x8000000000000ull;
  if (ad > inf) return d | 0x8000000000000ull;
  if ((ad == 0 && an == 0) || (ad == inf && an == inf)) return 0xfff8000000000000ull;
  if (ad == 0 || an == inf) return sign | inf;
  if (ad == inf || an == 0) return sign;
  i32 e = (i32)(an >> 52) - (i32)(ad >> 52);
  if (e < -1075) return sign;
  if (e > 1024) return sign | inf;
  return sign | (q & ~top);
}
"""


def _two_over_pi(bits: int = 1201) -> int:
    """The first `bits` bits of the fraction of 2/pi, by Machin's formula."""
    guard = bits + 64
    one = 1 << guard

    def arctan_inverse(x: int) -> int:
        power, total, n = one // x, 0, 1
        while power:
            total += power // n if n % 4 == 1 else -(power // n)
            power //= x * x
            n += 2
        return total

    pi = 4 * (4 * arctan_inverse(5) - arctan_inverse(239))
    return (2 * one * one // pi) >> (guard - bits)


def _trig_words() -> str:
    value = _two_over_pi() << (64 * 19 - 1201)
    words = [value >> (64 * (18 - i)) & ((1 << 64) - 1) for i in range(19)]
    return ", ".join(f"{w:#x}ull" for w in words)


HELPERS += (
    "static const u64 two_over_pi[19] = {"
    + _trig_words()
    + r"""};
static u64 trig_preop(u64 x, u32 segment) {
  i32 e = (x >> 52) & 2047, shift = (i32)(segment & 31) * 53;
  if (e > 1077) shift += e - 1077;
  u64 bits = 0;
  int w = shift / 64, o = shift % 64;
  u64 hi = w < 19 ? two_over_pi[w] : 0, lo = w + 1 < 19 ? two_over_pi[w + 1] : 0;
  bits = o ? hi << o | lo >> (64 - o) : hi;
  bits >>= 11;
  i32 scale = -53 - shift + (e >= 1968 ? 128 : 0);
  return d2u(ldexp((double)bits, scale));
}
"""
)
