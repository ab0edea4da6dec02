import { Optimizer } from "../../engine/optim/index.js";
import { measureProducts } from "../../engine/runtime/index.js";
import { Sampler } from "../../generation/index.js";
import type { CausalLM } from "../../models/index.js";
import { addAdapter, count, createTraining, drawBatch, lossInputs, sample, time } from "./device-workload.js";

/** One measurement: its name, its rate, and what crossed to a GPU for it. */
export interface DeviceMeasurement {
  readonly name: string;
  readonly unit: "GFLOP/s" | "tokens/s";
  readonly rate: number;
  /** Seconds of the first run, with the compilation of kernels. */
  readonly first: number;
  /** Counters of a run on a GPU. */
  readonly counters?: object;
}

const DECODE_ROWS = [1, 32];
const NEW_TOKENS = 32;
const TRAINED_TOKENS = 1024;
const RUNS = 3;

/** Measures matrix products, decoding and a LoRA step of a model on its device. */
export async function measureDevice(
  base: CausalLM,
  { matrixSize, onResult }: { readonly matrixSize: number; readonly onResult: (result: DeviceMeasurement) => void },
): Promise<void> {
  const { rate, first } = await measureProducts(base.runtime, matrixSize);
  const name = `product of ${matrixSize} x ${matrixSize} matrices`;
  onResult({ name, unit: "GFLOP/s", rate: Number(rate.toPrecision(3)), first });
  const model = await addAdapter(base);
  const sampler = await Sampler.create(model);
  for (const rows of DECODE_ROWS) {
    const work = () => sample(model, sampler, rows, NEW_TOKENS);
    onResult(await measure(model, `decoding, ${rows} ${rows === 1 ? "row" : "rows"}`, work, rows * NEW_TOKENS));
  }
  const training = await createTraining(model);
  const batch = drawBatch(model.config.vocabSize, 8, 64, 1, 64);
  const inputs = lossInputs(new Float32Array(batch.selected.length).fill(-5));
  const optimizer = new Optimizer(model.parameters, { learningRate: 1e-6 });
  const step = async () => {
    await training.run(batch, inputs);
    await optimizer.update();
  };
  onResult(await measure(model, `LoRA step of ${TRAINED_TOKENS} tokens`, step, TRAINED_TOKENS));
}

async function measure(
  model: CausalLM,
  name: string,
  work: () => Promise<unknown>,
  tokens: number,
): Promise<DeviceMeasurement> {
  const { first, median } = await time(work, RUNS);
  const counters = await count(model, work);
  return { name, unit: "tokens/s", rate: Math.round(tokens / median), first, counters };
}
