import { yieldToEventLoop } from "#platform";
import type { Demonstration, DemonstrationTurn } from "../../rl/data/index.js";
import { type Env, registry, type Info, getChoices, type TextInterface } from "../../envs/index.js";
import type { MaybePromise } from "../../core/maybe-promise.js";
import { LlamaGymError } from "../../core/errors.js";
import { checkOptions, checkSettings, type OptionNames } from "../../core/settings.js";
import { trainerSettings } from "../../rl/train/index.js";
import type { TextAgent } from "../../rl/agent/index.js";
import type { RandomStream } from "../../core/random/random-stream.js";
import { stream } from "../../core/random/streams.js";
import { printWarning } from "../../core/terminal-text.js";
import {
  EpisodeRunner,
  type EpisodeRunnerOptions,
  closeEnvs,
  openEnvs,
  DEFAULT_CALL_LIMIT,
} from "../../rl/rollout/index.js";

/** An action and the completion that expresses it. */
export interface PolicyAction {
  readonly action: unknown;
  readonly completion: string;
}

/** A policy in one episode. */
export type EpisodePolicy = (observation: unknown, info: Info) => MaybePromise<PolicyAction>;

/**
 * Creates the policy of each episode in an environment; it draws from the episode's random stream.
 */
export type PolicyFactory = (env: Env) => (random: RandomStream) => EpisodePolicy;

/** Options of `recordDemonstrations`. */
export interface RecordDemonstrationsOptions extends Pick<EpisodeRunnerOptions, "settings"> {
  readonly episodes: number;
  /** Ends after the episode in which this many turns have been recorded. Default: no limit. */
  readonly turns?: number;
  /** Seeds environments and policies. Default 0. */
  readonly seed?: number;
  /** Number of environments stepped in parallel. Default 1. */
  readonly numEnvs?: number;
  /** Called after each episode. */
  readonly onEpisode?: (numRecorded: number) => void;
  /** Receives warnings about environments that could not be closed. Default: they are printed. */
  readonly onWarning?: (message: string) => void;
  readonly signal?: AbortSignal;
}

const recordOptionNames: OptionNames<RecordDemonstrationsOptions> = {
  settings: true,
  episodes: true,
  turns: true,
  seed: true,
  numEnvs: true,
  onEpisode: Function,
  onWarning: Function,
  signal: AbortSignal,
};

/** A demonstration with its return. */
export type RecordedEpisode = Demonstration & { readonly return: number };

/**
 * Records complete episodes of a policy. Equal seeds give equal demonstrations for any `numEnvs`.
 * @throws ENV_INVALID for an environment without a text interface, and what the environment and the
 * policy throw.
 */
export async function recordDemonstrations(
  makeEnv: () => MaybePromise<Env>,
  policyFactory: PolicyFactory,
  options: RecordDemonstrationsOptions,
): Promise<RecordedEpisode[]> {
  const recorded: RecordedEpisode[] = [];
  await recordEpisodes(makeEnv, policyFactory, options, (episode) => void recorded.push(episode));
  return recorded;
}

/**
 * Records like `recordDemonstrations`, and keeps no episode: `receive` is called and awaited with
 * each one, in the order of their numbers. Throws what it and `receive` throw, after the
 * episodes of other environments have ended and were received.
 */
