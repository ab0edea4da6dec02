import { existsSync } from "node:fs";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { boolean, defineSettings, integer, number, text, type GivenSettings } from "../../../core/settings.js";
import { asEnv, TimeLimit, type Env, type GameEnv } from "../../../envs/index.js";
import { createAgentOpponent } from "../../../rl/agent/index.js";
import { requireGame, closeEnvs } from "../../../rl/rollout/index.js";
import { readTextEnv } from "../../runs/make-text-agent.js";
import { AgentEpisodePlayer } from "../interactive/agent-episode-player.js";
import { InteractiveEpisode } from "../interactive/interactive-episode.js";
import { agentOptions, describeAgentDefaults, openAgent } from "../options/agent-options.js";
import { defineCommand } from "../options/define-command.js";
import { envOptions, resolveRunEnv } from "../options/env-options.js";
import { generationSettings } from "../../../generation/index.js";
import { toOptionName } from "../options/option-names.js";
import { UsageError } from "../options/usage-error.js";
import type { Reporter } from "../reporter.js";

/** Step limit of an agent's episode in an environment without one. */
const DEFAULT_MAX_STEPS = 200;

const commandOptions = defineSettings(
  {
    seed: integer({ min: 0, description: "Seed; the same seed starts the same episode." }),
    text: boolean({ description: "Show the text that a language model reads instead of the rendered state." }),
    agent: boolean({ description: "Let a language model play." }),
    against: text({
      valueName: "run",
      description: "In a game, play against the agent of this run folder, or of an adapter.",
    }),
  },
  { group: "Play", common: true },
);

const agentOnlyOptions = {
  ...agentOptions,
  ...defineSettings(
    {
      episodes: integer({ min: 1, default: 1, description: "Number of episodes." }),
      temperature: number({
        ...generationSettings.temperature,
        defaultText: "as in training",
        description: "Sampling temperature of the completions; 0 is greedy.",
      }),
    },
    { group: "With --agent", common: true },
  ),
};

const options = { ...commandOptions, ...envOptions, ...agentOnlyOptions };

type Args = GivenSettings<typeof options>;

const HELP = "Type an action by name or number. /actions lists them, /reset starts over, /help, /quit.";

export const playCommand = defineCommand({
  name: "play",
  description:
    "Plays an environment at the keyboard, from lines on standard input, or with a language model (--agent).",
  examples: [
    { description: "Play yourself", args: "play frozen-lake" },
    { description: "Play tic-tac-toe against the agent of a run", args: "play tic-tac-toe --against runs/tic-tac-toe" },
    {
      description: "Watch the agent of a run",
      args: "play blackjack --agent --adapter runs/blackjack/adapter --episodes 5",
    },
  ],
  positionals: [
    {
      name: "ENV",
      description: "Environment: an id such as FrozenLake-v1, python:ID, openenv:URL or http://...",
      required: true,
    },
  ],
  options,
  showsCommonOptions: true,
  describeDefaults: (table, values) => describeAgentDefaults(table, values),
  run: async (args, reporter, [name]) => {
    checkAgentOptions(args);
    const runEnv = await resolveRunEnv(name, args);
    const env = await runEnv.open();
    try {
      const { against } = args;
      if (against === undefined) await play(env, runEnv.id, args, reporter);
      else await playAgainst(env, runEnv.id, against, args, reporter);
    } finally {
      await closeEnvs([env], reporter.warn);
    }
    return 0;
  },
});

async function play(env: Env, name: string, args: Args, reporter: Reporter): Promise<void> {
  if (args.agent === true) await playWithAgent(env, name, args, reporter);
  else await playAtKeyboard(env, args, reporter);
}

/**
 * Plays a game against the agent of a run, in the seat of the environment. @throws ENV_INVALID for
 * one player
 */
async function playAgainst(env: Env, name: string, against: string, args: Args, reporter: Reporter): Promise<void> {
  const game = requireGame(env);
  const saved = join(against, "adapter");
  const checkpoint = existsSync(saved) ? saved : against;
  const isAdapter = existsSync(join(checkpoint, "adapter_config.json"));
  const opponentArgs = isAdapter ? { adapter: checkpoint } : { model: checkpoint };
  const { agent } = await openAgent(opponentArgs, name, await readTextEnv(env, name), reporter);
  try {
    const { agentSeat } = env.unwrapped as GameEnv;
    await play(asEnv(game, createAgentOpponent(agent), agentSeat), name, args, reporter);
  } finally {
    await agent.model.close();
  }
}

/** @throws UsageError for an option of --agent without it. */
function checkAgentOptions(args: Args): void {
  const names = Object.keys(agentOnlyOptions) as (keyof typeof agentOnlyOptions)[];
  const option = names.find((name) => args[name] !== undefined);
  if (args.agent !== true && option !== undefined) throw new UsageError(`--${toOptionName(option)} requires --agent.`);
}

async function playAtKeyboard(env: Env, { seed, text = false }: Args, reporter: Reporter): Promise<void> {
  const print = (line: string) => reporter.print(line);
  const printRendering = (rendering: string) => reporter.printRendering(rendering);
  const episode = new InteractiveEpisode(env, { showText: text, print, printRendering });
  if (env.text !== undefined) print(`${env.text.systemPrompt}\n`);
  await episode.reset(seed);
  await readLines(episode, reporter);
}

async function playWithAgent(env: Env, name: string, args: Args, reporter: Reporter): Promise<void> {
  const hasLimit = (args.maxEpisodeSteps ?? env.spec?.maxEpisodeSteps) !== undefined;
  const limitedEnv = hasLimit ? env : new TimeLimit(env, { maxEpisodeSteps: DEFAULT_MAX_STEPS });
  const { episodes = 1, temperature, seed, text = false } = args;
  const isGreedy = temperature === 0;
  const { agent } = await openAgent(args, name, await readTextEnv(env, name), reporter);
  try {
    reporter.print(`${env.text?.systemPrompt}\n`);
    const player = new AgentEpisodePlayer(limitedEnv, agent, {
      episodes,
      mode: isGreedy ? "eval" : "train",
      seed,
      showText: text,
      print: (line) => reporter.print(line),
      printRendering: (rendering) => reporter.printRendering(rendering),
      info: reporter.info,
    });
    await player.run();
  } finally {
    await agent.model.close();
  }
}

async function readLines(episode: InteractiveEpisode, reporter: Reporter): Promise<void> {
  const print = (line: string) => reporter.print(line);
  const isTerminal = process.stdin.isTTY === true;
  const input = createInterface({ input: process.stdin, output: process.stderr, terminal: isTerminal });
  const promptUser = () => {
    if (isTerminal) input.prompt();
  };
  if (isTerminal) reporter.info(HELP);
  promptUser();
  for await (const line of input) {
    const command = line.trim();
    if (command === "/quit" || command === "/exit") break;
    if (command === "/help") print(HELP);
    else if (command === "/actions") print(episode.describeActions());
    else if (command === "/reset") await episode.reset();
    else if (command.startsWith("/")) print(`There is no command ${command}. ${HELP}`);
    else if (command !== "") await episode.handleLine(command);
    promptUser();
  }
  input.close();
}
