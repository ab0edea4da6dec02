import { z } from "zod";
import { isAllFinite } from "../../core/numbers.js";
import { errorMessage, LlamaGymError } from "../../core/errors.js";
import { parseBoundedJson } from "../../core/json.js";
import { tensor, type Tensor } from "../../engine/tensor/index.js";
import { TEMPERATURE_LIMITS } from "../../generation/index.js";
import type { SelectedToken, TokenBatch } from "../../models/graphs/index.js";
import { type GradientLimits, GRAPH_KINDS, type GradientJob, type GradientResult } from "../../rl/algorithms/index.js";
import { bytesOf, compress, decompress, fromBase64, sha256 } from "./encoding.js";

/**
 * None, but a checksum: gradients shrink by 7 %, which takes longer than sending the rest
 * (docs/decisions/workers.md).
 */
const COMPRESSION_LEVEL = 0;
/**
 * The outputs of a micro-batch: a number per decision for each statistic. 10,000 decisions have
 * less than 1 MB.
 */
const MAX_OUTPUT_BYTES = 64 * 2 ** 20;
/** Arrays, objects and strings of a result's JSON part: some ten for each statistic. */
const MAX_HEADER_NODES = 10_000;
/** Length of the JSON part, before it. */
const LENGTH_BYTES = 4;

const count = z.int().min(0);
const tokenIds = z.array(count);
const encodedTensor = z
  .object({ dtype: z.enum(["float32", "int32"]), shape: z.array(count).max(4), data: z.string() })
  .transform(({ dtype, shape, data }): Tensor => {
    const buffer = fromBase64(data, 4);
    return tensor(dtype, shape, dtype === "float32" ? new Float32Array(buffer) : new Int32Array(buffer));
  });

/**
 * A gradient job without its weights. Selected tokens are columns: group, row, index, target and
 * set of allowed tokens, or -1.
 */
export const gradientJobSchema = z
  .object({
    kind: z.enum(GRAPH_KINDS),
    withHeadTokens: z.boolean(),
    groups: z.array(z.object({ prefix: tokenIds, rows: z.array(tokenIds) })),
    selected: z.array(z.tuple([count, count, z.int(), z.int().min(-1), z.int().min(-1)])),
    allowedTokens: z.array(tokenIds.transform((ids) => Int32Array.from(ids))),
    headTokens: tokenIds.optional(),
    temperature: z.number().min(TEMPERATURE_LIMITS.min).max(TEMPERATURE_LIMITS.max),
    inputs: z.record(z.string(), encodedTensor),
  })
  .transform(
    ({ kind, withHeadTokens, inputs, groups, selected, allowedTokens, headTokens, temperature }): GradientJob => {
      const tokens: TokenBatch = {
        groups,
        selected: selected.map(([group, row, index, target, set]) => ({
          group,
          row,
          index,
          ...(target < 0 ? {} : { target }),
          ...(set < 0 ? {} : { allowedTokens: allowedTokens[set] }),
        })),
        headTokens,
        temperature,
      };
      return { kind, withHeadTokens, tokens, inputs };
    },
  );

const encodeTensor = ({ dtype, shape, data }: Tensor) => ({ dtype, shape, data: bytesOf(data).toString("base64") });
const encodeTensors = (tensors: Readonly<Record<string, Tensor>>) =>
  Object.fromEntries(Object.entries(tensors).map(([name, value]) => [name, encodeTensor(value)]));

/** Returns a gradient job as plain JSON, with each set of allowed tokens once. */
export function describeGradientJob({
  kind,
  withHeadTokens,
  tokens,
  inputs,
}: GradientJob): z.input<typeof gradientJobSchema> {
  const { groups, selected, headTokens, temperature = 1 } = tokens;
  const sets = new AllowedTokenTable();
  return {
    kind,
    withHeadTokens,
    groups: groups.map(({ prefix, rows }) => ({ prefix: [...prefix], rows: rows.map((row) => [...row]) })),
    selected: selected.map(({ group, row, index, target = -1, allowedTokens }) => [
      group,
      row,
      index,
      target,
      sets.indexOf(allowedTokens),
    ]),
    allowedTokens: sets.list,
    headTokens: headTokens && [...headTokens],
    temperature,
    inputs: encodeTensors(inputs) as z.input<typeof gradientJobSchema>["inputs"],
  };
}

