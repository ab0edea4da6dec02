import { LlamaGymError } from "../../core/errors.js";
import { RandomStream } from "../../core/random/random-stream.js";
import { randomAction, SEED_CAUSE, type Env } from "../../envs/index.js";
import { EpisodeRunner } from "../../rl/rollout/index.js";
import { computeMeanAndError } from "../../rl/train/index.js";
import { readTextEnv } from "./make-text-agent.js";

/** What random play shows of an environment. */
export interface ProbeResult {
  readonly meanReturn: number;
  readonly standardError: number;
  readonly maxReturn: number;
  /** Whether all observations had the same text. */
  readonly hasConstantObservations: boolean;
}

const MAX_EPISODES = 200;
/** Steps without an end after which an episode counts as endless. */
const MAX_STEPS = 20_000;
/** Pairs of episodes that are compared. */
const COMPARED_EPISODES = 8;
/** Seconds after which play ends. */
const MAX_SECONDS = 10;

/** An episode as the agent sees it. */
interface ProbedEpisode {
  /** The text of each step with its reward and whether the episode ended. */
  readonly events: readonly string[];
  readonly observations: readonly string[];
  readonly actions: readonly string[];
  readonly return: number;
  readonly isEndless: boolean;
}

/**
 * Plays an environment at random and looks for what keeps any agent from learning.
 * @throws ENV_INVALID for episodes that never end, seeds that are ignored, and listed actions that
 * change nothing; ENV_FAILED.
 */
export async function probeEnv(
  env: Env,
  seed: number,
  { name = env.toString(), maxSeconds = MAX_SECONDS }: { readonly name?: string; readonly maxSeconds?: number } = {},
): Promise<ProbeResult> {
  const { text } = await readTextEnv(env, name);
  const runner = new EpisodeRunner(env);
  const draw = randomAction(env);
  const started = performance.now();
  const isLate = () => performance.now() - started > 1000 * maxSeconds;
  const play = async (episodeSeed: number, actionSeed: number): Promise<ProbedEpisode> => {
    const random = new RandomStream([actionSeed, 1]);
    await runner.reset(episodeSeed);
    const [events, observations, actions]: string[][] = [[], [], []];
    observations.push(text.formatObservation(runner.observation, runner.info));
    while (!runner.isDone && runner.steps < MAX_STEPS && !isLate()) {
      const action = draw(runner.observation, random, runner.info);
      actions.push(text.formatAction(action));
      const { reward, terminated, truncated } = await runner.step(action);
      const next = terminated ? "" : text.formatObservation(runner.observation, runner.info);
      if (!terminated) observations.push(next);
      events.push(JSON.stringify([next, reward, terminated, truncated]));
    }
    const isEndless = !runner.isDone && runner.steps >= MAX_STEPS;
    return { events, observations, actions, return: runner.episodeReturn, isEndless };
  };
  const episodes: ProbedEpisode[] = [];
  for (let i = 0; i < MAX_EPISODES && !isLate(); i++) {
    const episode = await play(seed + i, i);
    // By chance, a long episode may be possible; two in a row are not.
    if (episode.isEndless && (episodes.at(-1)?.isEndless ?? false))
      throw broken(
        name,
        `two episodes of random play have not ended after ${MAX_STEPS} steps. Return \`terminated\`, or register it with maxEpisodeSteps`,
      );
    episodes.push(episode);
  }
  const compared = episodes.slice(0, COMPARED_EPISODES);
  if (env.spec?.nondeterministic !== true) await checkSeeds(name, compared, async (i) => play(seed + i, i));
  const listsActions = text.choices !== undefined || "n" in env.actionSpace;
  if (listsActions) await checkActions(name, compared, async (i) => play(seed + i, MAX_EPISODES + i));
  const returns = episodes.map((episode) => episode.return);
  return {
    ...computeMeanAndError(returns),
    maxReturn: Math.max(...returns),
    hasConstantObservations: new Set(episodes.flatMap(({ observations }) => observations)).size === 1,
  };
}

/** @throws ENV_INVALID if episodes with the same seed and actions differ. */
async function checkSeeds(
  name: string,
  episodes: readonly ProbedEpisode[],
  replay: (index: number) => Promise<ProbedEpisode>,
): Promise<void> {
  for (const [i, episode] of episodes.entries()) {
    const again = await replay(i);
    const length = Math.min(again.events.length, episode.events.length);
    const isSame =
      again.observations[0] === episode.observations[0] &&
      again.events.slice(0, length).join() === episode.events.slice(0, length).join();
    if (!isSame) throw broken(name, `two episodes with the same seed and actions differ: it ${SEED_CAUSE}`);
  }
}

/** @throws ENV_INVALID if other actions never change anything. */
async function checkActions(
  name: string,
  episodes: readonly ProbedEpisode[],
  playOther: (index: number) => Promise<ProbedEpisode>,
): Promise<void> {
  let differing = 0;
  for (const [i, episode] of episodes.entries()) {
    const other = await playOther(i);
    if (other.actions.join() === episode.actions.join()) continue;
    differing++;
    if (other.events.join() !== episode.events.join()) return;
  }
  if (differing > 0)
    throw broken(
      name,
      "other actions give the same observations and rewards in every episode: `step` does not read its action",
    );
}

const broken = (name: string, problem: string) =>
  new LlamaGymError("ENV_INVALID", `${name} cannot be learned: ${problem}.`);
