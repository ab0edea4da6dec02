import { describeLostValue, findHiddenStateLag, formatLag, SEED_CAUSE } from "../../envs/index.js";
import type { Rollout } from "./rollout-collector.js";
import type { Turn } from "./trajectory.js";

/** Fraction of completions without an action at which to warn. */
const INVALID_RATIO = 0.5;
/** Fraction of the maximum entropy below which a policy counts as deterministic. */
const MIN_ENTROPY_FRACTION = 0.05;
/**
 * Distinct prompts that are compared, and the difference of log-probabilities below which they
 * count as equal to the model.
 */
const MIN_PROMPTS = 4;
const MAX_LOG_PROB_SPREAD = 0.05;
/** Turns that suffice for a judgment. */
export const FIRST_ROLLOUT_TURNS = 64;

const ENV_REMEDY =
  "reward progress, shorten episodes (--max-episode-steps), collect more (--batch-size), or start from demonstrations (--sft-warm-start)";
const SESSION_REMEDY =
  "the task is beyond this model: reward progress, offer fewer tools and values, collect more (--batch-size), or start from a larger model or an adapter that was trained on examples (llamagym sft)";

const ADVICE = "docs/training.md#when-it-does-not-learn";

/** What cures equal rewards, and groups of episodes that start differently. */
export interface Remedies {
  readonly rewards: string;
  readonly groups: string;
}

const ENV_REMEDIES: Remedies = {
  rewards: ENV_REMEDY,
  groups: `The environment ${SEED_CAUSE}, or train with --algorithm ppo`,
};

/**
 * Describes what will keep a run from learning, as its first rollout shows, each with its remedy.
 */
export function describeFirstRollout(
  { trajectories }: Pick<Rollout, "trajectories">,
  remedies = ENV_REMEDIES,
): readonly string[] {
  const turns = trajectories.flatMap((trajectory) => trajectory.turns);
  if (turns.length < FIRST_ROLLOUT_TURNS) return [];
  return withAdvice([
    describeInvalid(turns),
    describeRewards(turns, remedies.rewards),
    describeEntropy(turns),
    describeObservations(turns),
    describeHiddenState(trajectories),
    describeGroups(trajectories, remedies.groups),
  ]);
}

/**
 * Describes what will keep a run on an agent's sessions from learning, as its first ones show;
 * `decode` returns the text of a prompt.
 */
export function describeFirstSessions(
  { trajectories }: Pick<Rollout, "trajectories">,
  decode: (prompt: readonly number[]) => string,
): readonly string[] {
  const turns = trajectories.flatMap((trajectory) => trajectory.turns);
  if (turns.length < FIRST_ROLLOUT_TURNS) return [];
  return withAdvice([
    describeRewards(turns, SESSION_REMEDY),
    describeEntropy(turns),
    describeMessages(turns.slice(0, FIRST_ROLLOUT_TURNS), decode),
  ]);
}

const withAdvice = (problems: readonly (string | undefined)[]): readonly string[] =>
  problems.flatMap((problem) => (problem === undefined ? [] : [`${problem} See ${ADVICE}.`]));

function describeInvalid(turns: readonly Turn[]): string | undefined {
  const ratio = turns.filter(({ isValid }) => !isValid).length / turns.length;
  if (ratio < INVALID_RATIO) return undefined;
  return `${Math.round(100 * ratio)} % of the first completions name no action. Constrain completions: --action-mode choices (schema, or regex with --action-regex).`;
}

function describeRewards(turns: readonly Turn[], remedy: string): string | undefined {
  const [{ reward }] = turns;
  if (turns.some((turn) => turn.reward !== reward)) return undefined;
  return `All ${turns.length} rewards of the first update are ${reward}, so there is nothing to learn from yet. If the return does not rise, ${remedy}.`;
}

/**
 * Describes a policy that explores too little to find better actions; only for constrained
 * completions.
 */
