import { createInterface } from "node:readline";
import { TimeLimit, type Env } from "../../../envs/index.js";
import { asTextEnv } from "../../runs/make-text-agent.js";
import { agentOptionGroups, agentOptions, openAgent, type AgentArgs } from "../options/agent-options.js";
import { AgentEpisodePlayer } from "../interactive/agent-episode-player.js";
import { resolveEnvId, envOptions, openNamedEnv } from "../options/env-options.js";
import { samplingOptions } from "../options/generation-options.js";
import { print } from "../display/output.js";
import { UsageError, type OptionTable, type OptionValues } from "../options/parse-args.js";
import { InteractiveEpisode } from "../interactive/interactive-episode.js";
import { buildPositionalCommand } from "../options/build-positional-command.js";

/** Steps of a model's episode where no limit is known. */
const DEFAULT_MAX_STEPS = 200;

const commandOptions = {
  seed: { type: "number", integer: true, min: 0, description: "starts the same episode every time" },
  text: { type: "flag", description: "show what a language model reads, rather than a picture in letters" },
  agent: { type: "flag", description: "let a language model play" },
} as const satisfies OptionTable;

/** What is for a model that plays. */
const agentOnlyOptions = {
  episodes: { type: "number", integer: true, min: 1, description: "how many the model plays; 1 by default" },
  temperature: {
    ...samplingOptions.temperature,
    description: "of the model's replies; as in training by default, 0 takes the most probable reply",
  },
  ...agentOptions,
} as const satisfies OptionTable;

const options = { ...commandOptions, ...envOptions, ...agentOnlyOptions };

type Args = AgentArgs &
  OptionValues<typeof commandOptions> &
  OptionValues<typeof envOptions> & { readonly episodes?: number; readonly temperature?: number };

const HELP = "An action by its name or number. /actions lists them, /reset starts anew, /help, /quit.";

export const playCommand = buildPositionalCommand(
  "play",
  "Play an environment at the keyboard, by lines on standard input, or by a language model (--agent)",
  [
    {
      name: "ENV",
      description: "an environment: an id such as FrozenLake-v1, python:ID, openenv:URL, http://...",
      required: true,
    },
  ],
  options,
  async (parsed, [name]) => {
    const args = parsed as unknown as Args;
    checkAgentOptions(args);
    const env = await openNamedEnv(name, args);
    try {
      if (args.agent) await playWithAgent(env, await resolveEnvId(name, args), args);
      else await playAtKeyboard(env, args);
    } finally {
      await env.close();
    }
    return 0;
  },
  {
    Play: Object.keys(commandOptions),
    Environment: Object.keys(envOptions),
    "With --agent": ["episodes", "temperature"],
    ...agentOptionGroups,
  },
);

/** What is only for --agent is told where it is missing. */
function checkAgentOptions(args: Args): void {
  const option = Object.keys(agentOnlyOptions).find((name) => args[name] !== undefined && args[name] !== false);
  if (!args.agent && option !== undefined) throw new UsageError(`--${option} is for a model that plays: add --agent.`);
}

async function playAtKeyboard(env: Env, { seed, text }: Args): Promise<void> {
  const episode = new InteractiveEpisode(env, { showText: text, print });
  if (env.text !== undefined) print(`${env.text.systemPrompt}\n`);
  await episode.reset(seed);
  await readLines(episode);
}

async function playWithAgent(env: Env, name: string, args: Args): Promise<void> {
  const hasLimit = (args["max-steps"] ?? env.spec?.maxEpisodeSteps) !== undefined;
  const limitedEnv = hasLimit ? env : new TimeLimit(env, { maxEpisodeSteps: DEFAULT_MAX_STEPS });
  const { episodes = 1, temperature, seed } = args;
  const isGreedy = temperature === 0;
  const overrides = isGreedy ? {} : { temperature };
  const { agent } = await openAgent(args, name, asTextEnv(env, name), overrides);
  try {
    print(`${env.text?.systemPrompt}\n`);
    const player = new AgentEpisodePlayer(limitedEnv, agent, {
      episodes,
      mode: isGreedy ? "eval" : "train",
      seed,
      showText: args.text,
      print,
      info: (line) => process.stderr.write(`${line}\n`),
    });
    await player.run();
  } finally {
    await agent.model.close();
  }
}

async function readLines(episode: InteractiveEpisode): Promise<void> {
  const isTerminal = process.stdin.isTTY === true;
  const input = createInterface({ input: process.stdin, output: process.stderr, terminal: isTerminal });
  const promptUser = () => {
    if (isTerminal) input.prompt();
  };
  if (isTerminal) process.stderr.write(`${HELP}\n`);
  promptUser();
  for await (const line of input) {
    const command = line.trim();
    if (command === "/quit" || command === "/exit") break;
    if (command === "/help") print(HELP);
    else if (command === "/actions") print(episode.describeActions());
    else if (command === "/reset") await episode.reset();
    else if (command.startsWith("/")) print(`There is no ${command}. ${HELP}`);
    else if (command !== "") await episode.handleLine(command);
    promptUser();
  }
  input.close();
}
