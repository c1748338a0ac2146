// y = W x for a few vectors x at once, where the rows of W are as a GGUF file has them. This is
// AssemblyScript, and product.wasm is what asc makes of it; tests/live/test_llama_page.py says how.
//
// A row is cut into blocks of 32 numbers:
//   F32,  128 bytes: the numbers
//   Q4_1,  20 bytes: d and m in fp16, then 16 bytes: their low halves are q 0 … 15, then the high
//   Q8_0,  34 bytes: d in fp16, then 32 bytes q with a sign
// A number is d q + m, so that a block adds d sum(q x) + m sum(x) to the product of its row with x.

const F32 = 0, Q4_1 = 3;
const TOTALS: usize = 1024; // below all else in the memory: of each x four sums, for one row

/** fp16 as fp32, in which the exponent counts from 112 lower; that is right for subnormals, too. */
@inline function half(at: usize): f32 {
  const bits: u32 = load<u16>(at);
  const size = reinterpret<f32>((bits & 0x7fff) << 13) * reinterpret<f32>(0x77800000); // 2^112
  return bits >> 15 ? -size : size;
}
@inline function first(w: usize, kind: i32): v128 {
  return kind == Q4_1 ? v128.and(v128.load(w, 4), i8x16.splat(15)) : v128.load(w, 2);
}
@inline function second(w: usize, kind: i32): v128 {
  return kind == Q4_1 ? i8x16.shr_u(v128.load(w, 4), 4) : v128.load(w, 18);
}
/** Bytes 4k … 4k + 3 as numbers. */
@inline function four(bytes: v128, k: i32): v128 {
  const eight = k < 2 ? i16x8.extend_low_i8x16_s(bytes) : i16x8.extend_high_i8x16_s(bytes);
  return f32x4.convert_i32x4_s(
    k & 1 ? i32x4.extend_high_i16x8_s(eight) : i32x4.extend_low_i16x8_s(eight),
  );
}
@inline function plus(sum: v128, a: v128, x: usize): v128 {
  return f32x4.add(sum, f32x4.mul(a, v128.load(x)));
}

/** Of each block of x the sum, as four sums. */
export function sums(x: usize, blocks: i32, out: usize): void {
  for (; blocks > 0; blocks--, out += 16) {
    let sum = f32x4.splat(0);
    for (const end = x + 128; x < end; x += 16) sum = f32x4.add(sum, v128.load(x));
    v128.store(out, sum);
  }
}

/** Rows begin each `stride` bytes. The `count` vectors x, whose sums are s, follow one another. */
export function product(
  kind: i32, w: usize, rows: i32, blocks: i32, stride: i32,
  x: usize, s: usize, count: i32, y: usize,
): void {
  const size: usize = kind == F32 ? 128 : kind == Q4_1 ? 20 : 34;
  const ends = TOTALS + (<usize>count << 4);
  let p0: v128, p1: v128, p2: v128, p3: v128, q0: v128, q1: v128, q2: v128, q3: v128;
  let d: v128, m: v128;
  for (let row = 0; row < rows; row++, w += stride) {
    for (let at = TOTALS; at < ends; at += 16) v128.store(at, f32x4.splat(0));
    for (let b = 0, block = w; b < blocks; b++, block += size) {
      if (kind == F32) {
        p0 = v128.load(block), p1 = v128.load(block, 16);
        p2 = v128.load(block, 32), p3 = v128.load(block, 48);
        q0 = v128.load(block, 64), q1 = v128.load(block, 80);
        q2 = v128.load(block, 96), q3 = v128.load(block, 112);
        d = f32x4.splat(1);
      } else {
        const p = first(block, kind), q = second(block, kind);
        p0 = four(p, 0), p1 = four(p, 1), p2 = four(p, 2), p3 = four(p, 3);
        q0 = four(q, 0), q1 = four(q, 1), q2 = four(q, 2), q3 = four(q, 3);
        d = f32x4.splat(half(block));
      }
      m = f32x4.splat(kind == Q4_1 ? half(block + 2) : 0);
      let from = x + (<usize>b << 7), sum = s + (<usize>b << 4);
      for (let at = TOTALS; at < ends; at += 16) {
        let u = plus(f32x4.mul(p0, v128.load(from)), p1, from + 16);
        let v = plus(f32x4.mul(p2, v128.load(from, 32)), p3, from + 48);
        u = plus(plus(u, q0, from + 64), q1, from + 80);
        v = plus(plus(v, q2, from + 96), q3, from + 112);
        let total = f32x4.add(v128.load(at), f32x4.mul(d, f32x4.add(u, v)));
        if (kind == Q4_1) total = plus(total, m, sum);
        v128.store(at, total);
        from += <usize>blocks << 7;
        sum += <usize>blocks << 4;
      }
    }
    let to = y + (<usize>row << 2);
    for (let at = TOTALS; at < ends; at += 16, to += <usize>rows << 2) {
      store<f32>(to, load<f32>(at) + load<f32>(at, 4) + (load<f32>(at, 8) + load<f32>(at, 12)));
    }
  }
}

/** The numbers of a row, which is not F32. */
export function numbers(kind: i32, w: usize, blocks: i32, out: usize): void {
  for (; blocks > 0; blocks--, w += kind == Q4_1 ? 20 : 34) {
    const d = f32x4.splat(half(w)), m = f32x4.splat(kind == Q4_1 ? half(w + 2) : 0);
    for (let k = 0; k < 8; k++, out += 16) {
      const q = four(k < 4 ? first(w, kind) : second(w, kind), k & 3);
      v128.store(out, f32x4.add(f32x4.mul(d, q), m));
    }
  }
}
