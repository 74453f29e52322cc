from __future__ import annotations

import re

import pytest

from hipport.convert.ptx import lop3_expression
from tests.support import again, plan

HEAD = "#include <cuda_runtime.h>\n"


def convert(body: str) -> str:
    done = plan(HEAD + "__device__ void f(unsigned a, unsigned b, int* p) {\n" + body + "\n}\n")
    text = done.text().split("{\n", 1)[1].rsplit("\n}\n", 1)[0]
    assert "\n#include" not in text
    return text


@pytest.mark.parametrize("table", range(256))
def test_lop3_expressions_have_their_table(table: int) -> None:
    text = lop3_expression(table, "a", "b", "c").replace("0u", "0")
    value = eval(text, {"a": 0xF0, "b": 0xCC, "c": 0xAA})
    assert value & 0xFF == table


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ('asm("mov.u32 %0, %%laneid;" : "=r"(r));', "r = __lane_id() & 31;"),
        ('asm volatile("mov.u32 %0, %lanemask_lt;" : "=r"(r));',
         "r = (1u << (__lane_id() & 31)) - 1;"),
        ('asm("mov.u32 %0, %%ctaid.x;" : "=r"(r));', "r = blockIdx.x;"),
        ('asm("bfe.u32 %0, %1, 4, 8;" : "=r"(r) : "r"(a));', "r = __builtin_amdgcn_ubfe(a, 4, 8);"),
        ('asm("bfe.u32 %0, %1, %2, %3;" : "=r"(r) : "r"(a), "r"(b), "r"(c));',
         "r = hipport_bfe_u32(a, b, c);"),
        ('asm("bfe.u32 %0, %1, 0, 32;" : "=r"(r) : "r"(a));', "r = hipport_bfe_u32(a, 0, 32);"),
        ('asm("mul.hi.u32 %0, %1, %2;" : "=r"(r) : "r"(a + 1), "r"(b));',
         "r = __umulhi((a + 1), b);"),
        ('asm("prmt.b32 %0, %1, %2, 0x3210;" : "=r"(r) : "r"(a), "r"(b));',
         "r = __byte_perm(a, b, 0x3210);"),
        ('asm("prmt.b32 %0, %1, %2, %3;" : "=r"(r) : "r"(a), "r"(b), "r"(s));',
         "r = hipport_prmt(a, b, s);"),
        ('asm("lop3.b32 %0, %1, %2, %3, 0x96;" : "=r"(r) : "r"(a), "r"(b), "r"(c));',
         "r = a ^ b ^ c;"),
        ('asm volatile("bar.sync 0;" ::: "memory");', "__syncthreads();"),
        ('asm volatile("membar.gl;" ::: "memory");', "__threadfence();"),
        ('asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));',
         "y = __builtin_amdgcn_exp2f(x);"),
        ('asm("shfl.sync.bfly.b32 %0, %1, %2, 0x1f, 0xffffffff;" : "=r"(r) : "r"(a), "r"(b));',
         "r = __shfl_xor(static_cast<int>(a), b, 32);"),
        ('asm volatile("ld.global.cg.u32 %0, [%1];" : "=r"(r) : "l"(p));',
         "r = *reinterpret_cast<const unsigned int*>(p);"),
        ('asm volatile("ld.global.nc.L1::no_allocate.f32 %0, [%1+16];" : "=f"(r) : "l"(p));',
         "r = *reinterpret_cast<const float*>(reinterpret_cast<char*>(p) + 16);"),
        ('asm volatile("st.release.gpu.global.u32 [%0], %1;" :: "l"(p), "r"(a) : "memory");',
         "__hip_atomic_store(reinterpret_cast<unsigned int*>(p), a, __ATOMIC_RELEASE, "
         "__HIP_MEMORY_SCOPE_AGENT);"),
        ('asm volatile("ld.acquire.sys.u32 %0, [%1];" : "=r"(r) : "l"(p));',
         "r = __hip_atomic_load(reinterpret_cast<unsigned int*>(p), __ATOMIC_ACQUIRE, "
         "__HIP_MEMORY_SCOPE_SYSTEM);"),
    ],
)  # fmt: skip
def test_single_instructions(source: str, expected: str) -> None:
    assert convert(source) == expected


