import { LlamaGymError } from "../core/errors.js";
import { RandomStream } from "../core/random/random-stream.js";
import { compile, mul, neg, reduceSum } from "../engine/graph/index.js";
import { getPeftModel } from "../models/adapters/index.js";
import { CausalLM } from "../models/index.js";
import {
  vocabularyLogits,
  packSequences,
  sequenceGraph,
  ScoringGraph,
  TrainingGraph,
  type SelectedToken,
} from "../models/graphs/index.js";
import { Sampler } from "./sampling/sampler.js";

/** A small checkpoint of an architecture and its logits in Transformers. */
export interface ArchitectureFixture {
  /** Folder with config.json and safetensors, as Transformers saves a model with random weights. */
  readonly folder: string;
  /** Token ids of at least two sequences of different lengths. */
  readonly rows: readonly (readonly number[])[];
  /** Logits [tokens, vocabulary] in Transformers, the rows' tokens one after another. */
  readonly logits: ArrayLike<number>;
}

/** Error allowed, relative to the larger of 1 and the expected value. */
const TOLERANCE = 1e-4;
/** Step and relative error of directional finite differences in float32. */
const STEP = 2e-3;
const GRADIENT_TOLERANCE = 0.01;

/**
 * Checks an architecture on a checkpoint: logits equal Transformers', decoding with cached keys and
 * scoring behind a shared prefix equal the forward pass, and the gradients of an adapter on all
 * linear modules agree with finite differences.
 *
 * @throws INVALID_STATE at the first violation, and what `CausalLM.open` throws.
 */
export async function checkArchitecture(fixture: ArchitectureFixture): Promise<void> {
  const model = await CausalLM.open(fixture.folder, { device: "cpu", threads: 1 });
  try {
    const logProbs = await checkLogits(model, fixture);
    await checkScores(model, fixture.rows, logProbs);
    for (const adapterMode of ["merged", "unmerged"] as const) await checkGradients(model, fixture.rows, adapterMode);
  } finally {
    await model.close();
  }
}

/** Returns the log-probabilities of each row's tokens after the first. */
async function checkLogits(model: CausalLM, { rows, logits: expected }: ArchitectureFixture): Promise<number[][]> {
  const { config } = model;
  const scope = model.scope("unmerged");
  const hidden = sequenceGraph(config, scope, { withPrefix: false, states: "all" });
  const session = await model.createSession(compile({ logits: vocabularyLogits(config, scope, hidden) }));
  const { feeds } = packSequences(config, [{ prefix: [], rows }], { withPrefix: false });
  const logits = (await session.run(feeds)).logits.data;
  await session.release();
  checkClose("logits", logits.subarray(0, rows.flat().length * config.vocabSize), expected);
  let token = 0;
  return rows.map((row) => {
    const start = token;
    token += row.length;
    return row.slice(1).map((target, i) => {
      const offset = (start + i) * config.vocabSize;
      const distribution = logits.subarray(offset, offset + config.vocabSize);
      const largest = distribution.reduce((a, b) => Math.max(a, b));
      return distribution[target] - largest - Math.log(distribution.reduce((sum, x) => sum + Math.exp(x - largest), 0));
    });
  });
}

async function checkScores(
  model: CausalLM,
  rows: ArchitectureFixture["rows"],
  expected: readonly (readonly number[])[],
): Promise<void> {
  const sampler = await Sampler.create(model);
  const decoded = await Promise.all(rows.map((row) => sampler.score(row.slice(0, 1), row.slice(1))));
  await sampler.release();
  checkClose("log-probabilities of cached decoding", decoded.flat(), expected.flat());
  const scoring = await ScoringGraph.create(model);
  const groups = rows.map((row) => ({ prefix: row.slice(0, 2), rows: [row.slice(2)] }));
  const selected = rows.flatMap((row, group) => row.slice(1).map((_, i) => ({ group, row: 0, index: i - 1 })));
  const { logProbs } = await scoring.run({ groups, selected });
  await scoring.release();
  checkClose("log-probabilities behind a prefix", logProbs, expected.flat());
}

/** Compares the norm of the gradient with the slope of the loss along it. */
async function checkGradients(
  base: CausalLM,
  rows: ArchitectureFixture["rows"],
  adapterMode: "merged" | "unmerged",
): Promise<void> {
  const model = await getPeftModel(base, { r: 2, targetModules: "all-linear", seed: 1 });
  const { parameters, runtime } = model;
  const random = new RandomStream(3);
  const values = Float32Array.from({ length: parameters.count }, () => 0.1 * random.normal());
  const graph = await TrainingGraph.create(
    model,
    ({ logProbs }) => ({ loss: mul(neg(reduceSum(logProbs)), 1 / rows.flat().length) }),
    { adapterMode },
  );
  const selected = rows.flatMap((tokens, row): SelectedToken[] =>
    tokens.slice(1).map((_, i) => ({ group: 0, row, index: i + 1 })),
  );
  const lossAt = async (at: Float32Array) => {
    await runtime.write(parameters.values, at);
    return (await graph.run({ groups: [{ prefix: [], rows }], selected })).loss.data[0];
  };
  await lossAt(values);
  const gradient = (await runtime.read(parameters.gradients)).data as Float32Array;
  const norm = Math.sqrt(gradient.reduce((sum, x) => sum + x * x, 0));
  const along = (step: number) => lossAt(values.map((value, i) => value + (step * gradient[i]) / norm));
  const slope = ((await along(STEP)) - (await along(-STEP))) / (2 * STEP);
  await graph.release();
  for (const name of parameters.names)
    if ((await parameters.readGradient(name)).every((x) => x === 0)) throw violation(`${name} has no gradient`);
  if (Math.abs(slope - norm) > GRADIENT_TOLERANCE * norm)
    throw violation(`the gradient's norm (${adapterMode}) is ${norm}, but finite differences along it give ${slope}`);
}

function checkClose(what: string, actual: ArrayLike<number>, expected: ArrayLike<number>): void {
  if (actual.length !== expected.length) throw violation(`${actual.length} ${what}, expected ${expected.length}`);
  for (let i = 0; i < expected.length; i++)
    if (!(Math.abs(actual[i] - expected[i]) <= TOLERANCE * Math.max(1, Math.abs(expected[i]))))
      throw violation(`${what}: ${actual[i]} at ${i}, expected ${expected[i]}`);
}

function violation(problem: string): LlamaGymError {
  return new LlamaGymError("INVALID_STATE", `checkArchitecture: ${problem}.`);
}
