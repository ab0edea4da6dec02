import { grpoAdvantages } from "../../../src/rl/algorithms/grpo/advantages.js";
import { resolveGrpoConfig, type GrpoConfig, type LossType } from "../../../src/rl/algorithms/grpo/settings.js";
import { highEntropyMask } from "../../../src/rl/algorithms/shared/entropy-mask.js";
import { grpoInputs, type GrpoSequence } from "../../../src/rl/algorithms/grpo/loss-inputs.js";
import { grpoLoss, type GrpoLossConfig } from "../../../src/rl/algorithms/grpo/loss.js";
import { grpoMetrics } from "../../../src/rl/algorithms/grpo/metrics.js";
import { input, dim } from "../../../src/engine/graph/index.js";
import type { Runtime } from "../../../src/engine/runtime/runtime.js";
import { float32 } from "../../../src/engine/tensor/tensor.js";
import { scoreCompletions } from "../../support/turns.js";
import { maxRelativeError, type ParityReport } from "../parity-report.js";
import { evaluateLoss } from "./evaluate-nodes.js";
import { MaskSelection, type PaddedRows } from "./rows.js";

const TOLERANCE = 2e-5;
/** Differences of rewards in float32, divided by deviations near 0. */
const ADVANTAGE_TOLERANCE = 1e-3;

/** A reward, or null where a function gave NaN. */
type Reward = number | null;

/** A case of grpo.json's losses, under TRL 1.16's names. */
export interface GrpoLossCase {
  readonly name: string;
  readonly config: {
    readonly loss_type: LossType;
    readonly beta: number;
    readonly epsilon_low: number;
    readonly epsilon_high: number;
    readonly delta: number | null;
    readonly importance_sampling_level: GrpoConfig["importanceSamplingLevel"];
    readonly max_completion_length: number;
    readonly sapo_temperature_pos: number;
    readonly sapo_temperature_neg: number;
    readonly vespo_k_pos: number;
    readonly vespo_lambda_pos: number;
    readonly vespo_k_neg: number;
    readonly vespo_lambda_neg: number;
    readonly use_bias_correction_kl: boolean;
    readonly off_policy_mask_threshold: number | null;
    readonly top_entropy_quantile: number;
    readonly steps_per_generation: number;
    readonly gradient_accumulation_steps: number;
  };
  readonly inputs: {
    readonly per_token_logps: PaddedRows;
    readonly entropies: PaddedRows;
    readonly completion_mask: PaddedRows;
    readonly tool_mask?: PaddedRows;
    /** Of rows, or of tokens. */
    readonly advantages: readonly number[] | PaddedRows;
    readonly old_per_token_logps?: PaddedRows;
    readonly ref_per_token_logps?: PaddedRows;
    readonly num_items_in_batch: number;
  };
  readonly loss: number;
  readonly grad_per_token_logps: PaddedRows;
  readonly metrics: Readonly<Record<string, number | null>>;
}

export interface GrpoAdvantageCase {
  readonly name: string;
  readonly config: {
    readonly multi_objective_aggregation: GrpoConfig["multiObjectiveAggregation"];
    readonly scale_rewards: GrpoConfig["scaleRewards"];
    readonly reward_weights: readonly number[];
    readonly num_generations: number;
  };
  readonly inputs: { readonly rewards_per_func: readonly (readonly Reward[])[] };
  readonly advantages: readonly number[];
}

export interface GrpoFixture {
  readonly loss: readonly GrpoLossCase[];
  readonly advantages: readonly GrpoAdvantageCase[];
}

/** A micro-batch's loss, gradient and metrics. */
export async function compareGrpoLoss(fixture: GrpoLossCase, runtime: Runtime, report: ParityReport): Promise<void> {
  const name = `rl/grpo ${fixture.name}`;
  const { inputs, config: stored } = fixture;
  const { tool_mask: toolMask } = inputs;
  const mask = inputs.completion_mask.map((row, i) => row.map((maskValue, j) => maskValue * (toolMask?.[i][j] ?? 1)));
  const selection = new MaskSelection(mask);
  const config = toGrpoLossConfig(stored);
  const sequences = toGrpoSequences(fixture, selection);

  const selected = dim("selected");
  const logProbs = input("logProbs", "float32", [selected]);
  const entropy = input("entropy", "float32", [selected]);
  const { loss, statistics, gradients } = await evaluateLoss(
    runtime,
    grpoLoss({ selected, logProbs, entropy }, config),
    { logProbs },
    {
      logProbs: float32(selection.select(inputs.per_token_logps)),
      entropy: float32(selection.select(inputs.entropies)),
      ...grpoInputs(
        sequences,
        { ...config, maxCompletionLength: stored.max_completion_length },
        toUpdateSize(fixture, selection),
      ),
    },
  );
  report.checkWithin(`${name} loss`, maxRelativeError([loss], [fixture.loss]), TOLERANCE);
  const gradient = selection.scatter(gradients.logProbs);
  report.checkWithin(`${name} gradient`, maxRelativeError(gradient, fixture.grad_per_token_logps.flat()), TOLERANCE);
  if (metricsIncludePadding(mask)) {
    report.skip(`${name} metrics`, "TRL counts padding in them where a batch is one token wide");
    return;
  }
  const metrics = grpoMetrics({ ...statistics, ratio: statistics.ratio }, sequences, config);
  // null is NaN: the mean of no sequence.
  const names = Object.keys(fixture.metrics).filter((metric) => fixture.metrics[metric] !== null);
  report.checkWithin(
    `${name} metrics`,
    maxRelativeError(
      names.map((metric) => metrics[metric]),
      names.map((metric) => fixture.metrics[metric]!),
    ),
    TOLERANCE,
  );
}