def test_a_predicate_in_a_scope() -> None:
    text = convert(
        'asm("{\\n .reg .pred q;\\n setp.ne.u32 q, %1, 0;\\n selp.u32 %0, 1, 0, q;\\n}\\n"\n'
        '    : "=r"(r) : "r"(a));'
    )
    assert text.startswith("do { unsigned int hipport_p0; const unsigned int hipport_p1 = a;")
    assert "; bool hipport_r_q;" in text
    assert "hipport_r_q = hipport_p1 != static_cast<unsigned int>(0);" in text
    assert "hipport_p0 = hipport_r_q ? 1 : 0;" in text
    assert text.endswith("r = hipport_p0; } while (false);")


def test_a_closed_carry_chain() -> None:
    text = convert(
        'asm("add.cc.u32 %0, %2, %4;\\n\\t" "addc.u32 %1, %3, %5;" : "=r"(lo), "=r"(hi)\n'
        '    : "r"(a), "r"(b), "r"(c), "r"(d));'
    )
    assert "wide = static_cast<unsigned long long>(hipport_p2) + hipport_p4;" in text
    assert "carry = static_cast<unsigned int>(hipport_wide >> 32) & 1;" in text
    assert "(hipport_p3) + hipport_p5 + hipport_carry;" in text


@pytest.mark.parametrize(
    ("source", "slug", "named"),
    [
        ('asm volatile("bar.sync 1, 64;");', "ptx-barrier", "bar.sync"),
        ('asm("addc.u32 %0, %1, %2;" : "=r"(r) : "r"(a), "r"(b));', "ptx-carry-chain", "addc.u32"),
        ('asm volatile("cp.async.ca.shared.global [%0], [%1], 16;" :: "r"(a), "l"(p));',
         "async-copy", "cp.async.ca.shared.global"),
        ('asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0}, {%1}, {%1}, {%0};"'
         ' : "+f"(x) : "r"(a));', "tensor-core-mma", "mma.sync"),
        ('asm("mov.u64 %0, %%globaltimer;" : "=l"(t));', "ptx-special-register", "mov.u64"),
        ('asm volatile("foo.bar.u32 %0, %1;" : "=r"(r) : "r"(a));', "inline-ptx", "foo.bar.u32"),
        ('asm volatile("ld.shared.u32 %0, [%1];" : "=r"(r) : "r"(a));', "ptx-load-hint",
         "ld.shared.u32"),
    ],
)  # fmt: skip
def test_what_stays_is_named(source: str, slug: str, named: str) -> None:
    done = plan(HEAD + "__device__ void f(unsigned a, unsigned b, int* p) { " + source + " }\n")
    assert source in done.text()
    found = [f for f in done.findings() if f.needs_person]
    assert [f.slug for f in found] == [slug]
    assert named in found[0].message


@pytest.mark.parametrize(
    "source",
    [
        'asm volatile("" ::: "memory");',
        'asm volatile("" : "+r"(a));',
        'asm volatile("s_nop 0");',
        'asm volatile("v_add_u32 %0, %1, %2" : "=v"(r) : "v"(a), "v"(b));',
    ],
)
def test_what_is_not_ptx(source: str) -> None:
    done = plan(HEAD + "__device__ void f(unsigned a) { " + source + " }\n")
    assert source in done.text()
    assert not done.findings()


def test_host_assembly_is_left_alone() -> None:
    code = 'void f() { unsigned a, d; asm volatile("rdtsc" : "=a"(a), "=d"(d)); }\n'
    done = plan(HEAD + code)
    assert code in done.text()
    assert not done.findings()