function describeEntropy(turns: readonly Turn[]): string | undefined {
  let [surprise, maxEntropy] = [0, 0];
  let decisions = 0;
  for (const { allowedTokens, logProbs, tokens } of turns)
    for (let i = 0; i < tokens.length; i++) {
      const size = allowedTokens?.[i]?.length;
      if (size === undefined) return undefined;
      if (size === 1) continue;
      surprise -= logProbs[i];
      maxEntropy += Math.log(size);
      decisions++;
    }
  if (decisions === 0 || surprise >= MIN_ENTROPY_FRACTION * maxEntropy) return undefined;
  const [entropy, max] = [surprise / decisions, maxEntropy / decisions].map((nats) => nats.toPrecision(2));
  return `The policy begins nearly deterministic: ${entropy} of at most ${max} nats, so it hardly tries other actions. Raise the entropy bonus (--entropy-coef), or choose names of actions that are equally long and begin differently.`;
}

/** Describes messages into which the agent wrote an object or a missing value. */
function describeMessages(turns: readonly Turn[], decode: (prompt: readonly number[]) => string): string | undefined {
  for (const { prompt } of turns) {
    const problem = describeLostValue(decode(prompt));
    if (problem !== undefined) return `A message of the agent is ${problem}.`;
  }
  return undefined;
}

/** Describes a model for which different observations are nearly the same prompt. */
function describeObservations(turns: readonly Turn[]): string | undefined {
  const ranges = new Map<string, { min: number; max: number; readonly prompts: Set<string> }>();
  for (const { prompt, tokens, logProbs, allowedTokens } of turns) {
    const size = allowedTokens?.[0]?.length;
    if (size === undefined) return undefined;
    if (size === 1) continue;
    const key = `${tokens[0]} of ${allowedTokens![0]!.join()}`;
    const range = ranges.get(key) ?? { min: Infinity, max: -Infinity, prompts: new Set() };
    range.min = Math.min(range.min, logProbs[0]);
    range.max = Math.max(range.max, logProbs[0]);
    range.prompts.add(prompt.join());
    ranges.set(key, range);
  }
  const compared = [...ranges.values()].filter(({ prompts }) => prompts.size >= MIN_PROMPTS);
  if (compared.length === 0 || compared.some(({ min, max }) => max - min > MAX_LOG_PROB_SPREAD)) return undefined;
  const count = Math.max(...compared.map(({ prompts }) => prompts.size));
  return `The model gives ${count} different observations nearly the same action probabilities, so it tells them apart slowly. State what matters in few and different words, or train all weights (--tuning full) or a larger model (--model).`;
}

/**
 * Describes groups whose episodes start differently, so that their returns are not comparable. A
 * later seat of a game sees what the first one did.
 */
function describeGroups(trajectories: Rollout["trajectories"], remedy: string): string | undefined {
  const starts = new Map<number, string>();
  const differing = new Set<number>();
  for (const { group, seat, turns } of trajectories) {
    if (group === undefined || seat !== undefined || turns.length === 0) continue;
    const start = turns[0].prompt.join();
    if ((starts.get(group) ?? start) !== start) differing.add(group);
    starts.set(group, start);
  }
  if (differing.size === 0) return undefined;
  return `In ${differing.size} of ${starts.size} groups, the episodes start with different observations, so that a group does not show which actions are better. ${remedy}.`;
}

/**
 * Describes turns whose outcomes depend on an earlier observation that the prompt does not contain.
 * Reads one trajectory of each group: the others have its seed, so that equal starts with equal
 * chance follow them, which looks like memory.
 */
function describeHiddenState(trajectories: Rollout["trajectories"]): string | undefined {
  const groups = new Set<number>();
  const independent = trajectories.filter(({ group }) => {
    const isFirst = group === undefined || !groups.has(group);
    if (group !== undefined) groups.add(group);
    return isFirst;
  });
  const episodes = independent.map(({ turns, bootstrapPrompt }) =>
    turns.map(({ prompt, tokens, reward, isValid }, i) => {
      const next = i === turns.length - 1 ? bootstrapPrompt : turns[i + 1].prompt;
      // Instead of an invalid action, a random one is taken.
      const outcome = isValid ? `${reward} ${next?.join() ?? "end"}` : undefined;
      return { prompt: prompt.join(), action: tokens.join(), outcome };
    }),
  );
  const lag = findHiddenStateLag(episodes);
  if (lag === undefined) return undefined;
  return `What an action leads to depends on an observation ${formatLag(lag)} earlier, which the prompt does not contain. Let prompts contain it: --history-turns ${lag}.`;
}
