"""Single instructions on randomised inputs with special values, against NumPy and ml_dtypes."""

# ruff: noqa: E501, RUF005, RET504  (tables of cases)
from __future__ import annotations

from fractions import Fraction

import ml_dtypes
import numpy as np
import pytest

from .instructions import Case, case, check

I32, U32, U64, I64 = np.int32, np.uint32, np.uint64, np.int64
WIDE = {"f16": np.float16, "f32": np.float32, "f64": np.float64}


def exact_fma(dtype):
    """a * b + c rounded once, by rational arithmetic."""
    info = np.finfo(dtype)

    def one(a, b, c):
        fa, fb, fc = float(a), float(b), float(c)
        if not (np.isfinite(fa) and np.isfinite(fb) and np.isfinite(fc)):
            return dtype(np.float64(fa) * np.float64(fb) + np.float64(fc))
        total = Fraction(fa) * Fraction(fb) + Fraction(fc)
        if total == 0:
            return dtype(np.float64(fa) * np.float64(fb) + np.float64(fc))
        return round_fraction(total, info, dtype)

    return lambda a, b, c: np.array([one(*t) for t in zip(a, b, c, strict=True)], dtype)


def round_fraction(x, info, dtype):
    """The nearest number of a binary format, ties to even."""
    sign, x = (-1, -x) if x < 0 else (1, x)
    e = x.numerator.bit_length() - x.denominator.bit_length()
    if Fraction(2) ** e > x:
        e -= 1
    e = max(e, int(info.minexp))
    unit = Fraction(2) ** (e - int(info.nmant))
    q, r = divmod(x, unit)
    if r * 2 > unit or (r * 2 == unit and q % 2):
        q += 1
    value = q * unit
    if value > Fraction(float(info.max)):
        return dtype(sign * np.inf)
    return dtype(sign * float(value))


def number_min(a, b):
    r = np.where(a < b, a, b)
    r = np.where((a == b) & np.signbit(b), b, np.where(a == b, a, r))
    return nan_rule(a, b, r)


def nan_rule(a, b, r):
    """A quiet NaN loses; a signalling one (in IEEE mode, which compilers set) wins."""
    r = np.where(np.isnan(a), b, np.where(np.isnan(b), a, r))
    signalling = (np.isnan(a) & (quiet_bit(a) == 0)) | (np.isnan(b) & (quiet_bit(b) == 0))
    return np.where(signalling, a.dtype.type(np.nan), r)


def number_max(a, b):
    r = np.where(a > b, a, b)
    r = np.where((a == b) & np.signbit(a), b, np.where(a == b, a, r))
    return nan_rule(a, b, r)


def saturate(dtype, how=np.trunc):
    info = np.iinfo(dtype)

    def convert(x):
        y = how(x.astype(np.float64))
        y = np.where(np.isnan(y), 0, np.clip(y, info.min, info.max))
        return y.astype(np.int64).astype(dtype)

    return convert


def floats(kind: str, rdna: bool) -> list[Case]:
    t = WIDE[kind]
    two = f"{kind} {kind} {kind}"
    out = [
        case(f"v_add_{kind} %0, %1, %2", two, lambda a, b: a + b),
        case(f"v_mul_{kind} %0, %1, %2", two, lambda a, b: a * b),
        case(f"v_min_{kind} %0, %1, %2", two, number_min),
        case(f"v_max_{kind} %0, %1, %2", two, number_max),
        case(f"v_fma_{kind} %0, %1, %2, %3", f"{two} {kind}", exact_fma(t)),
        case(f"v_fma_{kind} %0, -%1, |%2|, -%3", f"{two} {kind}",
             lambda a, b, c: exact_fma(t)(-a, np.abs(b), -c)),
        case(f"v_add_{kind} %0, 1.0, %1", f"{kind} {kind}", lambda a: t(1) + a),
        case(f"v_floor_{kind} %0, %1", f"{kind} {kind}", np.floor),
        case(f"v_ceil_{kind} %0, %1", f"{kind} {kind}", np.ceil),
        case(f"v_trunc_{kind} %0, %1", f"{kind} {kind}", np.trunc),
        case(f"v_rndne_{kind} %0, %1", f"{kind} {kind}", np.rint),
        case(f"v_sqrt_{kind} %0, %1", f"{kind} {kind}", np.sqrt),
        case(f"v_rcp_{kind} %0, %1", f"{kind} {kind}", lambda a: t(1) / a),
        case(f"v_rsq_{kind} %0, %1", f"{kind} {kind}",
             lambda a: (1 / np.sqrt(a.astype(np.float64))).astype(t), 0 if kind != "f64" else 1),
        case(f"v_fract_{kind} %0, %1", f"{kind} {kind}",
             lambda a: np.where(np.isfinite(a), np.minimum(a - np.floor(a), np.nextafter(t(1), t(0))),
                                np.nan)),
        case(f"v_frexp_mant_{kind} %0, %1", f"{kind} {kind}", lambda a: np.frexp(a)[0]),
    ]  # fmt: skip
    for test, f in {"lt": np.less, "eq": np.equal, "le": np.less_equal, "gt": np.greater,
                    "ge": np.greater_equal}.items():  # fmt: skip
        out.append(select(f"v_cmp_{test}_{kind}", f"{kind} {kind}", f, rdna))
        out.append(select(f"v_cmp_n{test}_{kind}".replace("neq", "neq"), f"{kind} {kind}",
                          lambda a, b, f=f: ~f(a, b), rdna))  # fmt: skip
    out.append(select(f"v_cmp_o_{kind}", f"{kind} {kind}",
                      lambda a, b: ~np.isnan(a) & ~np.isnan(b), rdna))  # fmt: skip
    out.append(select(f"v_cmp_u_{kind}", f"{kind} {kind}",
                      lambda a, b: np.isnan(a) | np.isnan(b), rdna))  # fmt: skip
    out.append(select(f"v_cmp_lg_{kind}", f"{kind} {kind}", lambda a, b: (a < b) | (a > b), rdna))
    out.append(select(f"v_cmp_class_{kind}", f"{kind} n5", float_class, rdna))
    return out


