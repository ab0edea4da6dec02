import type { GgufArchitecture, GgufDimensions } from "./gguf-config.js";
import type { GgufTensor } from "./gguf-header.js";

/** Derivation of a Hugging Face tensor from a GGUF tensor. Rows are along the first dimension. */
export interface GgufTensorView {
  readonly name: string;
  readonly tensor: GgufTensor;
  /** Shape in Hugging Face's files. */
  readonly shape: readonly number[];
  /** Range of rows, where the GGUF tensor fuses several. */
  readonly rows?: { readonly start: number; readonly count: number };
  /** Number of heads whose rows are interleaved (first and second half alternate). */
  readonly interleavedHeads?: number;
  /** Whether 1 must be subtracted from each value. */
  readonly hasNormOffset?: boolean;
  /** Whether the stored matrix is transposed. */
  readonly transposed?: boolean;
}

/** Rotary parameters, which are part of the config instead. */
const ropeTensors = /^(?:blk\.\d+\.)?(?:rope_freqs|rope_factors_long|rope_factors_short|attn_rot_embd)\.weight$/u;

/**
 * Maps GGUF tensors to Hugging Face tensors. Unknown tensors keep their names, so that they can be
 * reported as unexpected.
 */
export function mapTensorNames(
  architecture: GgufArchitecture,
  sizes: GgufDimensions,
  tensors: ReadonlyMap<string, GgufTensor>,
): GgufTensorView[] {
  const views: GgufTensorView[] = [];
  for (const tensor of tensors.values()) {
    if (!ropeTensors.test(tensor.name)) views.push(...mapTensor(architecture, sizes, tensor));
  }
  return views;
}

function mapTensor(architecture: GgufArchitecture, sizes: GgufDimensions, tensor: GgufTensor): GgufTensorView[] {
  const { name, shape } = tensor;
  const inLayer = /^blk\.(\d+)\.(\w+)\.(weight|bias)$/u.exec(name);
  if (inLayer === null) {
    const match = /^(\w+)\.(weight|bias)$/u.exec(name);
    const renamed = match === null ? undefined : getOwn(architecture.globalTensors, match[1]);
    if (match === null || renamed === undefined) return [{ name, tensor, shape }];
    const hasNormOffset = architecture.hasNormOffset === true && match[1].endsWith("norm");
    return [{ name: `${renamed}.${match[2]}`, tensor, shape, ...(hasNormOffset ? { hasNormOffset } : {}) }];
  }
  const [, layer, part, suffix] = inLayer;
  const prefix = `${architecture.layerPrefix}${layer}.`;
  const renamed = getOwn(architecture.layerTensors, part);
  if (renamed === undefined) {
    if (part === "attn_qkv") return splitAttention(architecture, sizes, tensor, prefix, suffix);
    return [{ name, tensor, shape }];
  }
  const view: GgufTensorView = { name: `${prefix}${renamed}.${suffix}`, tensor, shape };
  if (architecture.interleavedRotary === true && (part === "attn_q" || part === "attn_k"))
    return [{ ...view, interleavedHeads: part === "attn_q" ? sizes.heads : sizes.keyValueHeads }];
  if (architecture.hasNormOffset === true && part.endsWith("norm")) return [{ ...view, hasNormOffset: true }];
  if (suffix === "weight" && architecture.transposed?.includes(part) === true && shape.length === 2)
    return [{ ...view, shape: [shape[1], shape[0]], transposed: true }];
  return [view];
}

/** Older files of some architectures stack q, k and v in one tensor. */
function splitAttention(
  architecture: GgufArchitecture,
  { heads, keyValueHeads, headSize }: GgufDimensions,
  tensor: GgufTensor,
  prefix: string,
  suffix: string,
): GgufTensorView[] {
  const parts: readonly (readonly [string, number])[] = [
    ["attn_q", heads],
    ["attn_k", keyValueHeads],
    ["attn_v", keyValueHeads],
  ];
  const totalRows = (heads + 2 * keyValueHeads) * headSize;
  if (tensor.shape[0] !== totalRows) return [{ name: tensor.name, tensor, shape: tensor.shape }];
  let start = 0;
  return parts.map(([part, partHeads]) => {
    const rows = { start, count: partHeads * headSize };
    start += rows.count;
    const isInterleaved = architecture.interleavedRotary === true && part !== "attn_v";
    return {
      name: `${prefix}${architecture.layerTensors[part]}.${suffix}`,
      tensor,
      shape: [rows.count, ...tensor.shape.slice(1)],
      rows,
      ...(isInterleaved ? { interleavedHeads: partHeads } : {}),
    };
  });
}

function getOwn(names: Readonly<Record<string, string>>, key: string): string | undefined {
  return Object.hasOwn(names, key) ? names[key] : undefined;
}
