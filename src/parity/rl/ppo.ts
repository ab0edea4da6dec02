import { batchAdvantages } from "../../algorithms/ppo/advantages.js";
import { ppoInputs, ppoLoss } from "../../algorithms/ppo/loss.js";
import { isRatioTooLarge, ppoBatchMetrics, ppoMetrics, type PpoSums } from "../../algorithms/ppo/metrics.js";
import { AdaptiveKlController } from "../../algorithms/shared/kl-controller.js";
import { fullKl, perTokenKl, tokenRewards, type PerTokenKl } from "../../algorithms/shared/kl.js";
import { mean, variance, whiten } from "../../algorithms/shared/statistics.js";
import { exp, input, logSoftmax, mul, neg, pick, reduceSum, symbol, type Node } from "../../graph/index.js";
import type { PolicyNodes } from "../../models/policy.js";
import type { Runtime } from "../../runtime/runtime.js";
import { float32, int32 } from "../../tensor/tensor.js";
import { largestError, type Reporter } from "../report.js";
import { evaluateNodes, evaluateObjective } from "./evaluate.js";
import { Selection, type Rows } from "./rows.js";

const TOLERANCE = 2e-5;
/** 1 - a / b for numbers that nearly agree. */
const VARIANCE_EXPLAINED_TOLERANCE = 1e-3;

type Scalars = Readonly<Record<string, number | null>>;
type Logits = readonly Rows[];

/** A case of ppo.json, under the names of TRL 0.7.11's methods. */
export interface PpoCase {
  readonly name: string;
  readonly config: {
    readonly kl_penalty: PerTokenKl | "full";
    readonly gamma: number;
    readonly lam: number;
    readonly whiten_rewards: boolean;
    readonly cliprange: number;
    readonly cliprange_value: number;
    readonly vf_coef: number;
    readonly ratio_threshold: number;
  };
  readonly kl_coef: number;
  readonly inputs: Readonly<Record<"mask" | "labels" | "values" | "vpreds", Rows>> &
    Readonly<Record<"old_logits" | "ref_logits" | "logits", Logits>> & { readonly scores: readonly number[] };
  readonly logprobs_from_logits: Readonly<Record<"old" | "ref" | "new", Rows>>;
  readonly entropy_from_logits: Rows;
  readonly compute_rewards: Readonly<Record<"rewards" | "non_score_rewards" | "kls", Rows>>;
  readonly compute_advantages: Readonly<Record<"values" | "advantages" | "returns", Rows>>;
  readonly loss: {
    readonly policy_loss: number;
    readonly value_loss_times_vf_coef: number;
    readonly stats: Scalars;
    readonly grad_logprobs: Rows;
    readonly grad_logits: Logits;
    readonly grad_vpreds: Rows;
  };
  readonly step_stats: Scalars;
}

export interface PpoFixture {
  readonly cases: readonly PpoCase[];
  readonly masked_statistics: readonly MaskedStatistics[];
  readonly adaptive_kl: readonly AdaptiveKlCase[];
}

interface MaskedStatistics {
  readonly x: Rows;
  readonly mask: Rows;
  readonly masked_mean: number;
  readonly masked_var: number;
  readonly masked_var_biased: number;
  readonly masked_whiten: Rows;
  readonly masked_whiten_keep_mean: Rows;
}

interface AdaptiveKlCase {
  readonly init_kl_coef: number;
  readonly target: number;
  readonly horizon: number;
  readonly n_steps: number;
  readonly current: readonly number[];
  readonly values: readonly number[];
}

