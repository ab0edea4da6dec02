import type { RopeConfig } from "./decoder-config.js";

/** Positions beyond this are not cached. */
const MAX_TABLE_LENGTH = 32_768;

/** cos and sin of positions from 0 on, [positions, rotaryDim / 2]. */
interface RopeTable {
  readonly cos: Float32Array;
  readonly sin: Float32Array;
}

/** Tables of each rope by regime. */
const tableCaches = new WeakMap<RopeConfig, Map<number, RopeTable>>();

/**
 * Computes the rotary embedding's (Su et al. 2021) cos and sin [positions, rotaryDim / 2], scaled
 * by the attention factor of YaRN and LongRoPE. `lengths` is the length of each position's sequence
 * (or of all), which determines the frequencies of dynamic and LongRoPE scaling. Rounds to float32
 * at every step as PyTorch does, so that long positions agree.
 */
export function computeRopeTables(
  rope: RopeConfig,
  positions: ArrayLike<number>,
  lengths: number | ArrayLike<number>,
): RopeTable {
  const half = rope.rotaryDim / 2;
  const table = { cos: new Float32Array(positions.length * half), sin: new Float32Array(positions.length * half) };
  const lengthAt = (i: number) => (typeof lengths === "number" ? lengths : lengths[i]);
  for (let start = 0; start < positions.length;) {
    const regime = getRegime(rope, lengthAt(start));
    let end = start + 1;
    while (end < positions.length && getRegime(rope, lengthAt(end)) === regime) end++;
    writeTables(rope, regime, positions, start, end, table);
    start = end;
  }
  return table;
}

/**
 * Returns an id shared by lengths with equal frequencies: 0 up to the original length; beyond it 1
 * under LongRoPE and the length itself under dynamic scaling.
 */
function getRegime({ scaling }: RopeConfig, length: number): number {
  if ((scaling.kind !== "longrope" && scaling.kind !== "dynamic") || length <= scaling.originalLength) return 0;
  return scaling.kind === "longrope" ? 1 : length;
}

/**
 * Returns a number that changes when a growing sequence changes its frequencies, which invalidates
 * cached keys. 0 up to `fixedFrequencyLength`.
 */
export function getRopeRegime(ropes: readonly RopeConfig[], length: number): number {
  return ropes.reduce((sum, rope) => sum + getRegime(rope, length), 0);
}

/** Returns the length up to which frequencies are constant; Infinity unless LongRoPE or dynamic. */
export function fixedFrequencyLength(ropes: readonly RopeConfig[]): number {
  return Math.min(
    ...ropes.map(({ scaling }) =>
      scaling.kind === "longrope" || scaling.kind === "dynamic" ? scaling.originalLength : Infinity,
    ),
  );
}

/** Writes cos and sin of positions [start, end), which share a regime. */
function writeTables(
  rope: RopeConfig,
  regime: number,
  positions: ArrayLike<number>,
  start: number,
  end: number,
  { cos, sin }: RopeTable,
): void {
  const half = rope.rotaryDim / 2;
  let maxPosition = 0;
  for (let i = start; i < end; i++) maxPosition = Math.max(maxPosition, positions[i]);
  if (regime > 1 || maxPosition >= MAX_TABLE_LENGTH) {
    const rotations = createRotations(rope, regime, end - start, (i) => positions[start + i]);
    cos.set(rotations.cos, start * half);
    sin.set(rotations.sin, start * half);
    return;
  }
  const table = getTable(rope, regime, maxPosition + 1);
  for (let i = start; i < end; i++) {
    const offset = positions[i] * half;
    for (let j = 0; j < half; j++) {
      cos[i * half + j] = table.cos[offset + j];
      sin[i * half + j] = table.sin[offset + j];
    }
  }
}

/** Returns the cached table of a regime, of at least `length` positions. */
function getTable(rope: RopeConfig, regime: number, length: number): RopeTable {
  const tables = tableCaches.get(rope) ?? new Map<number, RopeTable>();
  tableCaches.set(rope, tables);
  const half = rope.rotaryDim / 2;
  const cached = tables.get(regime);
  const cachedLength = cached === undefined ? 0 : cached.cos.length / half;
  if (cached !== undefined && cachedLength >= length) return cached;
  const newLength = Math.min(MAX_TABLE_LENGTH, Math.max(length, 2 * cachedLength, 128));
  const table = createRotations(rope, regime, newLength, (position) => position);
  tables.set(regime, table);
  return table;
}

function createRotations(
  rope: RopeConfig,
  regime: number,
  count: number,
  positionAt: (i: number) => number,
): RopeTable {
  const { scaling, rotaryDim } = rope;
  const isBeyondOriginal = regime === 1 && scaling.kind === "longrope";
  const frequencies = computeRopeFrequencies(rope, isBeyondOriginal ? scaling.originalLength + 1 : regime);
  const scale = f32(scaling.kind === "yarn" || scaling.kind === "longrope" ? scaling.attentionFactor : 1);
  const half = rotaryDim / 2;
  const table = { cos: new Float32Array(count * half), sin: new Float32Array(count * half) };
  for (let i = 0; i < count; i++) {
    const position = positionAt(i);
    for (let j = 0; j < half; j++) {
      const angle = f32(position * frequencies[j]);
      table.cos[i * half + j] = f32(Math.cos(angle)) * scale;
      table.sin[i * half + j] = f32(Math.sin(angle)) * scale;
    }
  }
  return table;
}

