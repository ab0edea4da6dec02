import { LazyPromise } from "../../core/promise-cache.js";
import { createSession, runSession, Tensor } from "#onnxruntime";
import { compile, constant, dim, input, int8WeightMatmul } from "../graph/index.js";

const INNER = 64;
const COLUMNS = 32;

const overflows = new LazyPromise(async () => (await multiplyLargestCodes()) < 0.99 * INNER * 127);

/**
 * Whether ONNX Runtime's fastest 8-bit products are wrong on this processor: without VNNI, x86 adds
 * two products in 16 bits, which the largest ones exceed.
 */
export function detectInt8Overflow(): Promise<boolean> {
  return overflows.get();
}

async function multiplyLargestCodes(): Promise<number> {
  const codes = constant("int8", [INNER, COLUMNS], new Int8Array(INNER * COLUMNS).fill(127));
  const x = input("x", "float32", [dim("rows"), INNER]);
  const graph = compile({ y: int8WeightMatmul(x, { codes }, { transposeB: false, bits: 8, gradientBits: 8 }) });
  const session = await createSession(
    graph.serialize(() => ({ file: "", offset: 0, byteLength: 0 })),
    { intraOpNumThreads: 1, logSeverityLevel: 4 },
  );
  const ones = new Tensor("float32", new Float32Array(8 * INNER).fill(1), [8, INNER]);
  const { y } = await runSession(session, { x: ones }, { y: null });
  await session.release();
  return Math.min(...(y.data as Float32Array));
}
