"""Small inline functions for what C's vector extensions do not say; a text has those it uses."""

from __future__ import annotations

from loopwright_core.plugin.target import Target
from loopwright_render_clang.types import VectorTypes, element

INLINE = "static inline __attribute__((always_inline))"
# What Clang calls them; GCC has no generic vector forms.
_ELEMENTWISE = {"sqrt": "sqrt", "trunc": "trunc", "rint": "rint", "fma": "fma"}
_ROUNDING = {"trunc": 11, "rint": 4}  # SSE4.1's immediate: toward zero | quiet, current mode
_SUFFIX = {"f32": "ps", "f64": "pd"}


class Helpers:
    """The helpers one text uses, in the order of first use. Each method returns a name."""

    def __init__(self, target: Target, types: VectorTypes) -> None:
        self._types = types
        self._is_x86 = target.arch == "x86_64"
        self._has = target.features
        self._native = frozenset(target.vector_bytes)
        self._texts: dict[str, str] = {}

    def texts(self) -> list[str]:
        """The definitions."""
        return list(self._texts.values())

    def _add(self, name: str, head: str, lines: list[str]) -> str:
        if name not in self._texts:
            body = "\n".join(line if line.startswith("#") else f"    {line}" for line in lines)
            self._texts[name] = f"{INLINE}\n{head} {{\n{body}\n}}\n"
        return name

    def splat(self, code: str, lanes: int) -> str:
        """Scalar -> vector."""
        v = self._types.name(code, lanes)
        name = f"splat_{v}"
        values = ", ".join(["x"] * lanes)
        return self._add(name, f"{v} {name}({element(code)} x)", [f"return ({v}){{{values}}};"])

    def select(self, code: str, lanes: int) -> str:
        """(mask, a, b) -> a where the mask is set, else b."""
        v, m = self._types.name(code, lanes), self._types.name(f"i{code[1:]}", lanes)
        name = f"select_{v}"
        line = f"return ({v})((m & ({m})a) | (~m & ({m})b));"
        bits, size = int(code[1:]), lanes * int(code[1:]) // 8
        # AVX-512 has the line above as one instruction, AVX2 only this.
        if "avx2" in self._has and 64 not in self._native and bits >= 32 and size in self._native:
            s = "ps" if bits == 32 else "pd"
            f = self._types.name(f"f{bits}", lanes)
            args = f"({f})b, ({f})a, ({f})m"
            wide = "256" if size == 32 else ""
            line = f"return ({v})__builtin_ia32_blendv{s}{wide}({args});"
        return self._add(name, f"{v} {name}({m} m, {v} a, {v} b)", [line])

    def extreme(self, which: str, code: str, lanes: int) -> str:
        """max: (a, b) -> a where a is above b, else b; min: a where it is below. "" where no
        instruction does just that, also with a NaN and with zeros of both signs."""
        size = lanes * int(code[1:]) // 8
        if not self._is_x86 or code not in _SUFFIX or size not in self._native or size == 64:
            return ""
        v = self._types.name(code, lanes)
        builtin = f"__builtin_ia32_{which}{_SUFFIX[code]}{'256' if size == 32 else ''}"
        name = f"{which}_{v}"
        return self._add(name, f"{v} {name}({v} a, {v} b)", [f"return {builtin}(a, b);"])

    def zero_minus(self, code: str) -> str:
        """x -> 0.0 - x, out of sight of GCC's folding of expressions."""
        name, kind = f"zero_minus_{code}", element(code)
        return self._add(name, f"{kind} {name}({kind} x)", ["return 0 - x;"])

    def plus_zero(self, code: str) -> str:
        """x -> x + 0.0, out of sight of GCC's folding of expressions."""
        name, kind = f"plus_zero_{code}", element(code)
        return self._add(name, f"{kind} {name}({kind} x)", ["return x + 0;"])

    def bitcast(self, source: str, target: str) -> str:
        """The same bits as another scalar type."""
        name = f"bitcast_{source}_{target}"
        a, b = element(source), element(target)
        lines = [f"union {{ {a} x; {b} y; }} u = {{x}};", "return u.y;"]
        return self._add(name, f"{b} {name}({a} x)", lines)

    def math(self, function: str, code: str, lanes: int, n_args: int = 1) -> str:
        """sqrt, trunc, rint or fma of vectors."""
        v = self._types.name(code, lanes)
        name = f"{function}_{v}"
        if name in self._texts:
            return name
        size = lanes * int(code[1:]) // 8
        args = ["a", "b", "c"][:n_args]
        head = f"{v} {name}({', '.join([f'{v} {a}' for a in args])})"
        generic = f"__builtin_elementwise_{_ELEMENTWISE[function]}"
        lines = [f"#if __has_builtin({generic})", f"return {generic}({', '.join(args)});", "#else"]
        builtin = self._x86(function, code, size) if self._is_x86 else ""
        if builtin:
            lines.append(f"return {builtin};")
        elif self._native and size > max(self._native) and lanes > 2:
            lines += self._halves(function, code, lanes, args)
        else:
            scalar = f"__builtin_{function}{'f' if code == 'f32' else ''}"
            each = ", ".join([f"{a}[i]" for a in args])
            lines += [*_each_lane(lanes, f"a[i] = {scalar}({each});"), "return a;"]
        return self._add(name, head, [*lines, "#endif"])

    def _x86(self, function: str, code: str, size: int) -> str:
        if size not in self._native:
            return ""
        s = _SUFFIX[code]
        wide = {16: "", 32: "256", 64: "512"}[size]
        if function == "fma":
            if size == 64:
                return f"__builtin_ia32_vfmadd{s}512_mask(a, b, c, -1, 4)"
            return f"__builtin_ia32_vfmadd{s}{wide}(a, b, c)" if "fma" in self._has else ""
        if function == "sqrt":
            if size == 64:
                return f"__builtin_ia32_sqrt{s}512_mask(a, a, -1, 4)"
            return f"__builtin_ia32_sqrt{s}{wide}(a)"
        if size == 64:
            return f"__builtin_ia32_rndscale{s}_mask(a, {_ROUNDING[function]}, a, -1, 4)"
        if size == 32 or "sse4_1" in self._has:
            return f"__builtin_ia32_round{s}{wide}(a, {_ROUNDING[function]})"
        return ""

    def _halves(self, function: str, code: str, lanes: int, args: list[str]) -> list[str]:
        """A vector wider than the registers: twice half of it."""
        half = self._types.name(code, lanes // 2)
        name = self.math(function, code, lanes // 2, len(args))
        low = ", ".join(map(str, range(lanes // 2)))
        high = ", ".join(map(str, range(lanes // 2, lanes)))
        join = ", ".join(map(str, range(lanes)))
        lows = ", ".join([f"__builtin_shufflevector({a}, {a}, {low})" for a in args])
        highs = ", ".join([f"__builtin_shufflevector({a}, {a}, {high})" for a in args])
        return [
            f"{half} low = {name}({lows});",
            f"{half} high = {name}({highs});",
            f"return __builtin_shufflevector(low, high, {join});",
        ]

    def load_if(self, code: str, lanes: int) -> str:
        """(address, mask, fill) -> lanes from memory where the mask is set; others are not read."""
        v, m = self._types.name(code, lanes), self._types.name(f"i{code[1:]}", lanes)
        name = f"load_if_{v}"
        head = f"{v} {name}(const {element(code)} *p, {m} m, {v} fill)"
        masked = self._masked("load", code, lanes)
        if not masked:
            lines = [*_each_lane(lanes, "if (m[i]) fill[i] = p[i];"), "return fill;"]
        elif masked.endswith("_mask"):
            w, bits = self._wide(code, lanes)
            lines = [f"return ({v}){masked}((const {_wide_element(code)} *)p, ({w})fill, {bits});"]
        else:
            w, _ = self._wide(code, lanes)
            select = self.select(code, lanes)
            lines = [f"return {select}(m, ({v}){masked}((const {w} *)p, m), fill);"]
        return self._add(name, head, lines)

    def load_first(self, code: str, lanes: int) -> str:
        """(address, n, fill) -> the first n lanes from memory."""
        v = self._types.name(code, lanes)
        name = f"load_first_{v}"
        lines = ["__builtin_memcpy(&fill, p, n * sizeof(*p));", "return fill;"]
        return self._add(name, f"{v} {name}(const {element(code)} *p, int n, {v} fill)", lines)

    def store_if(self, code: str, lanes: int) -> str:
        """(address, mask, value): writes the lanes where the mask is set."""
        v, m = self._types.name(code, lanes), self._types.name(f"i{code[1:]}", lanes)
        name = f"store_if_{v}"
        head = f"void {name}({element(code)} *p, {m} m, {v} x)"
        masked = self._masked("store", code, lanes)
        if not masked:
            lines = _each_lane(lanes, "if (m[i]) p[i] = x[i];")
        elif masked.endswith("_mask"):
            w, bits = self._wide(code, lanes)
            lines = [f"{masked}(({_wide_element(code)} *)p, ({w})x, {bits});"]
        else:
            w, _ = self._wide(code, lanes)
            lines = [f"{masked}(({w} *)p, m, ({w})x);"]
        return self._add(name, head, lines)

    def store_first(self, code: str, lanes: int) -> str:
        """(address, n, value): writes the first n lanes."""
        v = self._types.name(code, lanes)
        name = f"store_first_{v}"
        lines = ["__builtin_memcpy(p, &x, n * sizeof(*p));"]
        return self._add(name, f"void {name}({element(code)} *p, int n, {v} x)", lines)

    def has_masked(self, code: str, lanes: int) -> bool:
        """Whether memory access under a mask is one instruction."""
        return bool(self._masked("load", code, lanes))

    def _masked(self, what: str, code: str, lanes: int) -> str:
        bits, size = int(code[1:]), lanes * int(code[1:]) // 8
        if not self._is_x86 or bits < 32 or size not in self._native or "avx2" not in self._has:
            return ""
        if size == 64:
            unit = {"f32": "ups", "f64": "upd"}.get(code, "dqusi" if bits == 32 else "dqudi")
            return f"__builtin_ia32_{what}{unit}512_mask"
        unit = _SUFFIX.get(code, "d" if bits == 32 else "q")
        return f"__builtin_ia32_mask{what}{unit}{'256' if size == 32 else ''}"

    def _wide(self, code: str, lanes: int) -> tuple[str, str]:
        """The type that the builtins take, and a 512-bit vector mask as mask bits."""
        is_float = code[0] == "f"
        name = self._types.name(code if is_float else f"i{code[1:]}", lanes)
        return name, f"__builtin_ia32_cvt{'d' if code[1:] == '32' else 'q'}2mask512(m)"

    def gather(self, code: str, lanes: int, offset: str, *, masked: bool) -> str:
        """(address, offsets[, mask, fill]) -> one lane from each offset."""
        v, o = self._types.name(code, lanes), self._types.name(offset, lanes)
        name = f"gather_{'if_' if masked else ''}{v}_{offset}"
        head = f"{v} {name}(const {element(code)} *p, {o} o"
        if not masked:
            values = ", ".join([f"p[o[{i}]]" for i in range(lanes)])
            return self._add(name, head + ")", [f"return ({v}){{{values}}};"])
        m = self._types.name(f"i{code[1:]}", lanes)
        lines = [*_each_lane(lanes, "if (m[i]) fill[i] = p[o[i]];"), "return fill;"]
        return self._add(name, f"{head}, {m} m, {v} fill)", lines)

    def load_step(self, code: str, lanes: int) -> str:
        """(address, step) -> every step-th element."""
        v = self._types.name(code, lanes)
        name = f"load_step_{v}"
        values = ["p[0]", "p[s]", *[f"p[{i} * s]" for i in range(2, lanes)]]
        lines = [f"return ({v}){{{', '.join(values)}}};"]
        return self._add(name, f"{v} {name}(const {element(code)} *p, long long s)", lines)

    def scatter(self, code: str, lanes: int, offset: str, *, masked: bool) -> str:
        """(address, offsets, [mask,] value): one lane to each offset, in order."""
        v, o = self._types.name(code, lanes), self._types.name(offset, lanes)
        name = f"scatter_{'if_' if masked else ''}{v}_{offset}"
        head = f"void {name}({element(code)} *p, {o} o"
        if masked:
            head += f", {self._types.name(f'i{code[1:]}', lanes)} m"
        store = "if (m[i]) p[o[i]] = x[i];" if masked else "p[o[i]] = x[i];"
        return self._add(name, f"{head}, {v} x)", _each_lane(lanes, store))

    def stream(self, code: str, lanes: int) -> str:
        """(address, value): a store around the cache where the address allows it."""
        v, size = self._types.name(code, lanes), lanes * int(code[1:]) // 8
        u = self._types.name(code, lanes, unaligned=True)
        name = f"stream_{v}"
        lines = [
            f"if ((unsigned long)p % {size} != 0) {{",
            f"    *({u} *)p = x;",
            "    return;",
            "}",
            "#if __has_builtin(__builtin_nontemporal_store)",
            f"__builtin_nontemporal_store(x, ({v} *)p);",
            "#else",
        ]
        plain = f"*({u} *)p = x;"
        if self._is_x86 and size in self._native:
            wide = {16: "", 32: "256", 64: "512"}[size]
            if code in _SUFFIX:
                plain = f"__builtin_ia32_movnt{_SUFFIX[code]}{wide}(p, x);"
            else:
                q = self._types.name("i64", size // 8)
                plain = f"__builtin_ia32_movntdq{wide}(({q} *)p, ({q})x);"
        return self._add(name, f"void {name}({element(code)} *p, {v} x)", [*lines, plain, "#endif"])


def _wide_element(code: str) -> str:
    return element(code if code[0] == "f" else f"i{code[1:]}")


def _each_lane(lanes: int, statement: str) -> list[str]:
    """A statement for each lane i. Written out before GCC's vectorizer sees it: version 12
    crashes on loops over masks that other vectors were compared to."""
    return [
        f"#pragma GCC unroll {lanes}",
        f"for (int i = 0; i < {lanes}; i++) {{",
        f"    {statement}",
        "}",
    ]