/** All that PPO computes for one batch, from logits to gradients. */
export async function comparePpo(fixture: PpoCase, runtime: Runtime, report: Reporter): Promise<void> {
  const near: Compare = (what, actual, expected, tolerance = TOLERANCE) =>
    report.number(`rl/ppo ${fixture.name} ${what}`, largestError(actual, expected), tolerance);
  const { config, inputs, kl_coef: klCoef, compute_rewards: wantedRewards } = fixture;
  const selection = new Selection(inputs.mask);

  const old = await distributions(inputs.old_logits, inputs.labels, runtime);
  const reference = await distributions(inputs.ref_logits, inputs.labels, runtime);
  const current = await distributions(inputs.logits, inputs.labels, runtime);
  near("old logprobs", old.logProbs, fixture.logprobs_from_logits.old.flat());
  near("reference logprobs", reference.logProbs, fixture.logprobs_from_logits.ref.flat());
  near("logprobs", current.logProbs, fixture.logprobs_from_logits.new.flat());
  near("entropy", current.entropy, fixture.entropy_from_logits.flat());

  const kls =
    config.kl_penalty === "full"
      ? fullKl(old.all, reference.all, inputs.logits[0][0].length)
      : perTokenKl(config.kl_penalty, old.logProbs, reference.logProbs);
  near("kls", kls, wantedRewards.kls.flat());
  const width = inputs.mask[0].length;
  const lastTokens = inputs.mask.map((row, i) => i * width + row.lastIndexOf(1));
  const { rewards, nonScoreRewards } = tokenRewards(kls, klCoef, inputs.scores, lastTokens);
  near("rewards", rewards, wantedRewards.rewards.flat());
  near("non-score rewards", nonScoreRewards, wantedRewards.non_score_rewards.flat());

  const masked = (values: ArrayLike<number>) =>
    inputs.mask.map((row, i) => row.map((counts, j) => counts * values[i * width + j]));
  const values = masked(inputs.values.flat());
  const rows = masked(rewards).map((row, i) => ({ rewards: row, values: values[i] }));
  const found = batchAdvantages(
    rows,
    { gamma: config.gamma, lam: config.lam, whitenRewards: config.whiten_rewards, whitenAdvantages: true },
    inputs.mask,
  );
  const advantages = found.map((row) => Array.from(row.advantages));
  const returns = found.map((row) => Array.from(row.returns));
  near("values", values.flat(), fixture.compute_advantages.values.flat());
  near("advantages", advantages.flat(), fixture.compute_advantages.advantages.flat());
  near("returns", returns.flat(), fixture.compute_advantages.returns.flat());

  const tokens = {
    oldLogProbs: selection.positions.map((position) => old.logProbs[position]),
    oldValues: selection.take(values),
    advantages: selection.take(advantages),
    returns: selection.take(returns),
  };
  const loss = await runLoss(fixture, tokens, selection, runtime);
  near("policy loss", [loss.sums.policyLoss!], [fixture.loss.policy_loss]);
  near("value loss", [config.vf_coef * loss.sums.valueLoss!], [fixture.loss.value_loss_times_vf_coef]);
  near("gradient of logprobs", loss.gradients.logProbs, fixture.loss.grad_logprobs.flat());
  near("gradient of logits", loss.gradients.logits, fixture.loss.grad_logits.flat(2));
  near("gradient of values", loss.gradients.values, fixture.loss.grad_vpreds.flat());

  const metrics: Record<string, number> = {
    ...ppoMetrics(loss.sums, tokens),
    ...ppoBatchMetrics(
      inputs.scores.map((score, i) => ({
        score,
        kls: selection.takeRows(masked(kls))[i],
        oldLogProbs: selection.takeRows(masked(old.logProbs))[i],
        nonScoreRewards: selection.takeRows(masked(nonScoreRewards))[i],
      })),
      klCoef,
    ),
  };
  compareMetrics(metrics, { ...fixture.step_stats, ...withPrefix("ppo/", fixture.loss.stats) }, near);
}

type Compare = (what: string, actual: ArrayLike<number>, expected: ArrayLike<number>, tolerance?: number) => void;

function compareMetrics(metrics: Readonly<Record<string, number>>, wanted: Scalars, near: Compare): void {
  const explained = "ppo/val/var_explained";
  // null is NaN (the deviation of one score); the list of a batch's divergences looks like a scalar where there is one sample.
  const names = Object.keys(wanted).filter(
    (name) => wanted[name] !== null && name !== explained && name !== "objective/kl_dist",
  );
  near(
    "metrics",
    names.map((name) => metrics[name]),
    names.map((name) => wanted[name]!),
  );
  // Without variance this is a quotient of roundings, and NaN here.
  if (!Number.isNaN(metrics[explained]))
    near("variance explained", [metrics[explained]], [wanted[explained]!], VARIANCE_EXPLAINED_TOLERANCE);
}

function withPrefix(prefix: string, scalars: Scalars): Scalars {
  return Object.fromEntries(Object.entries(scalars).map(([name, value]) => [prefix + name, value]));
}

