import { invalidArgument } from "../errors.js";
import { excerpt } from "../format.js";
import type { SeedSequence } from "./seed-sequence.js";

// The multiplier 0x2360ed051fc65da44385df649fccf645, low limb first.
const M0 = 0x9fccf645;
const M1 = 0x4385df64;
const M2 = 0x1fc65da4;
const M3 = 0x2360ed05;
const TWO_32 = 4294967296;
const MASK_32 = 0xffffffffn;

/** The state of a generator as plain JSON, in NumPy's terms; the integers are decimal strings. */
export interface Pcg64State {
  readonly state: string;
  readonly inc: string;
  readonly hasUint32: 0 | 1;
  readonly uinteger: number;
}

/** High 32 bits of a product of two 32-bit integers, whose low 32 bits are known. */
export function computeHighWord(a: number, b: number, low: number): number {
  // The double product is off by less than 2^11, so the nearest integer after the division is
  // exact.
  return ((a * b - low) / TWO_32 + 0.5) >>> 0;
}

/**
 * PCG XSL-RR 128/64 (O'Neill 2014) with 32-bit limbs, equal to NumPy's PCG64. `next` leaves the
 * word in `high` and `low` (as signed 32-bit integers), which avoids a 64-bit type.
 */
export class Pcg64 {
  high = 0;
  low = 0;
  private readonly limbs = new Uint32Array(4);
  private readonly increment = new Uint32Array(4);
  private hasHalf = false;
  private half = 0;

  constructor(sequence: SeedSequence) {
    const words = sequence.generateState(8);
    // 64-bit words are low half first: state high, state low, stream high, stream low.
    const start = [words[2], words[3], words[0], words[1]];
    const stream = [words[6], words[7], words[4], words[5]];
    let carry = 1;
    for (let i = 0; i < 4; i++) {
      this.increment[i] = (stream[i] << 1) | carry;
      carry = stream[i] >>> 31;
    }
    this.advance();
    carry = 0;
    for (let i = 0; i < 4; i++) {
      const sum = this.limbs[i] + start[i] + carry;
      this.limbs[i] = sum;
      carry = sum >= TWO_32 ? 1 : 0;
    }
    this.advance();
  }

  /** Draws 64 bits into `high` and `low`. */
  next(): void {
    this.advance();
    const limbs = this.limbs;
    const high = limbs[3] ^ limbs[1];
    const low = limbs[2] ^ limbs[0];
    const rotation = limbs[3] >>> 26;
    const shift = rotation & 31;
    const first = rotation < 32 ? high : low;
    const second = rotation < 32 ? low : high;
    if (shift === 0) {
      this.high = first;
      this.low = second;
    } else {
      this.high = (first >>> shift) | (second << (32 - shift));
      this.low = (second >>> shift) | (first << (32 - shift));
    }
  }

  /** 32 bits: the low half of a 64-bit word, and its high half at the following call. */
  next32(): number {
    if (this.hasHalf) {
      this.hasHalf = false;
      return this.half >>> 0;
    }
    this.next();
    this.hasHalf = true;
    this.half = this.high;
    return this.low >>> 0;
  }

  /** A double in [0, 1) with 53 random bits. */
  nextDouble(): number {
    this.next();
    return ((this.high >>> 0) * 2097152 + (this.low >>> 11)) / 9007199254740992;
  }

  /** 64 bits as a bigint; for the rare draws that need them whole. */
  next64(): bigint {
    this.next();
    return (BigInt(this.high >>> 0) << 32n) | BigInt(this.low >>> 0);
  }

  getState(): Pcg64State {
    return {
      state: joinLimbs(this.limbs),
      inc: joinLimbs(this.increment),
      hasUint32: this.hasHalf ? 1 : 0,
      uinteger: this.half >>> 0,
    };
  }

  /** @throws INVALID_ARGUMENT for a value that `getState` does not return. */
  setState(state: Pcg64State): void {
    const isValid = [state?.state, state?.inc].every((text) => typeof text === "string" && /^\d{1,39}$/.test(text));
    if (!isValid || ![0, 1].includes(state.hasUint32) || !Number.isInteger(state.uinteger))
      throw invalidArgument(`${excerpt(JSON.stringify(state) ?? "undefined")} is not the state of a random stream.`);
    splitLimbs(state.state, this.limbs);
    splitLimbs(state.inc, this.increment);
    this.hasHalf = state.hasUint32 === 1;
    this.half = state.uinteger | 0;
  }

  /** state = state * multiplier + increment, modulo 2^128. */
  private advance(): void {
    const limbs = this.limbs;
    const increment = this.increment;
    const s0 = limbs[0];
    const s1 = limbs[1];
    const s2 = limbs[2];
    const s3 = limbs[3];
    const low00 = Math.imul(s0, M0) >>> 0;
    const low01 = Math.imul(s0, M1) >>> 0;
    const low10 = Math.imul(s1, M0) >>> 0;
    const low02 = Math.imul(s0, M2) >>> 0;
    const low11 = Math.imul(s1, M1) >>> 0;
    const low20 = Math.imul(s2, M0) >>> 0;
    const r0 = low00 + increment[0];
    const r1 = computeHighWord(s0, M0, low00) + low01 + low10 + increment[1] + Math.floor(r0 / TWO_32);
    const r2 =
      computeHighWord(s0, M1, low01) +
      computeHighWord(s1, M0, low10) +
      low02 +
      low11 +
      low20 +
      increment[2] +
      Math.floor(r1 / TWO_32);
    const top = Math.imul(s0, M3) + Math.imul(s1, M2) + Math.imul(s2, M1) + Math.imul(s3, M0);
    const r3 =
      computeHighWord(s0, M2, low02) +
      computeHighWord(s1, M1, low11) +
      computeHighWord(s2, M0, low20) +
      top +
      increment[3] +
      Math.floor(r2 / TWO_32);
    limbs[0] = r0;
    limbs[1] = r1;
    limbs[2] = r2;
    limbs[3] = r3;
  }
}

function joinLimbs(limbs: Uint32Array): string {
  return limbs.reduceRight((value, limb) => (value << 32n) | BigInt(limb), 0n).toString();
}

function splitLimbs(value: string, limbs: Uint32Array): void {
  let rest = BigInt(value);
  for (let i = 0; i < limbs.length; i++) {
    limbs[i] = Number(rest & MASK_32);
    rest >>= 32n;
  }
}