def select(name: str, sources: str, truth, rdna: bool) -> Case:
    """A compare into VCC, and a select that makes its bit visible."""
    vcc = "vcc_lo" if rdna else "vcc"
    text = f"{name} {vcc}, %1, %2\\n v_cndmask_b32 %0, 0, 1, {vcc}"
    return case(text, f"u32 {sources}", truth)


def float_class(a, mask):
    tiny = np.finfo(a.dtype).tiny
    signalling = np.isnan(a) & (quiet_bit(a) == 0)
    finite = np.isfinite(a)
    sub = finite & (a != 0) & (np.abs(a) < tiny)
    normal = finite & (np.abs(a) >= tiny)
    neg = np.signbit(a)
    tests = [
        signalling,
        np.isnan(a) & ~signalling,
        np.isinf(a) & neg,
        normal & neg,
        sub & neg,
        (a == 0) & neg,
        (a == 0) & ~neg,
        sub & ~neg,
        normal & ~neg,
        np.isinf(a) & ~neg,
    ]
    return np.any([t & (mask >> i & 1).astype(bool) for i, t in enumerate(tests)], axis=0)


def quiet_bit(a):
    raw = a.view(f"u{a.dtype.itemsize}")
    return raw >> (np.finfo(a.dtype).nmant - 1) & 1


def test_f32(target):
    rdna = target == "gfx1100"
    cases = floats("f32", rdna) + [
        case("v_sub_f32 %0, %1, %2", "f32 f32 f32", lambda a, b: a - b),
        case("v_subrev_f32 %0, %1, %2", "f32 f32 f32", lambda a, b: b - a),
        case("v_exp_f32 %0, %1", "f32 f32", lambda a: np.exp2(a.astype(np.float64)), 1),
        case("v_log_f32 %0, %1", "f32 f32", lambda a: np.log2(a.astype(np.float64)), 1),
        case("v_ldexp_f32 %0, %1, %2", "f32 f32 e",
             lambda a, e: np.ldexp(a.astype(np.float64), e)),
        case("v_frexp_exp_i32_f32 %0, %1", "i32 f32",
             lambda a: np.where(np.isfinite(a), np.frexp(a)[1], 0)),
        case("v_cvt_i32_f32 %0, %1", "i32 f32", saturate(I32)),
        case("v_cvt_u32_f32 %0, %1", "u32 f32", saturate(U32)),
        case("v_cvt_f32_i32 %0, %1", "f32 i32", lambda a: a.astype(np.float32)),
        case("v_cvt_f32_u32 %0, %1", "f32 u32", lambda a: a.astype(np.float32)),
        case("v_cvt_f16_f32 %0, %1", "f16 f32", lambda a: a.astype(np.float16)),
        case("v_cvt_f32_f16 %0, %1", "f32 f16", lambda a: a.astype(np.float32)),
        case("v_med3_f32 %0, %1, %2, %3", "f32 f32 f32 f32", med3),
        case("v_min3_f32 %0, %1, %2, %3", "f32 f32 f32 f32",
             lambda a, b, c: number_min(number_min(a, b), c)),
        case("v_max3_f32 %0, %1, %2, %3", "f32 f32 f32 f32",
             lambda a, b, c: number_max(number_max(a, b), c)),
        case("v_add_f32 %0, %1, %2 clamp", "f32 f32 f32",
             lambda a, b: np.where(np.isnan(a + b), 0, np.clip(a + b, 0, 1) + np.float32(0))),
        case("v_mul_f32 %0, %1, %2 mul:2", "f32 f32 f32", lambda a, b: a * b * np.float32(2)),
        case("v_cvt_pk_u8_f32 %0, %1, 0, 0", "u32 f32",
             lambda a: np.where(np.isnan(a), 0, np.clip(np.rint(a), 0, 255))),
    ]  # fmt: skip
    for i in range(4):
        cases.append(case(f"v_cvt_f32_ubyte{i} %0, %1", "f32 u32",
                          lambda a, i=i: (a >> (8 * i) & 255).astype(np.float32)))  # fmt: skip
    check(target, cases)


def med3(a, b, c):
    lo = number_min(number_min(a, b), c)
    plain = np.maximum(np.minimum(a, b), np.minimum(np.maximum(a, b), c))
    # With equal zeros of both signs the middle one by the order -0 < +0.
    s = np.sort(
        np.stack([a, b, c]).view(I32) ^ (np.stack([a, b, c]).view(I32) >> 31 & 0x7FFFFFFF), 0
    )
    middle = (s[1] ^ (s[1] >> 31 & 0x7FFFFFFF)).astype(I32).view(np.float32)
    return np.where(
        np.isnan(a) | np.isnan(b) | np.isnan(c), lo, np.where(plain == 0, middle, plain)
    )


def test_sine_and_cosine_take_revolutions(target):
    def turn(f):
        return lambda a: np.where(
            np.isfinite(a), f(np.fmod(a.astype(np.float64), 1) * 2 * np.pi), np.nan
        )

    def close(f):
        truth = turn(f)

        def compare(a):
            return truth(a).astype(np.float32)

        return compare

    from .instructions import run, values

    cases = [
        case("v_sin_f32 %0, %1", "f32 f32", close(np.sin)),
        case("v_cos_f32 %0, %1", "f32 f32", close(np.cos)),
    ]
    a = values("f32", 192, 0)
    with np.errstate(all="ignore"):
        for c, got in zip(cases, run(target, cases), strict=True):
            np.testing.assert_allclose(got, c.truth(a), rtol=1e-6, atol=2e-16)


