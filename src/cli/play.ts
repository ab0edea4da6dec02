import { createInterface } from "node:readline";
import { TimeLimit, type Env } from "../envs/index.js";
import { AgentSession, checkReadable } from "./agent-session.js";
import { envOptions, openEnv } from "./env-options.js";
import { modelOption, openingOptions, samplingOptions } from "./generation-options.js";
import { openModel } from "./open-model.js";
import { print } from "./output.js";
import { UsageError, type OptionTable, type OptionValues } from "./options.js";
import { Play } from "./play-session.js";
import { positionalCommand } from "./positional-command.js";

const DEFAULT_NEW_TOKENS = 64;
/** Steps of a model's episode where no limit is known. */
const MOST_STEPS = 200;

const agentOptions = {
  model: modelOption,
  ...openingOptions,
  free: {
    type: "flag",
    description: "with --agent: let the model reply as it likes, also where the environment lists what it may reply",
  },
  temperature: { ...samplingOptions.temperature, description: "of the model's replies; 1 by default, 0 is greedy" },
  "max-new-tokens": {
    ...samplingOptions["max-new-tokens"],
    description: `tokens that a free reply has at most; ${DEFAULT_NEW_TOKENS} by default`,
  },
  episodes: { type: "number", integer: true, min: 1, description: "how many the model plays; 1 by default" },
} as const satisfies OptionTable;

const options = {
  ...envOptions,
  seed: { type: "number", integer: true, min: 0, description: "starts the same episode every time" },
  text: { type: "flag", description: "show what a language model reads, rather than a picture in letters" },
  agent: { type: "flag", description: "let a language model play: the one of --model" },
  ...agentOptions,
} as const satisfies OptionTable;

type Values = OptionValues<typeof options>;

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
  async (values, [name]) => {
    checkAgent(values);
    const env = await openEnv(name, values);
    try {
      if (values.model === undefined) await playAtKeyboard(env, values);
      else await playByModel(env, name, values.model, values);
    } finally {
      await env.close();
    }
    return 0;
  },
);

/** What is only for --agent is told where it is missing. */
function checkAgent(values: Values): void {
  if (values.agent && values.model === undefined)
    throw new UsageError(`--model is missing: ${modelOption.description}.`);
  const names = Object.keys(agentOptions) as (keyof typeof agentOptions)[];
  const given = names.find((name) => values[name] !== undefined && values[name] !== false);
  if (!values.agent && given !== undefined) throw new UsageError(`--${given} is for a model that plays: add --agent.`);
}

async function playAtKeyboard(env: Env, { seed, text }: Values): Promise<void> {
  const play = new Play(env, { showsText: text, print });
  if (env.text !== undefined) print(`${env.text.systemPrompt}\n`);
  await play.reset(seed);
  await readLines(play);
}

async function playByModel(env: Env, name: string, path: string, values: Values): Promise<void> {
  checkReadable(env, name);
  const hasLimit = (values["max-steps"] ?? env.spec?.maxEpisodeSteps) !== undefined;
  const limited = hasLimit ? env : new TimeLimit(env, { maxEpisodeSteps: MOST_STEPS });
  const model = await openModel(path, values);
  try {
    print(`${env.text?.systemPrompt}\n`);
    const { episodes = 1, temperature = 1, "max-new-tokens": maxNewTokens = DEFAULT_NEW_TOKENS, seed } = values;
    const session = new AgentSession(limited, model, {
      episodes,
      temperature,
      maxNewTokens,
      seed,
      isFree: values.free,
      showsText: values.text,
      print,
      tell: (line) => process.stderr.write(`${line}\n`),
    });
    await session.run();
  } finally {
    await model.close();
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