/** Returns the rotation in radians per position of each pair of dimensions, [rotaryDim / 2]. */
export function computeRopeFrequencies(rope: RopeConfig, sequenceLength: number): Float32Array {
  const { scaling, rotaryDim, theta } = rope;
  switch (scaling.kind) {
    case "default":
      return computeBaseFrequencies(theta, rotaryDim);
    case "linear":
      return computeBaseFrequencies(theta, rotaryDim).map((frequency) => frequency / f32(scaling.factor));
    case "dynamic":
      return computeBaseFrequencies(
        computeDynamicTheta(rope, scaling.factor, scaling.originalLength, sequenceLength),
        rotaryDim,
      );
    case "longrope": {
      const factors = sequenceLength > scaling.originalLength ? scaling.longFactor : scaling.shortFactor;
      return computeWavelengths(theta, rotaryDim).map((wavelength, i) => 1 / f32(f32(factors[i]) * wavelength));
    }
    case "yarn":
      return computeYarnFrequencies(rope, scaling);
    case "llama3":
      return computeLlama3Frequencies(rope, scaling);
  }
}

const f32 = Math.fround;

/** Returns theta ^ (2 i / dim) for each pair of dimensions: its wavelength / 2 pi. */
function computeWavelengths(theta: number, dim: number): Float32Array {
  return Float32Array.from({ length: dim / 2 }, (_, i) => f32(theta) ** f32((2 * i) / dim));
}

function computeBaseFrequencies(theta: number, dim: number): Float32Array {
  return computeWavelengths(theta, dim).map((wavelength) => 1 / wavelength);
}

/** NTK scaling with a base that grows with the sequence length (bloc97 and emozilla 2023). */
function computeDynamicTheta(
  { theta, rotaryDim }: RopeConfig,
  factor: number,
  originalLength: number,
  length: number,
): number {
  const growth = f32(f32(f32(factor * Math.max(length, originalLength)) / originalLength) - f32(factor - 1));
  return f32(f32(theta) * f32(growth ** f32(rotaryDim / (rotaryDim - 2))));
}

/** YaRN (Peng et al. 2023): interpolates low frequencies, keeps high ones, blends between. */
function computeYarnFrequencies(
  { theta, rotaryDim }: RopeConfig,
  { factor, originalLength, betaFast, betaSlow, truncate }: Extract<RopeConfig["scaling"], { kind: "yarn" }>,
): Float32Array {
  const findDimension = (rotations: number) =>
    (rotaryDim * Math.log(originalLength / (rotations * 2 * Math.PI))) / (2 * Math.log(theta));
  const [first, last] = [findDimension(betaFast), findDimension(betaSlow)];
  const low = Math.max(truncate ? Math.floor(first) : first, 0);
  let high = Math.min(truncate ? Math.ceil(last) : last, rotaryDim - 1);
  if (high === low) high += 0.001;
  return computeWavelengths(theta, rotaryDim).map((wavelength, i) => {
    const ramp = Math.min(1, Math.max(0, f32(f32(i - f32(low)) / f32(high - low))));
    const extrapolationFactor = f32(1 - ramp);
    const interpolated = f32(1 / f32(f32(factor) * wavelength));
    return f32(interpolated * f32(1 - extrapolationFactor)) + f32(f32(1 / wavelength) * extrapolationFactor);
  });
}

/** Llama 3.1's scaling: divides low frequencies by the factor, keeps high ones, blends between. */
function computeLlama3Frequencies(
  { theta, rotaryDim }: RopeConfig,
  scaling: Extract<RopeConfig["scaling"], { kind: "llama3" }>,
): Float32Array {
  const { factor, lowFrequencyFactor, highFrequencyFactor, originalLength } = scaling;
  const lowFrequencyWavelength = f32(originalLength / lowFrequencyFactor);
  const highFrequencyWavelength = f32(originalLength / highFrequencyFactor);
  return computeBaseFrequencies(theta, rotaryDim).map((frequency) => {
    const wavelength = f32(f32(1 / frequency) * f32(2 * Math.PI));
    if (wavelength > lowFrequencyWavelength) return frequency / f32(factor);
    if (wavelength < highFrequencyWavelength) return frequency;
    const rotations = f32(f32(1 / wavelength) * originalLength);
    const smooth = f32(f32(rotations - f32(lowFrequencyFactor)) / f32(highFrequencyFactor - lowFrequencyFactor));
    return f32(f32(f32(1 - smooth) * frequency) / f32(factor)) + f32(smooth * frequency);
  });
}
