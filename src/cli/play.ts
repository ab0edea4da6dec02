import { createInterface } from "node:readline";
import { TimeLimit, type Env } from "../envs/index.js";
import { readable } from "../training/make-agent.js";
import { agentGroups, agentOptions, openAgent, type AgentValues } from "./agent-options.js";
import { AgentSession } from "./agent-session.js";
import { envId, envOptions, openEnv } from "./env-options.js";
import { samplingOptions } from "./generation-options.js";
import { print } from "./output.js";
import { UsageError, type OptionTable, type OptionValues } from "./options.js";
import { Play } from "./play-session.js";
import { positionalCommand } from "./positional-command.js";

/** Steps of a model's episode where no limit is known. */
const MOST_STEPS = 200;

const ownOptions = {
  seed: { type: "number", integer: true, min: 0, description: "starts the same episode every time" },
  text: { type: "flag", description: "show what a language model reads, rather than a picture in letters" },
  agent: { type: "flag", description: "let a language model play" },
} as const satisfies OptionTable;

/** What is for a model that plays. */
const playerOptions = {
  episodes: { type: "number", integer: true, min: 1, description: "how many the model plays; 1 by default" },
  temperature: {
    ...samplingOptions.temperature,
    description: "of the model's replies; as in training by default, 0 takes the most probable reply",
  },
  ...agentOptions,
} as const satisfies OptionTable;

const options = { ...ownOptions, ...envOptions, ...playerOptions };

type Values = AgentValues &
  OptionValues<typeof ownOptions> &
  OptionValues<typeof envOptions> & { readonly episodes?: number; readonly temperature?: number };

const HELP = "An action by its name or number. /actions lists them, /reset starts anew, /help, /quit.";

export const playCommand = positionalCommand(
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
  async (given, [name]) => {
    const values = given as unknown as Values;
    checkAgent(values);
    const env = await openEnv(name, values);
    try {
      if (values.agent) await playByModel(env, envId(name), values);
      else await playAtKeyboard(env, values);
    } finally {
      await env.close();
    }
    return 0;
  },
  {
    Play: Object.keys(ownOptions),
    Environment: Object.keys(envOptions),
    "With --agent": ["episodes", "temperature"],
    ...agentGroups,
  },
);

/** What is only for --agent is told where it is missing. */
function checkAgent(values: Values): void {
  const given = Object.keys(playerOptions).find((name) => values[name] !== undefined && values[name] !== false);
  if (!values.agent && given !== undefined) throw new UsageError(`--${given} is for a model that plays: add --agent.`);
}

async function playAtKeyboard(env: Env, { seed, text }: Values): Promise<void> {
  const play = new Play(env, { showsText: text, print });
  if (env.text !== undefined) print(`${env.text.systemPrompt}\n`);
  await play.reset(seed);
  await readLines(play);
}

async function playByModel(env: Env, name: string, values: Values): Promise<void> {
  const hasLimit = (values["max-steps"] ?? env.spec?.maxEpisodeSteps) !== undefined;
  const limited = hasLimit ? env : new TimeLimit(env, { maxEpisodeSteps: MOST_STEPS });
  const { episodes = 1, temperature, seed } = values;
  const isGreedy = temperature === 0;
  const more = isGreedy ? {} : { temperature };
  const { agent } = await openAgent(values, name, readable(env, name), more);
  try {
    print(`${env.text?.systemPrompt}\n`);
    const session = new AgentSession(limited, agent, {
      episodes,
      mode: isGreedy ? "eval" : "train",
      seed,
      showsText: values.text,
      print,
      tell: (line) => process.stderr.write(`${line}\n`),
    });
    await session.run();
  } finally {
    await agent.model.close();
  }
}

async function readLines(play: Play): Promise<void> {
  const isTerminal = process.stdin.isTTY === true;
  const input = createInterface({ input: process.stdin, output: process.stderr, terminal: isTerminal });
  const ask = () => {
    if (isTerminal) input.prompt();
  };
  if (isTerminal) process.stderr.write(`${HELP}\n`);
  ask();
  for await (const line of input) {
    const words = line.trim();
    if (words === "/quit" || words === "/exit") break;
    if (words === "/help") print(HELP);
    else if (words === "/actions") print(play.actions());
    else if (words === "/reset") await play.reset();
    else if (words.startsWith("/")) print(`There is no ${words}. ${HELP}`);
    else if (words !== "") await play.take(words);
    ask();
  }
  input.close();
}
