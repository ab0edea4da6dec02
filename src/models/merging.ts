import { addMatmul, compile, input, mul, symbol } from "../graph/index.js";
import { tensor } from "../tensor/tensor.js";
import { CausalLM } from "./causal-lm.js";
import { loraA, loraB } from "./scope.js";

/**
 * The model with its adapter added into its weights, W + scaling * B A: a plain model again, which decodes faster, can be saved
 * whole, or take a new adapter. The merged weights are in memory; all others stay where they were.
 */
export async function mergeAdapter(model: CausalLM): Promise<CausalLM> {
  const { adapter, runtime, config, weights } = model;
  if (adapter === undefined) return model;
  const [rows, columns, rank] = ["rows", "columns", "rank"].map(symbol);
  const scaling = input("scaling", "float32", []);
  const [a, b] = [input("a", "float32", [rank, columns]), input("b", "float32", [rows, rank])];
  const transposed = config.transposedWeights;
  const stored = input("stored", "float32", transposed ? [columns, rows] : [rows, columns]);
  const scaled = mul(b, scaling);
  const merged = transposed
    ? addMatmul(stored, a, scaled, { transposeA: true, transposeB: true })
    : addMatmul(stored, scaled, a);
  const session = await runtime.createSession(compile({ merged }));
  const replaced = new Map<string, Float32Array>();
  for (const { module, scaling: factor } of adapter.modules.values()) {
    const name = `${module}.weight`;
    const { shape } = weights.parameters.get(name)!;
    const outputs = await session.run({
      stored: tensor("float32", shape, await weights.read(name)),
      a: model.parameters.view(loraA(module)),
      b: model.parameters.view(loraB(module)),
      scaling: tensor("float32", [], Float32Array.of(factor)),
    });
    replaced.set(name, outputs.merged.data);
  }
  await session.release();
  return new CausalLM(model.source, config, weights.withReplaced(replaced), runtime, model.backward);
}