export async function recordEpisodes(
  makeEnv: () => MaybePromise<Env>,
  policyFactory: PolicyFactory,
  options: RecordDemonstrationsOptions,
  receive: (episode: RecordedEpisode) => MaybePromise<void>,
): Promise<void> {
  checkOptions("recordDemonstrations", options, recordOptionNames);
  const { episodes, turns = Infinity, seed = 0, numEnvs = 1, settings = DEFAULT_CALL_LIMIT } = options;
  const { onEpisode = () => {}, onWarning = printWarning, signal } = options;
  checkSettings(trainerSettings, { episodes, numEnvs, seed });
  /** Episodes that wait for earlier ones. */
  const waiting = new Map<number, RecordedEpisode>();
  let [nextEpisode, nextReceived] = [0, 0];
  let [numRecorded, numTurns] = [0, 0];
  let received = Promise.resolve();
  let hasFailed = false;
  const receiveInOrder = async () => {
    for (let episode; (episode = waiting.get(nextReceived)) !== undefined; nextReceived++) {
      waiting.delete(nextReceived);
      await receive(episode);
    }
  };
  const recordWithEnv = async () => {
    const envs = await openEnvs(makeEnv, 1, settings);
    try {
      const [env] = envs;
      const runner = new EpisodeRunner(env, { settings });
      const newPolicy = policyFactory(env);
      while (nextEpisode < episodes && numTurns < turns) {
        if (hasFailed || signal?.aborted === true) break;
        const episode = nextEpisode++;
        const random = stream(seed, "demonstrations", episode);
        const recorded = await recordEpisode(runner, newPolicy(random), random.integers(0, 2 ** 31));
        numTurns += recorded.turns.length;
        waiting.set(episode, recorded);
        await (received = received.then(receiveInOrder));
        onEpisode(++numRecorded);
        // Signals arrive in the event loop, to which a fast policy would not return.
        await yieldToEventLoop();
      }
    } finally {
      await closeEnvs(envs, onWarning);
    }
  };
  const endOthers = (error: unknown) => {
    hasFailed = true;
    throw error;
  };
  const results = await Promise.allSettled(
    Array.from({ length: Math.min(numEnvs, episodes) }, async () => recordWithEnv().catch(endOthers)),
  );
  const failure = results.find((result) => result.status === "rejected");
  if (failure === undefined) return;
  // Those after the episode that failed.
  for (const [, episode] of [...waiting].sort(([a], [b]) => a - b)) await receive(episode);
  throw failure.reason;
}

async function recordEpisode(runner: EpisodeRunner, policy: EpisodePolicy, seed: number): Promise<RecordedEpisode> {
  const text = getTextInterface(runner.env);
  const turns: DemonstrationTurn[] = [];
  await runner.reset(seed);
  while (!runner.isDone) {
    const { observation, info } = runner;
    const observationText = text.formatObservation(observation, info);
    const { action, completion } = await policy(observation, info);
    turns.push({ observationText, completion, observation, info });
    await runner.step(action);
  }
  return { systemPrompt: text.systemPrompt, turns, return: runner.episodeReturn };
}

/**
 * The expert policy that the environment is registered with. @throws ENV_INVALID if there is none.
 */
export const expertPolicy: PolicyFactory = (env) => {
  const expert = env.spec?.expert?.(env);
  if (expert === undefined) {
    const ids = registry.all().flatMap(({ id, expert }) => (expert === undefined ? [] : [id]));
    throw new LlamaGymError(
      "ENV_INVALID",
      `There is no expert for ${env.toString()}. These have one: ${ids.join(", ")}. Register one, or give demonstrations as a JSONL file.`,
    );
  }
  const text = getTextInterface(env);
  return () => (observation, info) => {
    const action = expert(observation, info);
    return { action, completion: text.formatAction(action) };
  };
};

/** Samples from the choices that the environment lists, or from its action space. */
export const randomPolicy: PolicyFactory = (env) => (random) => {
  const text = getTextInterface(env);
  env.actionSpace.seed(random.integers(0, 2 ** 31));
  return (observation, info) => {
    const choices = getChoices(text, observation, info) ?? [];
    if (choices.length > 0) {
      const completion = random.choice(choices);
      return { action: text.parseAction(completion, observation, info), completion };
    }
    const action = env.actionSpace.sample();
    return { action, completion: text.formatAction(action) };
  };
};

/**
 * A language model, sampled as in training or in evaluation. A fallback action is recorded as its
 * text.
 */
export function agentPolicy(agent: TextAgent, mode: "train" | "eval" = "train"): PolicyFactory {
  return (env) => {
    const text = getTextInterface(env);
    return (random) => {
      const episode = agent.newEpisode(random, mode);
      return async (observation, info) => {
        episode.observe(observation, info);
        const { action, turn } = await episode.act();
        return { action, completion: turn.isValid ? turn.text : text.formatAction(action) };
      };
    };
  };
}

function getTextInterface(env: Env): TextInterface<unknown, unknown> {
  if (env.text !== undefined) return env.text;
  throw new LlamaGymError(
    "ENV_INVALID",
    `${env.toString()} has no text interface, so it cannot produce demonstrations.`,
  );
}
