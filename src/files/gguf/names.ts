import type { GgufArchitecture } from "./architectures.js";
import type { GgufSizes } from "./config.js";
import type { GgufTensor } from "./header.js";

/** How a Hugging Face tensor comes out of a GGUF tensor. Rows are counted along the first dimension. */
export interface GgufView {
  readonly name: string;
  readonly tensor: GgufTensor;
  /** The shape that Hugging Face's files give it. */
  readonly shape: readonly number[];
  /** The part of the tensor's rows that it is, where several are fused into one. */
  readonly rows?: { readonly start: number; readonly count: number };
  /** Rows of each head are stored in pairs (first and second half of the head by turns); the number of heads. */
  readonly pairedHeads?: number;
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
export function huggingFaceViews(
  architecture: GgufArchitecture,
  sizes: GgufSizes,
  tensors: ReadonlyMap<string, GgufTensor>,
): GgufView[] {
  const views: GgufView[] = [];
  for (const tensor of tensors.values()) {
    if (!ropeTensors.test(tensor.name)) views.push(...viewsOf(architecture, sizes, tensor));
  }
  return views;
}

function viewsOf(architecture: GgufArchitecture, sizes: GgufSizes, tensor: GgufTensor): GgufView[] {
  const { name, shape } = tensor;
  const inLayer = /^blk\.(\d+)\.(\w+)\.(weight|bias)$/u.exec(name);
  if (inLayer === null) {
    const outside = /^(\w+)\.(weight|bias)$/u.exec(name);
    const renamed = outside === null ? undefined : own(architecture.outside, outside[1]);
    if (outside === null || renamed === undefined) return [{ name, tensor, shape }];
    const shifted = architecture.shiftedNorms === true && outside[1].endsWith("norm");
    return [{ name: `${renamed}.${outside[2]}`, tensor, shape, ...(shifted ? { shifted } : {}) }];
  }
  const [, layer, part, suffix] = inLayer;
  const prefix = `${architecture.layerPrefix}${layer}.`;
  const renamed = own(architecture.layer, part);
  if (renamed === undefined) {
    if (part === "attn_qkv") return splitAttention(architecture, sizes, tensor, prefix, suffix);
    return [{ name, tensor, shape }];
  }
  const view: GgufView = { name: `${prefix}${renamed}.${suffix}`, tensor, shape };
  if (architecture.pairedRotation === true && (part === "attn_q" || part === "attn_k")) {
    return [{ ...view, pairedHeads: part === "attn_q" ? sizes.heads : sizes.keyValueHeads }];
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
  { heads, keyValueHeads, headSize }: GgufSizes,
  tensor: GgufTensor,
  prefix: string,
  suffix: string,
): GgufView[] {
  const parts: readonly (readonly [string, number])[] = [
    ["attn_q", heads],
    ["attn_k", keyValueHeads],
    ["attn_v", keyValueHeads],
  ];
  const rowsInAll = (heads + 2 * keyValueHeads) * headSize;
  if (tensor.shape[0] !== rowsInAll) return [{ name: tensor.name, tensor, shape: tensor.shape }];
  let start = 0;
  return parts.map(([part, partHeads]) => {
    const rows = { start, count: partHeads * headSize };
    start += rows.count;
    const paired = architecture.pairedRotation === true && part !== "attn_v";
    return {
      name: `${prefix}${architecture.layer[part]}.${suffix}`,
      tensor,
      shape: [rows.count, ...tensor.shape.slice(1)],
      rows,
      ...(paired ? { pairedHeads: partHeads } : {}),
    };
  });
}

function own(names: Readonly<Record<string, string>>, key: string): string | undefined {
  return Object.hasOwn(names, key) ? names[key] : undefined;
}
