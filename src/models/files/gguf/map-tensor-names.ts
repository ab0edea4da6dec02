import type { GgufArchitecture } from "./gguf-architectures.js";
import type { GgufDimensions } from "./gguf-config.js";
import type { GgufTensor } from "./gguf-header.js";

/** How a Hugging Face tensor comes out of a GGUF tensor. Rows are counted along the first dimension. */
export interface GgufTensorView {
  readonly name: string;
  readonly tensor: GgufTensor;
  /** The shape that Hugging Face's files give it. */
  readonly shape: readonly number[];
  /** The part of the tensor's rows that it is, where several are fused into one. */
  readonly rows?: { readonly start: number; readonly count: number };
  /** Rows of each head are stored in pairs (first and second half of the head by turns); the number of heads. */
  readonly interleavedHeads?: number;
  /** 1 is to be subtracted from each number. */
  readonly shifted?: boolean;
  /** The stored matrix is the transpose. */
  readonly transposed?: boolean;
}

/** Tensors that describe rotary positions and stand in the config instead. */
const ropeTensors = /^(?:blk\.\d+\.)?(?:rope_freqs|rope_factors_long|rope_factors_short|attn_rot_embd)\.weight$/u;

/**
 * The tensors of a GGUF file as Hugging Face's file of the same model has them. A tensor that the architecture does not
 * know keeps its name, so that whoever builds the model can say that it is not wanted.
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
    const shifted = architecture.shiftedNorms === true && match[1].endsWith("norm");
    return [{ name: `${renamed}.${match[2]}`, tensor, shape, ...(shifted ? { shifted } : {}) }];
  }
  const [, layer, part, suffix] = inLayer;
  const prefix = `${architecture.layerPrefix}${layer}.`;
  const renamed = getOwn(architecture.layerTensors, part);
  if (renamed === undefined) {
    if (part === "attn_qkv") return splitAttention(architecture, sizes, tensor, prefix, suffix);
    return [{ name, tensor, shape }];
  }
  const view: GgufTensorView = { name: `${prefix}${renamed}.${suffix}`, tensor, shape };
  if (architecture.interleavedRotary === true && (part === "attn_q" || part === "attn_k")) {
    return [{ ...view, interleavedHeads: part === "attn_q" ? sizes.heads : sizes.keyValueHeads }];
  }
  if (architecture.shiftedNorms === true && part.endsWith("norm")) return [{ ...view, shifted: true }];
  if (suffix === "weight" && architecture.transposed?.includes(part) === true && shape.length === 2) {
    return [{ ...view, shape: [shape[1], shape[0]], transposed: true }];
  }
  return [view];
}

/** Older files hold q, k and v of some architectures as one tensor, one below the other. */
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