/**
 * The distinct sets of allowed tokens of a job; results of workers have equal sets in several
 * arrays.
 */
class AllowedTokenTable {
  readonly list: number[][] = [];
  private readonly byArray = new Map<Int32Array, number>();
  private readonly byContent = new Map<string, number>();

  indexOf(tokens: SelectedToken["allowedTokens"]): number {
    if (tokens === undefined) return -1;
    let index = this.byArray.get(tokens);
    if (index !== undefined) return index;
    const hash = sha256(bytesOf(tokens));
    index = this.byContent.get(hash) ?? this.list.push([...tokens]) - 1;
    this.byArray.set(tokens, index);
    this.byContent.set(hash, index);
    return index;
  }
}

const resultHeader = z.object({
  /** Time that the job took on the worker. */
  seconds: z.number().min(0),
  outputs: z.record(z.string(), encodedTensor),
  hasGradients: z.boolean(),
});

/** Encodes a gradient result: the length of its JSON, the JSON, and the gradients as float32. */
export async function encodeGradients({ outputs, gradients }: GradientResult, seconds: number): Promise<Uint8Array> {
  const header = Buffer.from(
    JSON.stringify({ seconds, outputs: encodeTensors(outputs), hasGradients: gradients !== undefined }),
  );
  const length = Buffer.alloc(LENGTH_BYTES);
  length.writeUInt32LE(header.length);
  const body = bytesOf(gradients ?? new Float32Array());
  return compress(Buffer.concat([length, header, body]), { level: COMPRESSION_LEVEL });
}

/**
 * Decodes a gradient result and checks its names, shapes and numbers. @throws FILE_CORRUPT for a
 * result that cannot be used.
 */
export async function decodeGradients(
  payload: Uint8Array,
  limits: GradientLimits,
): Promise<{ readonly seconds: number; readonly result: GradientResult }> {
  const gradientBytes = 4 * limits.parameterCount;
  try {
    const bytes = await decompress(payload, { maxOutputLength: MAX_OUTPUT_BYTES + gradientBytes });
    const end = LENGTH_BYTES + bytes.readUInt32LE();
    const header = resultHeader.parse(parseBoundedJson(bytes.toString("utf8", LENGTH_BYTES, end), MAX_HEADER_NODES));
    const { seconds, hasGradients } = header;
    const outputs = header.outputs as GradientResult["outputs"];
    checkOutputs(outputs, limits);
    check(bytes.length - end === (hasGradients ? gradientBytes : 0), "The number of gradients is another.");
    if (!hasGradients) return { seconds, result: { outputs, gradients: undefined } };
    const gradients = new Float32Array(new Uint8Array(bytes.subarray(end)).buffer);
    const isFinite = [gradients, ...Object.values(outputs).map(({ data }) => data)].every(isAllFinite);
    check(isFinite, "A number is not finite.");
    return { seconds, result: { outputs, gradients } };
  } catch (error) {
    throw new LlamaGymError("FILE_CORRUPT", errorMessage(error).slice(0, 500));
  }
}

function check(condition: boolean, message: string): void {
  if (!condition) throw new LlamaGymError("FILE_CORRUPT", message);
}

function checkOutputs(outputs: GradientResult["outputs"], { outputs: expected, lengths }: GradientLimits): void {
  check(Object.keys(outputs).length === expected.size, "Statistics are missing.");
  for (const [name, isScalar] of expected) {
    const statistic: Tensor | undefined = outputs[name];
    const shape = statistic?.shape ?? [-1];
    const fits = isScalar ? shape.length === 0 : shape.length === 1 && lengths.includes(shape[0]);
    check(statistic?.dtype === "float32" && fits, `The statistic ${name} has another shape.`);
  }
}