def test_f64(target):
    rdna = target == "gfx1100"
    cases = [c for c in floats("f64", rdna) if "1.0" not in c.text]
    cases += [
        case("v_ldexp_f64 %0, %1, %2", "f64 f64 e", np.ldexp),
        case("v_frexp_exp_i32_f64 %0, %1", "i32 f64",
             lambda a: np.where(np.isfinite(a), np.frexp(a)[1], 0)),
        case("v_cvt_i32_f64 %0, %1", "i32 f64", saturate(I32)),
        case("v_cvt_u32_f64 %0, %1", "u32 f64", saturate(U32)),
        case("v_cvt_f64_i32 %0, %1", "f64 i32", lambda a: a.astype(np.float64)),
        case("v_cvt_f64_u32 %0, %1", "f64 u32", lambda a: a.astype(np.float64)),
        case("v_cvt_f64_f32 %0, %1", "f64 f32", lambda a: a.astype(np.float64)),
        case("v_cvt_f32_f64 %0, %1", "f32 f64", lambda a: a.astype(np.float32)),
        case("v_add_f64 %0, 1.0, %1", "f64 f64", lambda a: 1.0 + a),
        case("v_add_f64 %0, 3, %1", "f64 f64", lambda a: a + 3 * 5e-324),
    ]  # fmt: skip
    check(target, cases)


def test_f16(target):
    rdna = target == "gfx1100"
    cases = floats("f16", rdna) + [
        case("v_cvt_i16_f16 %0, %1", "i16 f16", saturate(np.int16)),
        case("v_cvt_u16_f16 %0, %1", "u16 f16", saturate(np.uint16)),
        case("v_cvt_f16_i16 %0, %1", "f16 i16", lambda a: a.astype(np.float16)),
        case("v_cvt_f16_u16 %0, %1", "f16 u16", lambda a: a.astype(np.float16)),
        case("v_exp_f16 %0, %1", "f16 f16", lambda a: np.exp2(a.astype(np.float64)), 1),
        case("v_log_f16 %0, %1", "f16 f16", lambda a: np.log2(a.astype(np.float64)), 1),
    ]
    check(target, cases)


def halves(f, dtype):
    """Apply `f` to the low and the high halves of packed registers."""

    def both(*words):
        low = f(*[(w & 0xFFFF).astype(np.uint16).view(dtype) for w in words])
        high = f(*[(w >> 16).astype(np.uint16).view(dtype) for w in words])
        pack = [np.asarray(x).astype(dtype).view(np.uint16).astype(U32) for x in (low, high)]
        return pack[0] | pack[1] << 16

    return both


def finite_halves(f):
    """As halves on f16, with NaNs made one value so that bits can be compared."""

    def clean(*words):
        packed = halves(f, np.float16)(*words)
        return packed

    return clean


def test_packed_integers(target):
    u, i = np.uint16, np.int16
    cases = [
        case("v_pk_add_u16 %0, %1, %2", "u32 u32 u32", halves(lambda a, b: a + b, u)),
        case("v_pk_sub_u16 %0, %1, %2", "u32 u32 u32", halves(lambda a, b: a - b, u)),
        case("v_pk_mul_lo_u16 %0, %1, %2", "u32 u32 u32", halves(lambda a, b: a * b, u)),
        case("v_pk_mad_u16 %0, %1, %2, %3", "u32 u32 u32 u32", halves(lambda a, b, c: a * b + c, u)),
        case("v_pk_max_u16 %0, %1, %2", "u32 u32 u32", halves(np.maximum, u)),
        case("v_pk_min_u16 %0, %1, %2", "u32 u32 u32", halves(np.minimum, u)),
        case("v_pk_add_i16 %0, %1, %2", "u32 u32 u32", halves(lambda a, b: a + b, i)),
        case("v_pk_sub_i16 %0, %1, %2", "u32 u32 u32", halves(lambda a, b: a - b, i)),
        case("v_pk_max_i16 %0, %1, %2", "u32 u32 u32", halves(np.maximum, i)),
        case("v_pk_min_i16 %0, %1, %2", "u32 u32 u32", halves(np.minimum, i)),
        case("v_pk_mad_i16 %0, %1, %2, %3", "u32 u32 u32 u32", halves(lambda a, b, c: a * b + c, i)),
        case("v_pk_lshlrev_b16 %0, %1, %2", "u32 u32 u32", halves(lambda a, b: b << (a & 15), u)),
        case("v_pk_lshrrev_b16 %0, %1, %2", "u32 u32 u32", halves(lambda a, b: b >> (a & 15), u)),
        case("v_pk_ashrrev_i16 %0, %1, %2", "u32 u32 u32", halves(lambda a, b: b >> (a & 15), i)),
        case("v_pk_add_u16 %0, %1, %2 clamp", "u32 u32 u32",
             halves(lambda a, b: np.minimum(a.astype(U32) + b, 65535), u)),
        case("v_pk_add_u16 %0, %1, %2 op_sel:[1,0] op_sel_hi:[0,1]", "u32 u32 u32",
             lambda a, b: halves(lambda x, y: x + y, u)(a >> 16 | a << 16, b)),
    ]  # fmt: skip
    check(target, cases)


