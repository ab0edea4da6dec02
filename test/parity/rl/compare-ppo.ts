import { batchAdvantages } from "../../../src/rl/algorithms/ppo/advantages.js";
import type { PpoTokens } from "../../../src/rl/algorithms/ppo/loss.js";
import { ppoBatchMetrics, ppoMetrics } from "../../../src/rl/algorithms/ppo/metrics.js";
import { perTokenKl, tokenRewards, type TokenRewards } from "../../../src/rl/algorithms/shared/kl.js";
import type { Runtime } from "../../../src/engine/runtime/runtime.js";
import { maxRelativeError, type ParityReport } from "../parity-report.js";
import type { PpoCase, Scalars } from "./ppo-fixture.js";
import { computeDistributions, runPpoLoss, type Distributions, type PpoLossResult } from "./ppo-loss.js";
import { MaskSelection } from "./rows.js";

const TOLERANCE = 2e-5;
/** Metrics by their names in TRL 0.7.11, where these are not ours behind "ppo/". */
const METRICS_BY_TRL_NAME: Readonly<Record<string, string>> = {
  "ppo/loss/policy": "loss/policy_avg",
  "ppo/loss/value": "loss/value_avg",
  "ppo/loss/total": "loss",
  "ppo/policy/entropy": "entropy",
  "ppo/policy/approxkl": "policy/approxkl_avg",
  "ppo/policy/policykl": "policy/kl_avg",
  "ppo/policy/clipfrac": "policy/clipfrac_avg",
  "ppo/policy/ratio": "val/ratio",
  "ppo/val/clipfrac": "val/clipfrac_avg",
  "ppo/mean_scores": "objective/scores",
  "ppo/std_scores": "objective/scores_std",
  "ppo/mean_non_score_reward": "objective/non_score_reward",
};

/** 1 - a / b for numbers that nearly agree. */
const VARIANCE_EXPLAINED_TOLERANCE = 1e-3;

type NumberArray = ArrayLike<number>;
type KlPenalties = TokenRewards & { readonly kls: NumberArray };

/** All that PPO computes for one batch, from logits to gradients and metrics. */
export async function comparePpo(fixture: PpoCase, runtime: Runtime, report: ParityReport): Promise<void> {
  const parity = new PpoParity(fixture, report);
  const { inputs } = fixture;
  const old = await computeDistributions(inputs.old_logits, inputs.labels, runtime);
  const reference = await computeDistributions(inputs.ref_logits, inputs.labels, runtime);
  parity.policies(old, reference, await computeDistributions(inputs.logits, inputs.labels, runtime));
  const penalties = parity.rewards(old, reference);
  const tokens = parity.advantages(old, penalties);
  const outcome = await runPpoLoss(fixture, tokens, parity.selection, runtime);
  parity.loss(outcome);
  parity.metrics(outcome, tokens, old, penalties);
}

/** Compares the steps of a case, each with what TRL gives for it. */
class PpoParity {
  readonly selection: MaskSelection;

  constructor(
    private readonly fixture: PpoCase,
    private readonly report: ParityReport,
  ) {
    this.selection = new MaskSelection(fixture.inputs.mask);
  }

  policies(old: Distributions, reference: Distributions, current: Distributions): void {
    const { logprobs_from_logits: expected, entropy_from_logits: entropy } = this.fixture;
    this.checkClose("old logprobs", old.logProbs, expected.old.flat());
    this.checkClose("reference logprobs", reference.logProbs, expected.ref.flat());
    this.checkClose("logprobs", current.logProbs, expected.new.flat());
    this.checkClose("entropy", current.entropy, entropy.flat());
  }

  /** Of all positions, padding included. */
  rewards(old: Distributions, reference: Distributions): KlPenalties {
    const { config, inputs, kl_coef: klCoef, compute_rewards: expected } = this.fixture;
    const kls =
      config.kl_penalty === "full"
        ? fullKl(old.all, reference.all, inputs.logits[0][0].length)
        : perTokenKl(config.kl_penalty, old.logProbs, reference.logProbs);
    const width = inputs.mask[0].length;
    const lastTokens = inputs.mask.map((row, i) => i * width + row.lastIndexOf(1));
    const actual = tokenRewards(kls, klCoef, inputs.scores, lastTokens);
    this.checkClose("kls", kls, expected.kls.flat());
    this.checkClose("rewards", actual.rewards, expected.rewards.flat());
    this.checkClose("non-score rewards", actual.nonScoreRewards, expected.non_score_rewards.flat());
    return { ...actual, kls };
  }

