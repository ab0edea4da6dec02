import { batchAdvantages } from "../../algorithms/ppo/advantages.js";
import type { PpoTokens } from "../../algorithms/ppo/loss.js";
import { ppoBatchMetrics, ppoMetrics } from "../../algorithms/ppo/metrics.js";
import { fullKl, perTokenKl, tokenRewards, type TokenRewards } from "../../algorithms/shared/kl.js";
import type { Runtime } from "../../runtime/runtime.js";
import { largestError, type Reporter } from "../report.js";
import type { PpoCase, Scalars } from "./ppo-fixture.js";
import { distributions, runPpoLoss, type Distributions, type PpoOutcome } from "./ppo-loss.js";
import { Selection } from "./rows.js";

const TOLERANCE = 2e-5;
/** 1 - a / b for numbers that nearly agree. */
const VARIANCE_EXPLAINED_TOLERANCE = 1e-3;

type Numbers = ArrayLike<number>;
type Penalties = TokenRewards & { readonly kls: Numbers };

/** All that PPO computes for one batch, from logits to gradients and metrics. */
export async function comparePpo(fixture: PpoCase, runtime: Runtime, report: Reporter): Promise<void> {
  const parity = new PpoParity(fixture, report);
  const { inputs } = fixture;
  const old = await distributions(inputs.old_logits, inputs.labels, runtime);
  const reference = await distributions(inputs.ref_logits, inputs.labels, runtime);
  parity.policies(old, reference, await distributions(inputs.logits, inputs.labels, runtime));
  const penalties = parity.rewards(old, reference);
  const tokens = parity.advantages(old, penalties);
  const outcome = await runPpoLoss(fixture, tokens, parity.selection, runtime);
  parity.loss(outcome);
  parity.metrics(outcome, tokens, old, penalties);
}

/** Compares the steps of a case, each with what TRL gives for it. */
class PpoParity {
  readonly selection: Selection;

  constructor(
    private readonly fixture: PpoCase,
    private readonly report: Reporter,
  ) {
    this.selection = new Selection(fixture.inputs.mask);
  }

  policies(old: Distributions, reference: Distributions, current: Distributions): void {
    const { logprobs_from_logits: wanted, entropy_from_logits: entropy } = this.fixture;
    this.near("old logprobs", old.logProbs, wanted.old.flat());
    this.near("reference logprobs", reference.logProbs, wanted.ref.flat());
    this.near("logprobs", current.logProbs, wanted.new.flat());
    this.near("entropy", current.entropy, entropy.flat());
  }

  /** Of all positions, padding included. */
  rewards(old: Distributions, reference: Distributions): Penalties {
    const { config, inputs, kl_coef: klCoef, compute_rewards: wanted } = this.fixture;
    const kls =
      config.kl_penalty === "full"
        ? fullKl(old.all, reference.all, inputs.logits[0][0].length)
        : perTokenKl(config.kl_penalty, old.logProbs, reference.logProbs);
    const width = inputs.mask[0].length;
    const lastTokens = inputs.mask.map((row, i) => i * width + row.lastIndexOf(1));
    const found = tokenRewards(kls, klCoef, inputs.scores, lastTokens);
    this.near("kls", kls, wanted.kls.flat());
    this.near("rewards", found.rewards, wanted.rewards.flat());
    this.near("non-score rewards", found.nonScoreRewards, wanted.non_score_rewards.flat());
    return { ...found, kls };
  }

  /** TRL's recursion goes through masked positions, which have no reward and no value. */
  advantages(old: Distributions, { rewards }: Penalties): PpoTokens {
    const { config, inputs, compute_advantages: wanted } = this.fixture;
    const values = this.masked(inputs.values.flat());
    const found = batchAdvantages(
      this.masked(rewards).map((row, i) => ({ rewards: row, values: values[i] })),
      { gamma: config.gamma, lam: config.lam, whitenRewards: config.whiten_rewards, whitenAdvantages: true },
      inputs.mask,
    );
    const advantages = found.map((row) => Array.from(row.advantages));
    const returns = found.map((row) => Array.from(row.returns));
    this.near("values", values.flat(), wanted.values.flat());
    this.near("advantages", advantages.flat(), wanted.advantages.flat());
    this.near("returns", returns.flat(), wanted.returns.flat());
    const { selection } = this;
    return {
      oldLogProbs: selection.positions.map((position) => old.logProbs[position]),
      oldValues: selection.take(values),
      advantages: selection.take(advantages),
      returns: selection.take(returns),
    };
  }

  loss({ sums, gradients }: PpoOutcome): void {
    const { config, loss } = this.fixture;
    this.near("policy loss", [sums.policyLoss!], [loss.policy_loss]);
    this.near("value loss", [config.vf_coef * sums.valueLoss!], [loss.value_loss_times_vf_coef]);
    this.near("gradient of logprobs", gradients.logProbs, loss.grad_logprobs.flat());
    this.near("gradient of logits", gradients.logits, loss.grad_logits.flat(2));
    this.near("gradient of values", gradients.values, loss.grad_vpreds.flat());
  }

  metrics({ sums }: PpoOutcome, tokens: PpoTokens, old: Distributions, { kls, nonScoreRewards }: Penalties): void {
    const { inputs, kl_coef: klCoef, loss, step_stats: stepStats } = this.fixture;
    const perRow = (values: Numbers) => this.selection.takeRows(this.masked(values));
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

  private compareMetrics(metrics: Readonly<Record<string, number>>, wanted: Scalars): void {
    const explained = "ppo/val/var_explained";
    // null is NaN (the deviation of one score); the list of a batch's divergences looks like a scalar where there is one sample.
    const names = Object.keys(wanted).filter(
      (name) => wanted[name] !== null && name !== explained && name !== "objective/kl_dist",
    );
    this.near(
      "metrics",
      names.map((name) => metrics[name]),
      names.map((name) => wanted[name]!),
    );
    // Without variance this is a quotient of roundings, and NaN here.
    if (!Number.isNaN(metrics[explained]))
      this.near("variance explained", [metrics[explained]], [wanted[explained]!], VARIANCE_EXPLAINED_TOLERANCE);
  }

  /** Rows of values, 0 at masked positions. */
  private masked(values: Numbers): number[][] {
    const { mask } = this.fixture.inputs;
    return mask.map((row, i) => row.map((counts, j) => counts * values[i * row.length + j]));
  }

  private near(what: string, actual: Numbers, expected: Numbers, tolerance = TOLERANCE): void {
    this.report.number(`rl/ppo ${this.fixture.name} ${what}`, largestError(actual, expected), tolerance);
  }
}

function withPrefix(prefix: string, scalars: Scalars): Scalars {
  return Object.fromEntries(Object.entries(scalars).map(([name, value]) => [prefix + name, value]));
}