def test_packed_f16(target):
    from .instructions import run, values

    def same(got, want):
        g, w = (x.view(np.uint16).view(np.float16) for x in (got, want))
        return (g.view(np.uint16) == w.view(np.uint16)) | (np.isnan(g) & np.isnan(w))

    f = np.float16
    cases = [
        case("v_pk_add_f16 %0, %1, %2", "u32 u32 u32", halves(lambda a, b: a + b, f)),
        case("v_pk_mul_f16 %0, %1, %2", "u32 u32 u32", halves(lambda a, b: a * b, f)),
        case("v_pk_fma_f16 %0, %1, %2, %3", "u32 u32 u32 u32", halves(exact_fma(f), f)),
        case("v_pk_min_f16 %0, %1, %2", "u32 u32 u32", halves(number_min, f)),
        case("v_pk_max_f16 %0, %1, %2", "u32 u32 u32", halves(number_max, f)),
        case("v_pk_add_f16 %0, %1, %2 neg_lo:[1,0] neg_hi:[0,1]", "u32 u32 u32",
             lambda a, b: halves(lambda x, y: x + y, f)(a ^ U32(0x8000), b ^ U32(0x80000000))),
        case("v_pack_b32_f16 %0, %1, %2", "u32 u32 u32", lambda a, b: (a & 0xFFFF) | b << 16),
    ]  # fmt: skip
    sources = [values("u32", 192, s) for s in range(3)]
    with np.errstate(all="ignore"):
        for c, got in zip(cases, run(target, cases), strict=True):
            want = c.truth(*sources[: len(c.sources)]).astype(U32)
            assert same(got, want).all(), c.text


