"""Matrix instructions: MFMA of gfx90a and gfx942, WMMA of gfx1100.

Where each element of A, B, C and D lies (register and lane) is described in "AMD Instinct MI200"
and "AMD Instinct MI300 Instruction Set Architecture Reference Guide", chapters on matrix
arithmetic, in "RDNA3 Instruction Set Architecture Reference Guide", wave matrix multiply
accumulate, and can be printed by AMD's matrix instruction calculator.

Sums run over k upwards, one fused multiply-add each in the result's format (f32, f64 or i32). The
cards may add in another order and keep other guard bits, so float results can differ in the last
places; integers are exact.
"""

# ruff: noqa: E501  (lines of C)
from __future__ import annotations

import re
from typing import TYPE_CHECKING

from hipport.emulator.decode import Inst
from hipport.emulator.operands import Operand, Unsupported, constant

if TYPE_CHECKING:
    from hipport.emulator.translate import Translator

#: Element kinds as the C helper numbers them, and their bits.
_KINDS = {
    "f32": (0, 32),
    "f16": (1, 16),
    "bf16": (2, 16),
    "fp8": (3, 8),
    "bf8": (4, 8),
    "i8": (5, 8),
    "u8": (6, 8),
    "i4": (7, 4),
    "u4": (8, 4),
}
_MFMA = re.compile(
    r"v_mfma_(f32|f64|i32)_(\d+)x(\d+)x(\d+)(?:_(\d+)b)?_(f32|f16|bf16|f64|i8|(fp8|bf8)_(fp8|bf8))$"
)
_WMMA = re.compile(r"v_wmma_(f32|f16|bf16|i32)_16x16x16_(f16|bf16|iu8|iu4)$")


def is_matrix(inst: Inst) -> bool:
    """Whether `inst` multiplies matrices across the wavefront."""
    return inst.name.startswith(("v_mfma_", "v_smfmac_", "v_wmma_"))


def translate(t: Translator, inst: Inst) -> list[str]:
    """C of a matrix instruction."""
    if match := _MFMA.match(inst.name):
        return _mfma(t, inst, match)
    if match := _WMMA.match(inst.name):
        return _wmma(t, inst, match)
    if "xf32" in inst.name:
        raise Unsupported("xf32: the manual does not say how inputs are rounded")
    if "smfmac" in inst.name:
        raise Unsupported("sparse matrix instruction")
    raise Unsupported("matrix instruction of another chip")


def _column(t: Translator, first: int, count: int) -> str:
    t.use_vgpr(*range(first, first + count))
    return f"&V[VX({first}) * L]"


