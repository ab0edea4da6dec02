import type { Demonstration, DemonstrationTurn } from "../agent/replay/demonstrations.js";
import type { Env } from "../envs/env.js";
import { experts } from "../envs/experts/experts.js";
import type { Info } from "../envs/info.js";
import { DEFAULT_INFOS } from "../envs/text-world/text-world-env.js";
import type { MaybePromise } from "../envs/maybe-promise.js";
import { choicesFor, type TextForm } from "../envs/text-form.js";
import { LlamaGymError } from "../errors.js";
import { checkNumber } from "../generation/options.js";
import type { TextAgent } from "../agent/text-agent.js";
import { RandomStream } from "../tensor/random.js";

/** What a player does: the action, and the reply that means it. */
export interface PlayedAction {
  readonly action: unknown;
  readonly reply: string;
}

/** Who plays an episode. */
export type Player = (observation: unknown, info: Info) => MaybePromise<PlayedAction>;

/** Makes the player of each episode in an environment; it draws from the episode's own random stream. */
export type Players = (env: Env) => (random: RandomStream) => Player;

export interface DemonstrateOptions {
  readonly episodes: number;
  /** Decides the episodes' starts and what a player draws. Default 0. */
  readonly seed?: number;
  /** Episodes that are played at once. Default 1. */
  readonly numEnvs?: number;
  /** Called when an episode has ended. */
  readonly onEpisode?: (played: number) => void;
  readonly signal?: AbortSignal;
}

/** A demonstration with what its episode brought. */
export type PlayedEpisode = Demonstration & { readonly return: number };

/** Decides starts and draws; children of the seed. */
const DEMONSTRATION_STREAM = 6;

const TEXT_WORLD = "TextWorld-v0";
/** TextWorld's info that tells the commands from here to the quest's end. */
const POLICY_COMMANDS = "policyCommands";

/**
 * Plays whole episodes as demonstrations. The same seed gives the same demonstrations, however many are played at once.
 * Throws ENV_INVALID for an environment without a text form, and what environment and player throw.
 */
export async function demonstrate(
  makeEnv: () => MaybePromise<Env>,
  players: Players,
  { episodes, seed = 0, numEnvs = 1, onEpisode = () => {}, signal }: DemonstrateOptions,
): Promise<PlayedEpisode[]> {
  checkNumber("The number of episodes", episodes, { integer: true, min: 1, description: "" });
  const played: PlayedEpisode[] = [];
  let next = 0;
  let done = 0;
  const playSome = async () => {
    const env = await makeEnv();
    try {
      const newPlayer = players(env);
      while (next < episodes) {
        if (signal?.aborted === true) break;
        const episode = next++;
        const random = new RandomStream(seed, [DEMONSTRATION_STREAM, episode]);
        played[episode] = await playEpisode(env, newPlayer(random), random.integers(0, 2 ** 31));
        onEpisode(++done);
      }
    } finally {
      await env.close();
    }
  };
  await Promise.all(Array.from({ length: Math.min(numEnvs, episodes) }, playSome));
  return played.filter((episode) => episode !== undefined);
}

async function playEpisode(env: Env, player: Player, seed: number): Promise<PlayedEpisode> {
  const text = textOf(env);
  const turns: DemonstrationTurn[] = [];
  let total = 0;
  let { observation, info } = await env.reset({ seed });
  for (let isOver = false; !isOver;) {
    const shown = text.formatObservation(observation, info);
    const { action, reply } = await player(observation, info);
    turns.push({ shown, reply, observation, info });
    const result = await env.step(action);
    ({ observation, info } = result);
    total += result.reward;
    isOver = result.terminated || result.truncated;
  }
  return { systemPrompt: text.systemPrompt, turns, return: total };
}

/** The scripted expert of an environment. Throws ENV_INVALID where there is none. */
export const expertPlayers: Players = (env) => {
  const id = env.spec?.id ?? "";
  if (id === TEXT_WORLD) return policyCommandPlayer;
  if (!Object.hasOwn(experts, id)) {
    throw new LlamaGymError(
      "ENV_INVALID",
      `There is no expert for ${env.toString()}. There is one for ${[...Object.keys(experts), TEXT_WORLD].join(", ")}; give demonstrations as a JSONL file.`,
    );
  }
  const policy = experts[id](env);
  const text = textOf(env);
  return () => (observation, info) => {
    const action = policy(observation, info);
    return { action, reply: text.formatAction(action) };
  };
};

/** Options with which an expert plays an environment: TextWorld's reads the winning commands from the info. */
export function expertEnvOptions(
  id: string,
  options: Readonly<Record<string, unknown>>,
): Readonly<Record<string, unknown>> {
  if (id !== TEXT_WORLD) return options;
  const infos = Array.isArray(options.infos) ? (options.infos as readonly string[]) : DEFAULT_INFOS;
  return { ...options, infos: [...new Set([...infos, POLICY_COMMANDS])] };
}

const policyCommandPlayer = (): Player => (_observation, info) => {
  const commands = info[POLICY_COMMANDS];
  if (!Array.isArray(commands)) {
    throw new LlamaGymError(
      "ENV_INVALID",
      `The expert of ${TEXT_WORLD} reads ${POLICY_COMMANDS} from the info; ask for it by the environment's option infos.`,
    );
  }
  const [reply = "look"] = commands as readonly string[];
  return { action: reply, reply };
};

/** Draws among the replies that the environment lists, or from its action space. */
export const randomPlayers: Players = (env) => (random) => {
  const text = textOf(env);
  env.actionSpace.seed(random.integers(0, 2 ** 31));
  return (observation, info) => {
    const choices = choicesFor(text, observation, info) ?? [];
    if (choices.length > 0) {
      const reply = random.choice(choices);
      return { action: text.parseAction(reply, observation, info), reply };
    }
    const action = env.actionSpace.sample();
    return { action, reply: text.formatAction(action) };
  };
};

/** A language model; it is asked as in training, or greedily. An action in place of a reply that meant none is written out. */
export function agentPlayers(agent: TextAgent, mode: "train" | "eval" = "train"): Players {
  return (env) => {
    const text = textOf(env);
    return (random) => {
      const play = agent.playthrough(random, mode);
      return async (observation, info) => {
        play.observe(observation, info);
        const { action, turn } = await play.reply();
        return { action, reply: turn.isValid ? turn.text : text.formatAction(action) };
      };
    };
  };
}

function textOf(env: Env): TextForm<unknown, unknown> {
  if (env.text !== undefined) return env.text;
  throw new LlamaGymError("ENV_INVALID", `${env.toString()} has no text form, so it gives no demonstrations.`);
}