def test_integers(target):
    rdna = target == "gfx1100"
    add, sub, subrev = (
        ("v_add_nc_u32", "v_sub_nc_u32", "v_subrev_nc_u32")
        if rdna
        else ("v_add_u32", "v_sub_u32", "v_subrev_u32")
    )
    add_i, sub_i = ("v_add_nc_i32", "v_sub_nc_i32") if rdna else ("v_add_i32", "v_sub_i32")
    uu, uuu = "u32 u32 u32", "u32 u32 u32 u32"

    def clip_i(x):
        return np.clip(x, -(2**31), 2**31 - 1)

    def bfe(a, b, c):
        return a >> (b & 31) & ((U64(1) << (c & 31).astype(U64)) - U64(1)).astype(U32)

    def s24(a):
        return (a.astype(I64) << 40) >> 40

    cases = [
        case(f"{add} %0, %1, %2", uu, lambda a, b: a + b),
        case(f"{sub} %0, %1, %2", uu, lambda a, b: a - b),
        case(f"{subrev} %0, %1, %2", uu, lambda a, b: b - a),
        case(f"{add} %0, %1, %2 clamp", uu, lambda a, b: np.minimum(a.astype(U64) + b, 2**32 - 1)),
        case(f"{sub} %0, %1, %2 clamp", uu, lambda a, b: np.where(a > b, a - b, 0)),
        case(f"{add_i} %0, %1, %2 clamp", "i32 i32 i32", lambda a, b: clip_i(a.astype(I64) + b)),
        case(f"{sub_i} %0, %1, %2 clamp", "i32 i32 i32", lambda a, b: clip_i(a.astype(I64) - b)),
        case("v_mul_lo_u32 %0, %1, %2", uu, lambda a, b: a * b),
        case("v_mul_hi_u32 %0, %1, %2", uu, lambda a, b: a.astype(U64) * b >> U64(32)),
        case("v_mul_hi_i32 %0, %1, %2", "i32 i32 i32", lambda a, b: a.astype(I64) * b >> 32),
        case("v_mul_u32_u24 %0, %1, %2", uu, lambda a, b: (a & 0xFFFFFF) * (b & 0xFFFFFF)),
        case("v_mul_i32_i24 %0, %1, %2", "i32 i32 i32", lambda a, b: s24(a) * s24(b)),
        case("v_mul_hi_u32_u24 %0, %1, %2", uu,
             lambda a, b: (a & 0xFFFFFF).astype(U64) * (b & 0xFFFFFF) >> U64(32)),
        case("v_mul_hi_i32_i24 %0, %1, %2", "i32 i32 i32", lambda a, b: s24(a) * s24(b) >> 32),
        case("v_mad_u32_u24 %0, %1, %2, %3", uuu, lambda a, b, c: (a & 0xFFFFFF) * (b & 0xFFFFFF) + c),
        case("v_mad_i32_i24 %0, %1, %2, %3", "i32 i32 i32 i32", lambda a, b, c: s24(a) * s24(b) + c),
        case("v_mad_u32_u16 %0, %1, %2, %3", uuu, lambda a, b, c: (a & 0xFFFF) * (b & 0xFFFF) + c),
        case("v_lshlrev_b32 %0, %1, %2", "u32 n5 u32", lambda n, a: a << (n & 31)),
        case("v_lshrrev_b32 %0, %1, %2", "u32 n5 u32", lambda n, a: a >> (n & 31)),
        case("v_ashrrev_i32 %0, %1, %2", "i32 n5 i32", lambda n, a: a >> (n & 31).astype(I32)),
        case("v_lshlrev_b64 %0, %1, %2", "u64 n5 u64", lambda n, a: a << n.astype(U64)),
        case("v_lshrrev_b64 %0, %1, %2", "u64 n5 u64", lambda n, a: a >> n.astype(U64)),
        case("v_ashrrev_i64 %0, %1, %2", "i64 n5 i64", lambda n, a: a >> n.astype(I64)),
        case("v_and_b32 %0, %1, %2", uu, np.bitwise_and),
        case("v_or_b32 %0, %1, %2", uu, np.bitwise_or),
        case("v_xor_b32 %0, %1, %2", uu, np.bitwise_xor),
        case("v_xnor_b32 %0, %1, %2", uu, lambda a, b: ~(a ^ b)),
        case("v_not_b32 %0, %1", "u32 u32", np.invert),
        case("v_bfrev_b32 %0, %1", "u32 u32",
             lambda a: np.array([int(f"{int(x):032b}"[::-1], 2) for x in a], U32)),
        case("v_bfe_u32 %0, %1, %2, %3", "u32 u32 n5 n5", bfe),
        case("v_bfe_i32 %0, %1, %2, %3", "i32 u32 n5 n5", bfe_signed),
        case("v_bfi_b32 %0, %1, %2, %3", uuu, lambda a, b, c: (a & b) | (~a & c)),
        case("v_bfm_b32 %0, %1, %2", "u32 n5 n5",
             lambda a, b: (((U64(1) << (a & 31).astype(U64)) - U64(1)).astype(U32) << (b & 31))),
        case("v_alignbit_b32 %0, %1, %2, %3", "u32 u32 u32 n5",
             lambda a, b, c: (a.astype(U64) << U64(32) | b) >> (c & 31).astype(U64)),
        case("v_alignbyte_b32 %0, %1, %2, %3", "u32 u32 u32 n5",
             lambda a, b, c: (a.astype(U64) << U64(32) | b) >> (8 * (c & 3)).astype(U64)),
        case("v_perm_b32 %0, %1, %2, %3", uuu, permute),
        case("v_bcnt_u32_b32 %0, %1, %2", uu,
             lambda a, b: np.array([int(x).bit_count() for x in a], U32) + b),
        case(f"{'v_clz_i32_u32' if rdna else 'v_ffbh_u32'} %0, %1", "i32 u32",
             lambda a: np.array([32 - int(x).bit_length() if x else -1 for x in a])),
        case(f"{'v_ctz_i32_b32' if rdna else 'v_ffbl_b32'} %0, %1", "i32 u32",
             lambda a: np.array([(int(x) & -int(x)).bit_length() - 1 for x in a])),
        case(f"{'v_cls_i32' if rdna else 'v_ffbh_i32'} %0, %1", "i32 i32",
             lambda a: np.array([32 - (int(x) ^ (int(x) >> 31)).bit_length() if x not in (0, -1)
                                 else -1 for x in a])),
        case("v_min_i32 %0, %1, %2", "i32 i32 i32", np.minimum),
        case("v_max_i32 %0, %1, %2", "i32 i32 i32", np.maximum),
        case("v_min_u32 %0, %1, %2", uu, np.minimum),
        case("v_max_u32 %0, %1, %2", uu, np.maximum),
        case("v_min3_i32 %0, %1, %2, %3", "i32 i32 i32 i32",
             lambda a, b, c: np.minimum(np.minimum(a, b), c)),
        case("v_med3_i32 %0, %1, %2, %3", "i32 i32 i32 i32",
             lambda a, b, c: np.sort(np.stack([a, b, c]), 0)[1]),
        case("v_med3_u32 %0, %1, %2, %3", uuu, lambda a, b, c: np.sort(np.stack([a, b, c]), 0)[1]),
        case("v_add3_u32 %0, %1, %2, %3", uuu, lambda a, b, c: a + b + c),
        case("v_lshl_add_u32 %0, %1, %2, %3", "u32 u32 n5 u32", lambda a, n, c: (a << (n & 31)) + c),
        case("v_add_lshl_u32 %0, %1, %2, %3", "u32 u32 u32 n5", lambda a, b, n: (a + b) << (n & 31)),
        case("v_lshl_or_b32 %0, %1, %2, %3", "u32 u32 n5 u32", lambda a, n, c: (a << (n & 31)) | c),
        case("v_and_or_b32 %0, %1, %2, %3", uuu, lambda a, b, c: (a & b) | c),
        case("v_or3_b32 %0, %1, %2, %3", uuu, lambda a, b, c: a | b | c),
        case("v_xad_u32 %0, %1, %2, %3", uuu, lambda a, b, c: (a ^ b) + c),
        case("v_sad_u8 %0, %1, %2, %3", uuu, sad(8)),
        case("v_sad_u16 %0, %1, %2, %3", uuu, sad(16)),
        case("v_sad_u32 %0, %1, %2, %3", uuu, sad(32)),
        case("v_lerp_u8 %0, %1, %2, %3", uuu, lerp),
        case("v_cvt_pk_u16_u32 %0, %1, %2", uu,
             lambda a, b: np.minimum(a, 65535) | np.minimum(b, 65535) << 16),
    ]  # fmt: skip
    for test, f in {"lt": np.less, "eq": np.equal, "le": np.less_equal, "gt": np.greater,
                    "ne": np.not_equal, "ge": np.greater_equal}.items():  # fmt: skip
        for kind in ("i32", "u32", "i64", "u64", "i16", "u16"):
            cases.append(select(f"v_cmp_{test}_{kind}", f"{kind} {kind}", f, rdna))
    check(target, cases)


def bfe_signed(a, b, c):
    out = []
    for x, n, w in zip(a, b & 31, c & 31, strict=True):
        field = int(x).__rshift__(int(n)) if not x >> 31 else (int(x) - 2**32) >> int(n)
        field &= (1 << int(w)) - 1
        out.append(field - (1 << int(w)) if w and field >> (int(w) - 1) else field)
    return np.array(out, I64).astype(I32)


def permute(a, b, sel):
    out = np.zeros(len(a), U32)
    for lane, (x, y, s) in enumerate(zip(a, b, sel, strict=True)):
        data = (int(x) << 32 | int(y)).to_bytes(8, "little")
        result = 0
        for i in range(4):
            code = int(s) >> (8 * i) & 255
            if code < 8:
                byte = data[code]
            elif code < 12:
                byte = 255 if data[2 * (code - 8) + 1] >> 7 else 0
            else:
                byte = 0 if code == 12 else 255
            result |= byte << (8 * i)
        out[lane] = result
    return out