def _mfma(t: Translator, inst: Inst, match: re.Match[str]) -> list[str]:
    out, m, n, k = match[1], int(match[2]), int(match[3]), int(match[4])
    blocks = int(match[5] or 1)
    a_type, b_type = (match[7], match[8]) if match[7] else (match[6], match[6])
    acc, acc_cd = inst.get("acc"), inst.get("acc_cd")
    cbsz, abid, blgp = inst.get("cbsz"), inst.get("abid"), inst.get("blgp")
    per_lane = k * m * blocks // 64
    wide = out == "f64"
    in_words = 2 if wide else max(1, per_lane * _KINDS[a_type][1] // 32)
    out_words = blocks * m * n // 64 * (2 if wide else 1)

    def source(name: str, bit: int) -> str:
        n_ = inst.get(name) - 256
        if n_ < 0:
            raise Unsupported("constant matrix operand")
        return _column(t, n_ + (256 if bit else 0), in_words)

    a, b = source("src0", acc & 1), source("src1", acc >> 1)
    src2 = inst.get("src2")
    if src2 < 256:
        bits = constant(src2, Operand("f" if out != "i32" else "i", 64 if wide else 32), None)
        if bits is None:
            raise Unsupported("scalar accumulator operand")
        c, fill = "0", f"{bits:#x}ull"
    else:
        c, fill = _column(t, src2 - 256 + (256 if acc_cd else 0), out_words), "0"
    d = _column(t, inst.get("vdst") - 256 + (256 if acc_cd else 0), out_words)
    if wide:
        neg = blgp if t.target != "gfx90a" else 0
        return [f"mfma_d({d}, {a}, {b}, {c}, {fill}, {m}, {n}, {k}, {blocks}, {neg});"]
    if out == "i32":
        return [
            f"mfma_i({d}, {a}, {b}, {c}, {fill}, {m}, {n}, {k}, {blocks}, {per_lane}, "
            f"{cbsz}, {abid}, {blgp});"
        ]
    return [
        f"mfma_f({d}, {a}, {b}, {c}, {fill}, {m}, {n}, {k}, {blocks}, {per_lane}, "
        f"{_KINDS[a_type][0]}, {_KINDS[b_type][0]}, {cbsz}, {abid}, {blgp});"
    ]


def _wmma(t: Translator, inst: Inst, match: re.Match[str]) -> list[str]:
    out, kind = match[1], match[2]
    neg, neg_hi = inst.get("neg"), inst.get("neg_hi")
    if t.wide:
        raise Unsupported("wave matrix multiply in 64-lane mode")
    integer = out == "i32"
    words = {"f16": 8, "bf16": 8, "iu8": 4, "iu4": 2}[kind]
    if not integer and (neg or neg_hi):
        raise Unsupported("negated matrix operand")
    a = _column(t, inst.get("src0") - 256, words)
    b = _column(t, inst.get("src1") - 256, words)
    src2 = inst.get("src2")
    if src2 < 256:
        bits = constant(src2, Operand("i" if integer else "f", 32), None)
        if bits is None:
            raise Unsupported("scalar accumulator operand")
        c, fill = "0", f"{bits:#x}u"
    else:
        c, fill = _column(t, src2 - 256, 8), "0"
    d = _column(t, inst.get("vdst") - 256, 8)
    high = inst.get("opsel") >> 2 & 1
    if integer:
        base = "8" if kind == "iu8" else "4"
        ka = _KINDS[("i" if neg & 1 else "u") + base][0]
        kb = _KINDS[("i" if neg & 2 else "u") + base][0]
        return [f"wmma_i({d}, {a}, {b}, {c}, {fill}, {ka}, {kb}, {inst.get('clmp')});"]
    how = {"f32": 0, "f16": 1, "bf16": 2}[out]
    if how and inst.get("clmp"):
        raise Unsupported("clamp of a wave matrix multiply")
    return [f"wmma_f({d}, {a}, {b}, {c}, {fill}, {_KINDS[kind][0]}, {how}, {high});"]


HELPERS = r"""
INLINE float mat_f(const u32 *v, int lane, int e, int kind) {
  if (kind == 0) return u2f(v[e * L + lane]);
  if (kind <= 2) {
    u32 h = (v[e / 2 * L + lane] >> (16 * (e & 1))) & 0xffff;
    return kind == 1 ? h2f(h) : bf2f(h);
  }
  u32 q = (v[e / 4 * L + lane] >> (8 * (e & 3))) & 0xff;
  return kind == 3 ? fp8_to_f(q) : bf8_to_f(q);
}
INLINE i32 mat_i(const u32 *v, int lane, int e, int kind) {
  if (kind >= 7) {
    u32 q = (v[e / 8 * L + lane] >> (4 * (e & 7))) & 15;
    return kind == 7 ? (i32)(q << 28) >> 28 : (i32)q;
  }
  u32 q = (v[e / 4 * L + lane] >> (8 * (e & 3))) & 0xff;
  return kind == 5 ? (i32)(i8)q : (i32)q;
}
/* lanes of B after the BLGP field's broadcast or rotation */
INLINE int mat_blgp(int lane, int g) {
  switch (g) {
    case 1: return lane & 31;
    case 2: return lane | 32;
    case 3: return (lane + 16) & 63;
    case 4: return lane & 15;
    case 5: return (lane & 15) + 16;
    case 6: return (lane & 15) + 32;
    case 7: return (lane & 15) + 48;
    default: return lane;
  }
}
INLINE int mat_block(int b, int cbsz, int abid) { return (b >> cbsz << cbsz) + abid; }
/* register and lane of D[i][j] in block b, for 32-bit results */
INLINE int mat_out(int M, int N, int i, int j, int b, int *lane) {
  int rows = 64 / N, per = 256 / (M * N);
  if (per < 1) per = 1;
  *lane = b % per * N + i / 4 % rows * per * N + j;
  return b * (M * N / 64) + i / (4 * rows) * 4 + i % 4;
}
static void mfma_f(u32 *d, const u32 *a, const u32 *b, const u32 *c, u64 fill, int M, int N, int K, int B,
                   int e, int ka, int kb, int cbsz, int abid, int blgp) {
  float out[2048], bm[16 * 32];
  for (int q = 0; q < B; q++) {
    int qa = mat_block(q, cbsz, abid);
    for (int k0 = 0; k0 < K; k0 += 16) {
      int kn = K - k0 < 16 ? K - k0 : 16;
      for (int k = 0; k < kn; k++)
        for (int j = 0; j < N; j++)
          bm[k * N + j] = mat_f(b, mat_blgp(q * N + (k0 + k) / e * N * B + j, blgp), (k0 + k) % e, kb);
      for (int i = 0; i < M; i++) {
        float *acc = out + (q * M + i) * N;
        if (k0 == 0)
          for (int j = 0; j < N; j++) {
            int lane, r = mat_out(M, N, i, j, q, &lane);
            acc[j] = c ? u2f(c[r * L + lane]) : u2f((u32)fill);
          }
        for (int k = 0; k < kn; k++) {
          float x = mat_f(a, qa * M + (k0 + k) / e * M * B + i, (k0 + k) % e, ka);
          for (int j = 0; j < N; j++) acc[j] = __builtin_fmaf(x, bm[k * N + j], acc[j]);
        }
      }
    }
  }
  for (int q = 0; q < B; q++)
    for (int i = 0; i < M; i++)
      for (int j = 0; j < N; j++) {
        int lane, r = mat_out(M, N, i, j, q, &lane);
        d[r * L + lane] = f2u(out[(q * M + i) * N + j]);
      }
}
static void mfma_i(u32 *d, const u32 *a, const u32 *b, const u32 *c, u64 fill, int M, int N, int K, int B,
                   int e, int cbsz, int abid, int blgp) {
  u32 C[2048];
  for (int q = 0; q < B; q++)
    for (int i = 0; i < M; i++)
      for (int j = 0; j < N; j++) {
        int lane, r = mat_out(M, N, i, j, q, &lane);
        u32 s = c ? c[r * L + lane] : (u32)fill;
        int qa = mat_block(q, cbsz, abid);
        for (int k = 0; k < K; k++)
          s += (u32)(mat_i(a, qa * M + k / e * M * B + i, k % e, 5) *
                     mat_i(b, mat_blgp(q * N + k / e * N * B + j, blgp), k % e, 5));
        C[(q * M + i) * N + j] = s;
      }
  for (int q = 0; q < B; q++)
    for (int i = 0; i < M; i++)
      for (int j = 0; j < N; j++) {
        int lane, r = mat_out(M, N, i, j, q, &lane);
        d[r * L + lane] = C[(q * M + i) * N + j];
      }
}
static void mfma_d(u32 *d, const u32 *a, const u32 *b, const u32 *c, u64 fill, int M, int N, int K, int B,
                   int neg) {
  double C[256];
  for (int q = 0; q < B; q++)
    for (int i = 0; i < M; i++)
      for (int j = 0; j < N; j++) {
        int lane = B == 1 ? i % 4 * 16 + j : i * 16 + q * 4 + j, r = B == 1 ? i / 4 * 2 : 0;
        double s = u2d(c ? bcast(c[r * L + lane], c[(r + 1) * L + lane]) : fill);
        if (neg & 4) s = -s;
        for (int k = 0; k < K; k++) {
          int la = q * M + k * M * B + i, lb = q * N + k * N * B + j;
          double x = u2d(bcast(a[la], a[L + la])), y = u2d(bcast(b[lb], b[L + lb]));
          if (neg & 1) x = -x;
          if (neg & 2) y = -y;
          s = __builtin_fma(x, y, s);
        }
        C[(q * M + i) * N + j] = s;
      }
  for (int q = 0; q < B; q++)
    for (int i = 0; i < M; i++)
      for (int j = 0; j < N; j++) {
        int lane = B == 1 ? i % 4 * 16 + j : i * 16 + q * 4 + j, r = B == 1 ? i / 4 * 2 : 0;
        u64 x = d2u(C[(q * M + i) * N + j]);
        d[r * L + lane] = (u32)x;
        d[(r + 1) * L + lane] = (u32)(x >> 32);
      }
}
/* WMMA, 32 lanes: lane i mod 16 holds row i of A and column i of B; D[i][j] is in register i / 2 of
 * lane j + 16 * (i mod 2). 16-bit results take one half of a register and keep the other. */
static void wmma_f(u32 *d, const u32 *a, const u32 *b, const u32 *c, u32 fill, int kind, int how, int high) {
  u32 C[16][16];
  for (int i = 0; i < 16; i++)
    for (int j = 0; j < 16; j++) {
      u32 w = c ? c[i / 2 * L + j + 16 * (i & 1)] : fill;
      if (how && c && high) w >>= 16;
      float s = how == 0 ? u2f(w) : how == 1 ? (c ? h2f(w & 0xffff) : u2f(w)) : (c ? bf2f(w & 0xffff) : u2f(w));
      for (int k = 0; k < 16; k++) s = __builtin_fmaf(mat_f(a, i, k, kind), mat_f(b, j, k, kind), s);
      C[i][j] = how == 0 ? f2u(s) : how == 1 ? f2h(s) : f2bf(s);
    }
  for (int i = 0; i < 16; i++)
    for (int j = 0; j < 16; j++) {
      u32 *p = &d[i / 2 * L + j + 16 * (i & 1)];
      if (how == 0) *p = C[i][j];
      else if (high) *p = (*p & 0xffffu) | C[i][j] << 16;
      else *p = (*p & 0xffff0000u) | C[i][j];
    }
}
static void wmma_i(u32 *d, const u32 *a, const u32 *b, const u32 *c, u32 fill, int ka, int kb, int clamp) {
  u32 C[16][16];
  for (int i = 0; i < 16; i++)
    for (int j = 0; j < 16; j++) {
      i64 s = (i32)(c ? c[i / 2 * L + j + 16 * (i & 1)] : fill);
      for (int k = 0; k < 16; k++) s += mat_i(a, i, k, ka) * mat_i(b, j, k, kb);
      if (clamp) s = s > 0x7fffffffll ? 0x7fffffffll : s < -0x80000000ll ? -0x80000000ll : s;
      C[i][j] = (u32)s;
    }
  for (int i = 0; i < 16; i++)
    for (int j = 0; j < 16; j++) d[i / 2 * L + j + 16 * (i & 1)] = C[i][j];
}
"""