def test_in_a_macro_body() -> None:
    done = plan(HEAD + '#define LANE(r) asm("mov.u32 %0, %%laneid;" : "=r"(r))\n')
    assert "#define LANE(r) r = __lane_id() & 31\n" in done.text()


def test_one_statement_with_a_known_and_an_unknown_instruction_stays_whole() -> None:
    source = 'asm("mul.hi.u32 %0, %1, %2; foo.u32 %0, %0;" : "=r"(r) : "r"(a), "r"(b));'
    done = plan(HEAD + "__device__ void f(unsigned a, unsigned b) { " + source + " }\n")
    assert source in done.text()
    assert re.search(r"'foo.u32' has no translation", done.findings()[0].message)


def test_twice_is_once() -> None:
    done = plan(
        HEAD + '__device__ void f() { unsigned r; asm("mov.u32 %0, %%laneid;" : "=r"(r)); }\n'
    )
    assert again(done).plans["a.cu"].output is None
    assert not again(done).findings()


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ('asm("mov.b32 %0, %1;" : "=r"(r) : "f"(x));', "r = __float_as_uint(x);"),
        ('asm("mov.b32 %0, %1;" : "=f"(x) : "r"(r));', "x = __uint_as_float(r);"),
        ('asm("mov.b64 %0, %1;" : "=l"(r) : "d"(x));', "r = __double_as_longlong(x);"),
        ('asm("mov.b32 %0, %1;" : "=f"(y) : "f"(x));', "y = x;"),
        ('asm("ld.global.cg.b32 %0, [%1];" : "=f"(x) : "l"(p));',
         "x = *reinterpret_cast<const float*>(p);"),
        ('asm("st.global.cg.b32 [%0], %1;" :: "l"(p), "f"(x));',
         "*reinterpret_cast<float*>(p) = x;"),
        # What goes into a register may be signed: the instruction decides, not the variable.
        ('asm("shr.u32 %0, %1, 4;" : "=r"(r) : "r"(i));',
         "r = 4 > 31 ? 0 : static_cast<unsigned int>(i) >> 4;"),
        ('asm("cvt.u64.u32 %0, %1;" : "=l"(r) : "r"(i));',
         "r = static_cast<unsigned long long>(static_cast<unsigned int>(i));"),
        ('asm("min.u32 %0, %1, %2;" : "=r"(r) : "r"(i), "r"(j));',
         "r = min(static_cast<unsigned int>(i), static_cast<unsigned int>(j));"),
    ],
)  # fmt: skip
def test_registers_are_bits(source: str, expected: str) -> None:
    assert convert(source) == expected


@pytest.mark.parametrize(
    "source",
    [
        'asm("add.f32 %0, %1, %2;" : "=r"(r) : "r"(a), "r"(b));',
        'asm("{ .reg .b32 t; add.f32 t, %1, %1; mov.b32 %0, t; }" : "=f"(x) : "f"(x));',
        'asm("{\\n .reg .pred p;\\n setp.ne.b32 p, %0, 0;\\n" :: "r"(a));',
        'asm("{ .reg .pred q; setp.ne.u32 q, %1, 0; selp.u32 %0, 1, 0, q; }"'
        ' : "=r"(r) : "r"(hipport_p0));',
    ],
)
def test_what_would_mean_something_else_stays(source: str) -> None:
    assert convert(source) == source


def test_temporaries_do_not_hide_the_operands() -> None:
    text = convert(
        'asm("{ .reg .pred q; setp.ne.u32 q, %1, 0; @q ld.global.cg.u32 %0, [%2]; }"'
        ' : "=r"(r) : "r"(p1), "l"(p));'
    )
    assert "const unsigned int hipport_p1 = p1;" in text
    assert "const unsigned long long hipport_p2 = (unsigned long long)(p);" in text