def sad(width):
    ones = (1 << width) - 1

    def total(a, b, c):
        s = c.astype(I64)
        for i in range(0, 32, width):
            s = s + np.abs((a.astype(I64) >> i & ones) - (b.astype(I64) >> i & ones))
        return s.astype(U64).astype(U32)

    return total


def lerp(a, b, c):
    r = np.zeros_like(a)
    for i in range(0, 32, 8):
        r |= ((a >> i & 255) + (b >> i & 255) + (c >> i & 1) >> 1) << i
    return r


def test_carries(target):
    rdna = target == "gfx1100"
    vcc = "vcc_lo" if rdna else "vcc"
    pair = "s[20:21]" if not rdna else "s20"
    addc = "v_add_co_ci_u32" if rdna else "v_addc_co_u32"
    subb = "v_sub_co_ci_u32" if rdna else "v_subb_co_u32"

    def carried(a, b, c):
        low = a.astype(U64) + b
        return (c.astype(U64) + c + (low >> U64(32))).astype(U32)

    def borrowed(a, b, c):
        return (c.astype(I64) - a - (a < b)).astype(U64).astype(U32)

    cases = [
        case(f"v_add_co_u32 %0, {vcc}, %1, %2\\n {addc} %0, {vcc}, %3, %3, {vcc}",
             "u32 u32 u32 u32", carried),
        case(f"v_sub_co_u32 %0, {vcc}, %1, %2\\n {subb} %0, {vcc}, %3, %1, {vcc}",
             "u32 u32 u32 u32", borrowed),
        case(f"v_mad_u64_u32 %0, {vcc}, %1, %2, %3", "u64 u32 u32 u64",
             lambda a, b, c: a.astype(U64) * b + c),
        case(f"v_mad_i64_i32 %0, {vcc}, %1, %2, %3", "i64 i32 i32 i64",
             lambda a, b, c: a.astype(I64) * b + c),
        case(f"v_cmp_lt_u32 {vcc}, %1, %2\\n v_cndmask_b32 %0, %1, %2, {vcc}", "u32 u32 u32",
             np.maximum),
        case(f"v_cmp_lt_f32 {vcc}, %1, %2\\n v_cndmask_b32 %0, -%1, |%2|, {vcc}", "f32 f32 f32",
             lambda a, b: np.where(a < b, np.abs(b), -a)),
    ]  # fmt: skip
    del pair
    check(target, cases)


def test_dot_products(target):
    rdna = target == "gfx1100"

    def parts(w, width, signed):
        out = []
        for i in range(0, 32, width):
            x = w.astype(I64) >> i & ((1 << width) - 1)
            out.append(np.where(signed & (x >> (width - 1) == 1), x - (1 << width), x))
        return out

    def dot(width, signed):
        def f(a, b, c):
            total = c.astype(I64)
            for x, y in zip(parts(a, width, signed), parts(b, width, signed), strict=True):
                total = total + x * y
            return total.astype(U64).astype(U32)

        return f

    uuu = "u32 u32 u32 u32"
    cases = [
        case("v_dot4_u32_u8 %0, %1, %2, %3", uuu, dot(8, False)),
        case("v_dot8_u32_u4 %0, %1, %2, %3", uuu, dot(4, False)),
    ]
    if rdna:
        cases += [
            case("v_dot4_i32_iu8 %0, %1, %2, %3 neg_lo:[1,1,0]", uuu, dot(8, True)),
            case("v_dot8_i32_iu4 %0, %1, %2, %3 neg_lo:[1,1,0]", uuu, dot(4, True)),
        ]
    else:
        cases += [
            case("v_dot4_i32_i8 %0, %1, %2, %3", uuu, dot(8, True)),
            case("v_dot8_i32_i4 %0, %1, %2, %3", uuu, dot(4, True)),
            case("v_dot2_i32_i16 %0, %1, %2, %3", uuu, dot(16, True)),
            case("v_dot2_u32_u16 %0, %1, %2, %3", uuu, dot(16, False)),
        ]
    check(target, cases)


