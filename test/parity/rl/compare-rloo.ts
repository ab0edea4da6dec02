import { rlooAdvantages } from "../../../src/rl/algorithms/rloo/advantages.js";
import { resolveRlooConfig } from "../../../src/rl/algorithms/rloo/settings.js";
import { rlooInputs, rlooLoss, rlooMetrics } from "../../../src/rl/algorithms/rloo/loss.js";
import { perTokenKl } from "../../../src/rl/algorithms/shared/kl.js";
import { input, dim } from "../../../src/engine/graph/index.js";
import type { Runtime } from "../../../src/engine/runtime/runtime.js";
import { float32 } from "../../../src/engine/tensor/tensor.js";
import { scoreCompletions } from "../../support/turns.js";
import { maxRelativeError, type ParityReport } from "../parity-report.js";
import { evaluateLoss } from "./evaluate-nodes.js";
import { decodeRewards, type GrpoAdvantageCase } from "./compare-grpo.js";
import { MaskSelection, type PaddedRows } from "./rows.js";

const TOLERANCE = 2e-5;
const ADVANTAGE_TOLERANCE = 1e-4;

interface RlooLossCase {
  readonly name: string;
  readonly config: { readonly epsilon_low: number; readonly epsilon_high: number };
  readonly inputs: {
    readonly per_token_logps: PaddedRows;
    readonly old_logps: readonly number[];
    readonly advantages: readonly number[];
    readonly completion_mask: PaddedRows;
  };
  readonly loss: number;
  readonly grad_per_token_logps: PaddedRows;
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
    readonly old_per_token_logps?: PaddedRows;
    readonly ref_per_token_logps?: PaddedRows;
    readonly completion_mask?: PaddedRows;
  };
  readonly advantages: readonly number[];
}

export interface RlooFixture {
  readonly advantages: readonly RlooAdvantageCase[];
  readonly loss: readonly RlooLossCase[];
}

export async function compareRlooLoss(fixture: RlooLossCase, runtime: Runtime, report: ParityReport): Promise<void> {
  const name = `rl/rloo ${fixture.name}`;
  const { inputs, config } = fixture;
  const selection = new MaskSelection(inputs.completion_mask);
  const clipping = { epsilon: config.epsilon_low, epsilonHigh: config.epsilon_high };
  const sequences = selection.lengths.map((length, i) => ({
    length,
    oldLogProb: inputs.old_logps[i],
    advantage: inputs.advantages[i],
  }));

  const selected = dim("selected");
  const logProbs = input("logProbs", "float32", [selected]);
  const { loss, statistics, gradients } = await evaluateLoss(
    runtime,
    rlooLoss({ selected, logProbs, entropy: undefined }, clipping),
    { logProbs },
    { logProbs: float32(selection.select(inputs.per_token_logps)), ...rlooInputs(sequences) },
  );
  report.checkWithin(`${name} loss`, maxRelativeError([loss], [fixture.loss]), TOLERANCE);
  const gradient = selection.scatter(gradients.logProbs);
  report.checkWithin(`${name} gradient`, maxRelativeError(gradient, fixture.grad_per_token_logps.flat()), TOLERANCE);
  const metrics = rlooMetrics({ ratio: statistics.ratio }, sequences, clipping);
  // The fixture has no entropies whose mean it logs.
  const names = Object.keys(fixture.metrics).filter((metric) => metric !== "entropy");
  report.checkWithin(
    `${name} metrics`,
    maxRelativeError(
      names.map((metric) => metrics[metric]),
      names.map((metric) => fixture.metrics[metric]!),
    ),
    TOLERANCE,
  );
}

export function compareRlooAdvantages(
  { name, config, inputs, advantages }: RlooAdvantageCase,
  report: ParityReport,
): void {
  const [rewardClipMin, rewardClipMax] = config.reward_clip_range ?? [];
  const { num_generations: numGenerations, reward_weights: rewardWeights, beta } = config;
  const groups = { groupSize: numGenerations, rewardWeights, kls: referenceKls(inputs) };
  const ours = rlooAdvantages(scoreCompletions(decodeRewards(inputs.rewards_per_func), groups), {
    ...resolveRlooConfig({ numGenerations, beta, rewardClipMin, rewardClipMax }),
    normalizeAdvantages: config.normalize_advantages,
  });
  const found = ours.advantages.map(([row]) => row[0]);
  report.checkWithin(`rl/rloo ${name} advantages`, maxRelativeError(found, advantages), ADVANTAGE_TOLERANCE);
}

/** Of each sample, where the fixture has a reference. */
function referenceKls({
  completion_mask: mask,
  old_per_token_logps: old,
  ref_per_token_logps: reference,
}: RlooAdvantageCase["inputs"]): number[] {
  if (mask === undefined || old === undefined || reference === undefined) return [];
  const selection = new MaskSelection(mask);
  const references = selection.selectRows(reference);
  return selection
    .selectRows(old)
    .map((logProbs, i) => perTokenKl("kl", logProbs, references[i]).reduce((sum, kl) => sum + kl, 0));
}
