import { rlooAdvantages } from "../../algorithms/rloo/advantages.js";
import { rlooInputs, rlooLoss, rlooMetrics } from "../../algorithms/rloo/loss.js";
import { perTokenKl } from "../../algorithms/shared/kl.js";
import { input, symbol } from "../../graph/index.js";
import type { Runtime } from "../../runtime/runtime.js";
import { float32 } from "../../tensor/tensor.js";
import { largestError, type Reporter } from "../report.js";
import { evaluateObjective } from "./evaluate.js";
import { rewardsOf, type GrpoAdvantageCase } from "./grpo.js";
import { Selection, type Rows } from "./rows.js";

const TOLERANCE = 2e-5;
const ADVANTAGE_TOLERANCE = 1e-4;

interface RlooLossCase {
  readonly name: string;
  readonly config: { readonly epsilon_low: number; readonly epsilon_high: number };
  readonly inputs: {
    readonly per_token_logps: Rows;
    readonly old_logps: readonly number[];
    readonly advantages: readonly number[];
    readonly completion_mask: Rows;
  };
  readonly loss: number;
  readonly grad_per_token_logps: Rows;
  readonly metrics: Readonly<Record<string, number | null>>;
}

interface RlooAdvantageCase {
  readonly name: string;
  readonly config: {
    readonly reward_weights: readonly number[];
    readonly reward_clip_range: readonly [number, number] | null;
    readonly normalize_advantages: boolean;
    readonly beta: number;
    readonly num_generations: number;
  };
  readonly inputs: GrpoAdvantageCase["inputs"] & {
    readonly old_per_token_logps?: Rows;
    readonly ref_per_token_logps?: Rows;
    readonly completion_mask?: Rows;
  };
  readonly advantages: readonly number[];
}

export interface RlooFixture {
  readonly advantages: readonly RlooAdvantageCase[];
  readonly loss: readonly RlooLossCase[];
}

export async function compareRlooLoss(fixture: RlooLossCase, runtime: Runtime, report: Reporter): Promise<void> {
  const name = `rl/rloo ${fixture.name}`;
  const { inputs, config } = fixture;
  const selection = new Selection(inputs.completion_mask);
  const clipping = { epsilon: config.epsilon_low, epsilonHigh: config.epsilon_high };
  const sequences = selection.lengths.map((length, i) => ({
    length,
    oldLogProb: inputs.old_logps[i],
    advantage: inputs.advantages[i],
  }));

  const selected = symbol("selected");
  const logProbs = input("logProbs", "float32", [selected]);
  const { loss, statistics, gradients } = await evaluateObjective(
    runtime,
    rlooLoss({ selected, logProbs, entropy: undefined }, clipping),
    { logProbs },
    { logProbs: float32(selection.take(inputs.per_token_logps)), ...rlooInputs(sequences) },
  );
  report.number(`${name} loss`, largestError([loss], [fixture.loss]), TOLERANCE);
  const gradient = selection.scatter(gradients.logProbs);
  report.number(`${name} gradient`, largestError(gradient, fixture.grad_per_token_logps.flat()), TOLERANCE);
  const metrics = rlooMetrics({ ratio: statistics.ratio }, sequences, clipping);
  // The fixture has no entropies whose mean it logs.
  const names = Object.keys(fixture.metrics).filter((metric) => metric !== "entropy");
  report.number(
    `${name} metrics`,
    largestError(
      names.map((metric) => metrics[metric]),
      names.map((metric) => fixture.metrics[metric]!),
    ),
    TOLERANCE,
  );
}

export function compareRlooAdvantages({ name, config, inputs, advantages }: RlooAdvantageCase, report: Reporter): void {
  const [rewardClipMin, rewardClipMax] = config.reward_clip_range ?? [];
  const ours = rlooAdvantages(rewardsOf(inputs.rewards_per_func), divergences(inputs), {
    numGenerations: config.num_generations,
    beta: config.beta,
    normalizeAdvantages: config.normalize_advantages,
    rewardClipMin,
    rewardClipMax,
    rewardWeights: config.reward_weights,
  });
  report.number(`rl/rloo ${name} advantages`, largestError(ours.advantages, advantages), ADVANTAGE_TOLERANCE);
}

/** Of each sample, where the fixture has a reference. */
function divergences({
  completion_mask: mask,
  old_per_token_logps: old,
  ref_per_token_logps: reference,
}: RlooAdvantageCase["inputs"]): number[] {
  if (mask === undefined || old === undefined || reference === undefined) return [];
  const selection = new Selection(mask);
  const references = selection.takeRows(reference);
  return selection
    .takeRows(old)
    .map((logProbs, i) => perTokenKl("kl", logProbs, references[i]).reduce((sum, kl) => sum + kl, 0));
}