def test_scalar(target):
    rdna = target == "gfx1100"
    uu = "u32 u32 u32"
    clz, ctz = ("s_clz_i32_u32", "s_ctz_i32_b32") if rdna else ("s_flbit_i32_b32", "s_ff1_i32_b32")
    andn2 = "s_and_not1_b32" if rdna else "s_andn2_b32"

    def bfe64(a, b):
        return U64(int(a) >> (int(b) & 63) & (1 << min(int(b) >> 16 & 127, 64)) - 1)

    cases = [
        case("s_add_u32 %0, %1, %2", uu, lambda a, b: a + b),
        case("s_sub_u32 %0, %1, %2", uu, lambda a, b: a - b),
        case("s_add_u32 %0, %1, %2\\n s_addc_u32 %0, %1, %1", uu,
             lambda a, b: (a.astype(U64) + a + (a.astype(U64) + b >> U64(32))).astype(U32)),
        case("s_sub_u32 %0, %1, %2\\n s_subb_u32 %0, %1, %1", uu,
             lambda a, b: -(a < b).astype(I32)),
        case("s_mul_i32 %0, %1, %2", uu, lambda a, b: a * b),
        case("s_mul_hi_u32 %0, %1, %2", uu, lambda a, b: a.astype(U64) * b >> U64(32)),
        case("s_mul_hi_i32 %0, %1, %2", "i32 i32 i32", lambda a, b: a.astype(I64) * b >> 32),
        case("s_and_b32 %0, %1, %2", uu, np.bitwise_and),
        case("s_or_b64 %0, %1, %2", "u64 u64 u64", np.bitwise_or),
        case("s_xor_b64 %0, %1, %2", "u64 u64 u64", np.bitwise_xor),
        case(f"{andn2} %0, %1, %2", uu, lambda a, b: a & ~b),
        case("s_not_b64 %0, %1", "u64 u64", np.invert),
        case("s_lshl_b32 %0, %1, %2", "u32 u32 n5", lambda a, n: a << (n & 31)),
        case("s_lshr_b64 %0, %1, %2", "u64 u64 n5", lambda a, n: a >> n.astype(U64)),
        case("s_ashr_i64 %0, %1, %2", "i64 i64 n5", lambda a, n: a >> n.astype(I64)),
        case("s_bfe_u32 %0, %1, %2", uu,
             lambda a, b: np.array([int(x) >> (int(y) & 31) & (1 << (int(y) >> 16 & 127)) - 1
                                    for x, y in zip(a, b, strict=True)], object).astype(U64)),
        case("s_bfe_u64 %0, %1, %2", "u64 u64 u32",
             lambda a, b: np.array([bfe64(x, y) for x, y in zip(a, b, strict=True)], U64)),
        case("s_bfm_b32 %0, %1, %2", "u32 n5 n5",
             lambda a, b: (((U64(1) << (a & 31).astype(U64)) - U64(1)).astype(U32) << (b & 31))),
        case("s_min_i32 %0, %1, %2", "i32 i32 i32", np.minimum),
        case("s_max_u32 %0, %1, %2", uu, np.maximum),
        case("s_abs_i32 %0, %1", "i32 i32", np.abs),
        case("s_brev_b32 %0, %1", "u32 u32",
             lambda a: np.array([int(f"{int(x):032b}"[::-1], 2) for x in a], U32)),
        case("s_bcnt1_i32_b64 %0, %1", "u32 u64",
             lambda a: np.array([int(x).bit_count() for x in a], U32)),
        case(f"{clz} %0, %1", "i32 u32",
             lambda a: np.array([32 - int(x).bit_length() if x else -1 for x in a])),
        case(f"{ctz} %0, %1", "i32 u32",
             lambda a: np.array([(int(x) & -int(x)).bit_length() - 1 for x in a])),
        case("s_sext_i32_i8 %0, %1", "i32 u32", lambda a: a.astype(np.uint8).view(np.int8)),
        case("s_sext_i32_i16 %0, %1", "i32 u32", lambda a: a.astype(np.uint16).view(np.int16)),
        case("s_cmp_lt_i32 %1, %2\\n s_cselect_b32 %0, %1, %2", "i32 i32 i32", np.minimum),
        case("s_cmp_gt_u32 %1, %2\\n s_cselect_b32 %0, %1, %2", uu, np.maximum),
        case("s_cmp_eq_u64 %1, %2\\n s_cselect_b32 %0, 1, 0", "u32 u64 u64", np.equal),
        case("s_pack_ll_b32_b16 %0, %1, %2", uu, lambda a, b: (a & 0xFFFF) | b << 16),
        case("s_bitset1_b32 %0, %1", "u32 n5", lambda n: U32(1) << (n & 31)),
        case("s_lshl2_add_u32 %0, %1, %2", uu, lambda a, b: (a << 2) + b),
        case("s_absdiff_i32 %0, %1, %2", "i32 i32 i32", lambda a, b: np.abs(a - b)),
        case("s_movk_i32 %0, -5\\n s_addk_i32 %0, 7\\n s_mul_i32 %0, %0, %1", "u32 u32",
             lambda a: a * 2),
    ]  # fmt: skip
    check(target, cases)


def test_fp8_of_gfx942():
    e4, e5 = ml_dtypes.float8_e4m3fnuz, ml_dtypes.float8_e5m2fnuz

    def decode(kind, byte):
        return lambda a: (a >> (8 * byte)).astype(np.uint8).view(kind).astype(np.float32)

    def encode(kind):
        # Overflow gives NaN while MODE.FP16_OVFL is clear, as compilers leave it.
        def f(a, b):
            low, high = (x.astype(kind).view(np.uint8) for x in (a, b))
            return low.astype(U32) | high.astype(U32) << 8

        return f

    cases = [
        case("v_cvt_f32_fp8 %0, %1", "f32 u32", decode(e4, 0)),
        case("v_cvt_f32_bf8 %0, %1", "f32 u32", decode(e5, 0)),
        case("v_cvt_f32_fp8_sdwa %0, %1 src0_sel:BYTE_2", "f32 u32", decode(e4, 2)),
        case("v_cvt_f32_bf8_sdwa %0, %1 src0_sel:BYTE_3", "f32 u32", decode(e5, 3)),
        case("v_cvt_pk_fp8_f32 %0, %1, %2", "u32 f32 f32", encode(e4)),
        case("v_cvt_pk_bf8_f32 %0, %1, %2", "u32 f32 f32", encode(e5)),
    ]
    check("gfx942", cases)