  /** TRL's recursion goes through masked positions, which have no reward and no value. */
  advantages(old: Distributions, { rewards }: KlPenalties): PpoTokens {
    const { config, inputs, compute_advantages: expected } = this.fixture;
    const values = this.applyMask(inputs.values.flat());
    const actual = batchAdvantages(
      this.applyMask(rewards).map((row, i) => ({ rewards: row, values: values[i] })),
      { gamma: config.gamma, lam: config.lam, whitenRewards: config.whiten_rewards, whitenAdvantages: true },
      inputs.mask,
    );
    const advantages = actual.map((row) => Array.from(row.advantages));
    const returns = actual.map((row) => Array.from(row.returns));
    this.checkClose("values", values.flat(), expected.values.flat());
    this.checkClose("advantages", advantages.flat(), expected.advantages.flat());
    this.checkClose("returns", returns.flat(), expected.returns.flat());
    const { selection } = this;
    return {
      oldLogProbs: selection.positions.map((position) => old.logProbs[position]),
      oldValues: selection.select(values),
      advantages: selection.select(advantages),
      returns: selection.select(returns),
    };
  }

  loss({ sums, gradients }: PpoLossResult): void {
    const { config, loss } = this.fixture;
    this.checkClose("policy loss", [sums.policyLoss!], [loss.policy_loss]);
    this.checkClose("value loss", [config.vf_coef * sums.valueLoss!], [loss.value_loss_times_vf_coef]);
    this.checkClose("gradient of logprobs", gradients.logProbs, loss.grad_logprobs.flat());
    this.checkClose("gradient of logits", gradients.logits, loss.grad_logits.flat(2));
    this.checkClose("gradient of values", gradients.values, loss.grad_vpreds.flat());
  }

  metrics({ sums }: PpoLossResult, tokens: PpoTokens, old: Distributions, { kls, nonScoreRewards }: KlPenalties): void {
    const { inputs, kl_coef: klCoef, loss, step_stats: stepStats } = this.fixture;
    const perRow = (values: NumberArray) => this.selection.selectRows(this.applyMask(values));
    const [rowKls, rowLogProbs, rowRewards] = [perRow(kls), perRow(old.logProbs), perRow(nonScoreRewards)];
    const samples = inputs.scores.map((score, i) => ({
      score,
      kls: rowKls[i],
      oldLogProbs: rowLogProbs[i],
      nonScoreRewards: rowRewards[i],
    }));
    this.compareMetrics(
      { ...ppoMetrics(sums, tokens), ...ppoBatchMetrics(samples, klCoef) },
      { ...stepStats, ...withPrefix("ppo/", loss.stats) },
    );
  }

  private compareMetrics(metrics: Readonly<Record<string, number>>, expected: Scalars): void {
    const explained = "ppo/val/var_explained";
    const metric = (name: string) => metrics[METRICS_BY_TRL_NAME[name] ?? name.replace(/^ppo\//, "")];
    // Without a penalty there is no reference policy to diverge from.
    const ignored = [explained, "objective/kl_dist", ...(this.fixture.kl_coef === 0 ? ["objective/kl"] : [])];
    // null is NaN (the deviation of one score); the list of a batch's divergences looks like a
    // scalar where there is one sample.
    const names = Object.keys(expected).filter((name) => expected[name] !== null && !ignored.includes(name));
    this.checkClose(
      "metrics",
      names.map(metric),
      names.map((name) => expected[name]!),
    );
    // Without variance this is a quotient of roundings, and NaN here.
    if (!Number.isNaN(metric(explained)))
      this.checkClose("variance explained", [metric(explained)], [expected[explained]!], VARIANCE_EXPLAINED_TOLERANCE);
  }

  /** Rows of values, 0 at masked positions. */
  private applyMask(values: NumberArray): number[][] {
    const { mask } = this.fixture.inputs;
    return mask.map((row, i) => row.map((counts, j) => counts * values[i * row.length + j]));
  }

  private checkClose(label: string, actual: NumberArray, expected: NumberArray, tolerance = TOLERANCE): void {
    this.report.checkWithin(`rl/ppo ${this.fixture.name} ${label}`, maxRelativeError(actual, expected), tolerance);
  }
}

function withPrefix(prefix: string, scalars: Scalars): Scalars {
  return Object.fromEntries(Object.entries(scalars).map(([name, value]) => [prefix + name, value]));
}

/**
 * TRL's kl_penalty "full": the exact KL of each token from the log-probabilities of the whole
 * vocabulary.
 */
function fullKl(logProbs: ArrayLike<number>, refLogProbs: ArrayLike<number>, vocabulary: number): Float64Array {
  const kls = new Float64Array(logProbs.length / vocabulary);
  for (let i = 0; i < logProbs.length; i++)
    kls[Math.floor(i / vocabulary)] += Math.exp(logProbs[i]) * (logProbs[i] - refLogProbs[i]);
  return kls;
}
