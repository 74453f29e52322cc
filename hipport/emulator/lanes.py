"""Collect lane-wise operations into loops over the lanes that a C compiler vectorises.

A vector operation becomes a few C statements on local variables `v7`; consecutive ones share one
loop, which loads the registers it reads first and stores those it changed last. Lanes that EXEC
leaves out keep their old value by a bitwise select, so the loop has no branches.
"""

# ruff: noqa: E501  (lines of C)
from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, field

# Not vectorised by C compilers; loops with one of these skip idle lanes instead of selecting.
_HEAVY = re.compile(
    r"p_exp2|p_log2|exp2\(|log2\(|_turns|ldexp_d|frexp|fmod|p_iseven|u128|i128|div_|for \(|trig_|f_to_8"
    r"|clz|ctz|cls|p_perm|ldexp\("
)


@dataclass
class LaneOp:
    """One lane-wise operation. `%m<n>%` in a line stands for the lane's bit of mask SGPR n."""

    lines: list[str] = field(default_factory=list)
    prelude: list[str] = field(default_factory=list)
    reads: set[int] = field(default_factory=set)
    scalars: set[int] = field(default_factory=set)
    masks: set[int] = field(default_factory=set)
    writes: list[tuple[int, str]] = field(default_factory=list)
    carry: tuple[int, str] | None = None
    exec_bit: str | None = None
    only: str | None = None


class LaneLoop:
    """The loop being built; `flush` gives its C text and starts the next one."""

    def __init__(self, wide: bool, limit: int = 40) -> None:
        self.wide = wide
        self.limit = limit
        self.reset()

    def reset(self) -> None:
        self.body: list[str] = []
        self.prelude: list[str] = []
        self.loads: dict[int, None] = {}
        self.stores: dict[int, None] = {}
        self.scalars: set[int] = set()
        self.masks: set[int] = set()
        self.carries: dict[int, str] = {}
        self.exec_bit: str | None = None
        self.heavy = False
        self.count = 0

    def must_flush(self, op: LaneOp) -> bool:
        """Whether `op` cannot join the loop as it stands."""
        if not self.body:
            return False
        if op.prelude or self.exec_bit or self.count >= self.limit:
            return True
        if any(n in self.carried() for n in op.scalars):
            return True
        # A mask read as a pair must be one carry of this loop exactly, or untouched by it.
        if any(n not in self.carries and self.overlaps(n) for n in op.masks):
            return True
        if op.carry is not None and op.carry[0] not in self.carries and self.overlaps(op.carry[0]):
            return True
        return self.is_heavy(op) != self.heavy

    def carried(self) -> set[int]:
        return {r for n in self.carries for r in ((n, n + 1) if self.wide else (n,))}

    def overlaps(self, n: int) -> bool:
        return any(r in self.carried() for r in ((n, n + 1) if self.wide else (n,)))

    @staticmethod
    def is_heavy(op: LaneOp) -> bool:
        return any(_HEAVY.search(line) for line in op.lines)

    def add(self, op: LaneOp) -> None:
        """Append `op`; the caller has flushed if `must_flush` said so."""
        self.heavy = self.is_heavy(op)
        self.prelude.extend(op.prelude)
        self.count += 1
        for r in op.reads:
            self.loads.setdefault(r)
        self.scalars |= op.scalars

        def mask(match: re.Match[str]) -> str:
            n = int(match[1])
            if n in self.carries:
                return f"({self.carries[n]}&1u)"
            self.masks.add(n)
            return f"(xm{n}[l]&1u)"

        lines = [re.sub(r"%m(\d+)%", mask, line) for line in op.lines]
        m = f"(m & {op.only})" if op.only else "m"
        self.body.append("{")
        self.body.extend(lines)
        for r, value in op.writes:
            self.loads.setdefault(r)
            self.stores.setdefault(r)
            self.body.append(f"v{r} = ({value} & {m}) | (v{r} & ~{m});")
        if op.carry is not None:
            base, value = op.carry
            name = f"c{base}_{self.count}"
            self.body.append(f"{name} = ({value}) & 1u & {m};")
            self.carries[base] = name
            self.declared = True
        if op.exec_bit is not None:
            self.exec_bit = f"x_{self.count}"
            self.body.append(f"{self.exec_bit} = ({op.exec_bit}) & 1u & {m};")
        self.body.append("}")

    def flush(self) -> list[str]:
        """C statements for everything added so far."""
        if not self.body:
            return []
        out = ["{", *self.prelude]
        out += [f"const u32 s{n} = S[{n}];" for n in sorted(self.scalars)]
        for n in sorted(self.masks):
            value = f"S64({n})" if self.wide else f"(u64)S[{n}]"
            out.append(f"u32 xm{n}[L]; expand({value}, xm{n});")
        names = self.carry_names()
        kept = set(self.carries.values())
        out += [f"u32 k{name}[L];" for name in sorted(kept)]
        if self.exec_bit:
            out.append(f"u32 k{self.exec_bit}[L];")
        out.append("LANES {" if not self.heavy else "for (int l = 0; l < L; l++) {")
        out.append("const u32 m = em[l];")
        if self.heavy:
            zero = "".join(f"k{n}[l] = 0; " for n in sorted(kept))
            zero += f"k{self.exec_bit}[l] = 0; " if self.exec_bit else ""
            out.append(f"if (!m) {{ {zero}continue; }}")
        out += [f"u32 v{n} = V[VX({n}) * L + l];" for n in self.loads]
        for name in sorted(names | ({self.exec_bit} if self.exec_bit else set())):
            out.append(f"u32 {name};")
        out += self.body
        out += [f"V[VX({n}) * L + l] = v{n};" for n in self.stores]
        out += [f"k{name}[l] = {name};" for name in sorted(kept)]
        if self.exec_bit:
            out.append(f"k{self.exec_bit}[l] = {self.exec_bit};")
        out.append("}")
        for n, name in self.carries.items():
            out.append(
                f"S64({n}) = pack(k{name});" if self.wide else f"S[{n}] = (u32)pack(k{name});"
            )
        if self.exec_bit:
            out.append(f"SETEXEC(pack(k{self.exec_bit}));")
        out.append("}")
        self.reset()
        return out

    def carry_names(self) -> set[str]:
        found = set()
        for line in self.body:
            if match := re.match(r"(c\d+_\d+) = ", line):
                found.add(match[1])
        return found


def used(lines: Iterable[str]) -> set[int]:
    """Register numbers of the locals `v7` in C text."""
    return {int(n) for line in lines for n in re.findall(r"\bv(\d+)\b", line)}
