import { createInterface } from "node:readline";
import { envOptions, openEnv } from "./env-options.js";
import { print } from "./output.js";
import type { OptionTable } from "./options.js";
import { Play } from "./play-session.js";
import { positionalCommand } from "./positional-command.js";

const options = {
  ...envOptions,
  seed: { type: "number", integer: true, min: 0, description: "starts the same episode every time" },
  text: { type: "flag", description: "show what a language model reads, rather than a picture in letters" },
} as const satisfies OptionTable;

const HELP = "An action by its name or number. /actions lists them, /reset starts anew, /help, /quit.";

export const playCommand = positionalCommand(
  "play",
  "Play an environment at the keyboard, or by lines on standard input",
  [
    {
      name: "ENV",
      description: "an environment: an id such as FrozenLake-v1, python:ID, openenv:URL, http://...",
      required: true,
    },
  ],
  options,
  async (values, [name]) => {
    const env = await openEnv(name, values);
    try {
      const play = new Play(env, { showsText: values.text, print });
      if (env.text !== undefined) print(`${env.text.systemPrompt}\n`);
      await play.reset(values.seed);
      await readLines(play);
    } finally {
      await env.close();
    }
    return 0;
  },
);

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