/** Policy nodes of tokens whose logits [selected, vocabulary] are given. */
function policyOf(vocabulary: number): Pick<PolicyNodes, "selected" | "logProbs"> & {
  readonly logits: Node;
  readonly entropy: Node;
  readonly all: Node;
} {
  const selected = symbol("selected");
  const logits = input("logits", "float32", [selected, vocabulary]);
  const all = logSoftmax(logits);
  return {
    selected,
    logits,
    all,
    logProbs: pick(all, input("labels", "int32", [selected])),
    entropy: neg(reduceSum(mul(exp(all), all), [1])),
  };
}

function logitFeeds(logits: Rows, labels: readonly number[]) {
  return { logits: float32(logits.flat(), [logits.length, logits[0].length]), labels: int32(labels) };
}

/** Log-probabilities and entropies at every position, padding included. */
async function distributions(
  logits: Logits,
  labels: Rows,
  runtime: Runtime,
): Promise<Readonly<Record<"all" | "logProbs" | "entropy", Float32Array>>> {
  const { all, logProbs, entropy } = policyOf(logits[0][0].length);
  return evaluateNodes(runtime, { all, logProbs, entropy }, logitFeeds(logits.flat(), labels.flat()));
}

async function runLoss(
  { config, inputs }: PpoCase,
  tokens: Parameters<typeof ppoInputs>[0],
  selection: Selection,
  runtime: Runtime,
): Promise<{
  readonly sums: PpoSums;
  readonly gradients: Readonly<Record<"logProbs" | "logits" | "values", number[]>>;
}> {
  const vocabulary = inputs.logits[0][0].length;
  const policy = policyOf(vocabulary);
  const values = input("values", "float32", [policy.selected]);
  const objective = ppoLoss(
    { ...policy, values },
    { cliprange: config.cliprange, cliprangeValue: config.cliprange_value, vfCoef: config.vf_coef, entropyCoef: 0 },
  );
  const { loss, statistics, gradients } = await evaluateObjective(
    runtime,
    objective,
    { logits: policy.logits, logProbs: policy.logProbs, values },
    {
      ...logitFeeds(selection.take(inputs.logits), selection.take(inputs.labels)),
      values: float32(selection.take(inputs.vpreds)),
      ...ppoInputs(tokens),
    },
  );
  const sums: PpoSums = { loss, ...Object.fromEntries(Object.entries(statistics).map(([name, [sum]]) => [name, sum])) };
  // A skipped minibatch trains nothing; TRL says so by losses of 0.
  const share = isRatioTooLarge(sums, { ratioThreshold: config.ratio_threshold }) ? 0 : 1;
  const scaled = (all: number[]) => all.map((slope) => share * slope);
  return {
    sums: {
      ...sums,
      loss: share * loss,
      policyLoss: share * sums.policyLoss!,
      valueLoss: share * sums.valueLoss!,
    },
    gradients: {
      logits: scaled(selection.scatter(gradients.logits, vocabulary)),
      logProbs: scaled(selection.scatter(gradients.logProbs)),
      values: scaled(selection.scatter(gradients.values)),
    },
  };
}

export function compareMaskedStatistics(fixture: MaskedStatistics, name: string, report: Reporter): void {
  const [x, mask] = [fixture.x.flat(), fixture.mask.flat()];
  const ours = [
    mean(x, mask),
    variance(x, mask),
    variance(x, mask, { unbiased: false }),
    ...whiten(x, { mask }),
    ...whiten(x, { mask, shiftMean: false }),
  ];
  const theirs = [
    fixture.masked_mean,
    fixture.masked_var,
    fixture.masked_var_biased,
    ...fixture.masked_whiten.flat(),
    ...fixture.masked_whiten_keep_mean.flat(),
  ];
  report.number(`rl/ppo ${name}`, largestError(ours, theirs), TOLERANCE);
}

export function compareAdaptiveKl(fixture: AdaptiveKlCase, name: string, report: Reporter): void {
  const { init_kl_coef: initKlCoef, target, horizon, n_steps: samples, current, values } = fixture;
  const controller = new AdaptiveKlController({ initKlCoef, target, horizon });
  const ours = [controller.value];
  for (const kl of current) {
    controller.update(kl, samples);
    ours.push(controller.value);
  }
  report.number(`rl/ppo ${name}`, largestError(ours, values), TOLERANCE);
}