/**
 * Whether TRL takes a column of tokens for values of sequences, and leaves the mask out of their
 * means.
 */
function metricsIncludePadding(mask: PaddedRows): boolean {
  return mask[0].length === 1 && mask.some(([counts]) => counts === 0);
}

function toGrpoLossConfig(stored: GrpoLossCase["config"]): GrpoLossConfig {
  return {
    lossType: stored.loss_type,
    beta: stored.beta,
    epsilon: stored.epsilon_low,
    epsilonHigh: stored.epsilon_high,
    delta: stored.delta ?? undefined,
    importanceSamplingLevel: stored.importance_sampling_level,
    sapoTemperaturePos: stored.sapo_temperature_pos,
    sapoTemperatureNeg: stored.sapo_temperature_neg,
    vespoKPos: stored.vespo_k_pos,
    vespoLambdaPos: stored.vespo_lambda_pos,
    vespoKNeg: stored.vespo_k_neg,
    vespoLambdaNeg: stored.vespo_lambda_neg,
    useBiasCorrectionKl: stored.use_bias_correction_kl,
    offPolicyMaskThreshold: stored.off_policy_mask_threshold ?? undefined,
    topEntropyQuantile: stored.top_entropy_quantile,
    entropyCoef: 0,
  };
}

function toGrpoSequences({ inputs, config }: GrpoLossCase, selection: MaskSelection): GrpoSequence[] {
  const rows = {
    // Without old log-probabilities the tokens are the current policy's own.
    oldLogProbs: selection.selectRows(inputs.old_per_token_logps ?? inputs.per_token_logps),
    advantages: selection.selectRows(
      inputs.advantages.map((given, i) =>
        typeof given === "number" ? inputs.per_token_logps[i].map(() => given) : given,
      ),
    ),
    refLogProbs: inputs.ref_per_token_logps && selection.selectRows(inputs.ref_per_token_logps),
    policyMask: selection.splitByRow(highEntropyMask(selection.select(inputs.entropies), config.top_entropy_quantile)),
  };
  return rows.oldLogProbs.map((oldLogProbs, i) => ({
    oldLogProbs,
    advantages: rows.advantages[i],
    refLogProbs: rows.refLogProbs?.[i],
    policyMask: rows.policyMask[i],
  }));
}

/**
 * The optimizer step that a fixture's micro-batch is part of: TRL takes the mean over
 * micro-batches, and what it calls num_items_in_batch counts the tokens of all that was sampled
 * together.
 */
function toUpdateSize({ inputs, config }: GrpoLossCase, selection: MaskSelection) {
  const steps = config.gradient_accumulation_steps;
  return {
    sequences: inputs.completion_mask.length * steps,
    tokens: Math.max(selection.count, 1) * steps,
    meanTokens: (Math.max(inputs.num_items_in_batch, 1) * steps) / config.steps_per_generation,
  };
}

export function compareGrpoAdvantages(
  { name, config, inputs, advantages }: GrpoAdvantageCase,
  report: ParityReport,
): void {
  const { num_generations: numGenerations, reward_weights: rewardWeights } = config;
  const groups = { groupSize: numGenerations, rewardWeights };
  const ours = grpoAdvantages(scoreCompletions(decodeRewards(inputs.rewards_per_func), groups), {
    ...resolveGrpoConfig({ numGenerations, rewardWeights }),
    scaleRewards: config.scale_rewards,
    multiObjectiveAggregation: config.multi_objective_aggregation,
  });
  const found = ours.map(([row]) => row[0]);
  report.checkWithin(`rl/grpo ${name} advantages`, maxRelativeError(found, advantages), ADVANTAGE_TOLERANCE);
}

export function decodeRewards(stored: readonly (readonly Reward[])[]): number[][] {
  return stored.map((rewards) => rewards.map((reward) => reward ?? Number.NaN));
}
