import { describe, expect, it } from "vitest";
import { RandomStream } from "../../src/core/random/random-stream.js";
import { lowerGraph } from "../../src/engine/gpu/lower-graph.js";
import {
  compile,
  dim,
  gatherRows,
  gradient,
  input,
  matmul,
  reduceSum,
  tokenLogProbs,
  weight,
} from "../../src/engine/graph/index.js";
import { Arena } from "../../src/engine/runtime/webgpu/arena.js";
import { GpuExecutor } from "../../src/engine/runtime/webgpu/gpu-executor.js";
import { GpuSession } from "../../src/engine/runtime/webgpu/gpu-session.js";
import { WeightCache } from "../../src/engine/runtime/webgpu/weight-cache.js";
import { float32, int32, type Tensor } from "../../src/engine/tensor/tensor.js";
import { whyNoGpu } from "../support/gpu.js";

const reason = await whyNoGpu();

const [VOCABULARY, WIDTH, ROWS] = [70, 24, 40];
/** Three buffers; no multiple of a row, so that rows lie in two of them. */
const PIECE_WORDS = 601;

const random = new RandomStream(4);
const draw = (length: number) => Array.from({ length }, () => random.normal());
const values = Float32Array.from(draw(VOCABULARY * WIDTH));
const ids = Array.from({ length: ROWS }, (_, i) => (i * 7) % VOCABULARY);
const feeds = new Map<string, Tensor>([
  ["x", float32(draw(ROWS * WIDTH), [ROWS, WIDTH])],
  ["row", float32(draw(WIDTH), [1, WIDTH])],
  ["ids", int32(ids)],
  ["scale", float32([1], [])],
]);

/** Embedding, logits of one row and of many, and the vocabulary loss with its gradient. */
function createGraph() {
  const table = weight("table", "float32", [VOCABULARY, WIDTH]);
  const rows = dim("rows");
  const [x, row] = [input("x", "float32", [rows, WIDTH]), input("row", "float32", [1, WIDTH])];
  const [tokens, inverseTemperature] = [input("ids", "int32", [rows]), input("scale", "float32", [])];
  const { logProbs } = tokenLogProbs({ hidden: x, head: table, targets: tokens, inverseTemperature });
  return compile({
    embedded: gatherRows(table, tokens),
    few: matmul(row, table, { transposeB: true }),
    many: matmul(x, table, { transposeB: true }),
    logProbs,
    slope: gradient(reduceSum(logProbs), [x])[0],
  });
}

async function run(pieceWords?: number) {
  const executor = await GpuExecutor.open(pieceWords);
  const graph = createGraph();
  const cache = new WeightCache(executor);
  const data = new Uint8Array(values.buffer);
  const location = { file: "weights", offset: 0, byteLength: data.length, isVariable: false };
  const weights = await cache.load(0, [["table", location]], undefined, [{ name: "weights", data }]);
  const locate = () => {
    throw new Error("no buffers");
  };
  const session = new GpuSession({ executor, arena: new Arena(executor), locate }, lowerGraph(graph), weights);
  const fetches = new Map(graph.outputs.map(({ name }) => [name, undefined]));
  const outputs = await session.run({ feeds, fetches });
  const buffers = 1 + (weights.get("table")!.rest?.length ?? 0);
  executor.close();
  return { outputs, buffers };
}

describe.skipIf(reason !== undefined)(`weights on the GPU${reason === undefined ? "" : ` (${reason})`}`, () => {
  it("that are larger than a buffer are split and have the same results", async () => {
    const [whole, split] = [await run(), await run(PIECE_WORDS)];
    expect([whole.buffers, split.buffers]).toEqual([1, 3]);
    expect(Object.keys(split.outputs)).toHaveLength(5);
    expect(split.outputs).toEqual(whole.outputs);
    const embedded = ids.flatMap((id) => [...values.subarray(id * WIDTH, (id + 1) * WIDTH)]);
    expect([...split.outputs.embedded.data]).toEqual(embedded);
  });
});