@pytest.mark.parametrize("target", ["gfx90a", "gfx942"])
def test_sdwa(target):
    def byte(w, n):
        return w >> (8 * n) & 255

    cases = [
        case("v_add_u32_sdwa %0, %1, %2 dst_sel:DWORD src0_sel:BYTE_1 src1_sel:WORD_1", "u32 u32 u32",
             lambda a, b: byte(a, 1) + (b >> 16)),
        case("v_mov_b32_sdwa %0, sext(%1) dst_sel:DWORD src0_sel:BYTE_3", "i32 u32",
             lambda a: byte(a, 3).astype(np.uint8).view(np.int8)),
        case("v_or_b32_sdwa %0, %1, %2 dst_sel:WORD_1 dst_unused:UNUSED_PAD src0_sel:WORD_0 "
             "src1_sel:BYTE_0", "u32 u32 u32", lambda a, b: ((a & 0xFFFF) | byte(b, 0)) << 16),
        case("v_mov_b32 %0, %2\\n v_add_u32_sdwa %0, %1, %1 dst_sel:BYTE_1 dst_unused:UNUSED_PRESERVE "
             "src0_sel:BYTE_0 src1_sel:BYTE_0", "u32 u32 u32",
             lambda a, b: (b & ~U32(0xFF00)) | (2 * a & 255) << 8),
        case("v_lshlrev_b32_sdwa %0, %1, %2 dst_sel:DWORD src0_sel:BYTE_0 src1_sel:WORD_0",
             "u32 n5 u32", lambda n, a: (a & 0xFFFF) << (n & 31)),
    ]  # fmt: skip
    check(target, cases)


def dpp_lanes(width, pick):
    """Value of each lane after a DPP move; `pick` gives the source lane or None (reads 0)."""

    def f(a):
        out = np.zeros_like(a)
        for base in range(0, len(a), width):
            for lane in range(width):
                source = pick(lane)
                if source is not None:
                    out[base + lane] = a[base + source]
        return out

    return f


@pytest.mark.parametrize("target", ["gfx90a", "gfx942"])
def test_packed_f32(target):
    from .instructions import run, values

    f = np.float32

    def split(a):
        return a.view(U32).reshape(-1, 2).view(f)

    def both(g):
        return lambda *w: np.stack(
            [g(*[split(x)[:, h] for x in w]) for h in (0, 1)], 1
        ).astype(f)  # fmt: skip

    three = "u64 u64 u64 u64"
    cases = [
        case("v_pk_add_f32 %0, %1, %2", "u64 u64 u64", both(lambda a, b: a + b)),
        case("v_pk_mul_f32 %0, %1, %2", "u64 u64 u64", both(lambda a, b: a * b)),
        case("v_pk_fma_f32 %0, %1, %2, %3", three, both(exact_fma(f))),
        case("v_pk_mul_f32 %0, %1, %2 op_sel:[1,0] op_sel_hi:[0,1] neg_lo:[1,0] neg_hi:[0,1]",
             "u64 u64 u64", lambda a, b: np.stack(
                 [-split(a)[:, 1] * split(b)[:, 0], split(a)[:, 0] * -split(b)[:, 1]], 1)),
        case("v_pk_add_f32 %0, %1, 1.0 op_sel_hi:[1,0]", "u64 u64", lambda a: split(a) + f(1)),
        case("v_pk_mov_b32 %0, %1, %2 op_sel:[1,0]", "u64 u64 u64",
             lambda a, b: np.stack([split(a)[:, 1], split(b)[:, 0]], 1)),
    ]  # fmt: skip
    sources = [values("u64", 192, s) for s in range(3)]
    with np.errstate(all="ignore"):
        for c, got in zip(cases, run(target, cases), strict=True):
            want = np.ascontiguousarray(c.truth(*sources[: len(c.sources)]))
            found = split(got)
            same = (found.view(U32) == want.view(U32)) | (np.isnan(found) & np.isnan(want))
            assert same.all(), c.text


def test_dpp(target):
    rdna = target == "gfx1100"
    width = 32 if rdna else 64

    def row(f):
        def pick(lane):
            i = f(lane & 15)
            return None if i is None or not 0 <= i < 16 else (lane & ~15) + i

        return pick

    def move(ctrl, pick):
        return case(f"v_mov_b32_dpp %0, %1 {ctrl} row_mask:0xf bank_mask:0xf bound_ctrl:0", "u32 u32",
                    dpp_lanes(width, pick))  # fmt: skip

    cases = [
        move("quad_perm:[3,1,0,2]", lambda lane: (lane & ~3) + [3, 1, 0, 2][lane & 3]),
        move("row_shl:3", row(lambda i: i + 3)),
        move("row_shr:5", row(lambda i: i - 5)),
        move("row_ror:4", row(lambda i: (i - 4) % 16)),
        move("row_mirror", row(lambda i: 15 - i)),
        move("row_half_mirror", lambda lane: (lane & ~7) + 7 - (lane & 7)),
        case("v_mov_b32 %0, %2\\n s_nop 4\\n v_mov_b32_dpp %0, %1 row_shr:1 row_mask:0xf "
             "bank_mask:0xf", "u32 u32 u32",
             lambda a, b: np.where(np.arange(len(a)) % 16 == 0, b, np.roll(a, 1))),
        case("v_mov_b32 %0, 0\\n s_nop 4\\n v_add_f32_dpp %0, -%1, %2 quad_perm:[1,0,3,2] "
             "row_mask:0xf bank_mask:0xf", "f32 f32 f32",
             lambda a, b: -a.reshape(-1, 2)[:, ::-1].reshape(-1) + b),
    ]  # fmt: skip
    if rdna:
        cases += [
            move("row_share:6", row(lambda i: 6)),
            move("row_xmask:9", row(lambda i: i ^ 9)),
            case("v_mov_b32_dpp %0, %1 dpp8:[7,6,5,4,3,2,1,0]", "u32 u32",
                 dpp_lanes(width, lambda lane: (lane & ~7) + 7 - (lane & 7))),
        ]  # fmt: skip
    else:
        cases += [
            move("row_newbcast:6", row(lambda i: 6)),
            move("wave_shl:1", lambda lane: lane + 1 if lane < 63 else None),
            move("wave_ror:1", lambda lane: (lane - 1) % 64),
            move("row_bcast:15", lambda lane: (lane & ~15) - 1 if lane >= 16 else None),
            move("row_bcast:31", lambda lane: 31 if lane >= 32 else None),
        ]
    check(target, cases)
