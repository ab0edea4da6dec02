import { choicesFor, make, registry, serveEnv, spaceToJson, type Env } from "../envs/index.js";
import { envId, envOptions, openEnv } from "./env-options.js";
import { summaryOf } from "./env-summaries.js";
import { print, table } from "./output.js";
import { UsageError, type OptionTable, type OptionValues } from "./options.js";
import { positionalCommand } from "./positional-command.js";

/** More choices than this are told by their number. */
const MOST_CHOICES = 20;

const options = {
  ...envOptions,
  port: {
    type: "number",
    integer: true,
    min: 0,
    max: 65535,
    description: "with serve: where to listen; 8000 by default",
  },
  host: {
    type: "text",
    hint: "address",
    description: "with serve: the address to listen at; this machine only by default",
  },
  json: { type: "flag", description: "print one JSON object" },
} as const satisfies OptionTable;

type Values = OptionValues<typeof options>;

export const envsCommand = positionalCommand(
  "envs",
  "List the environments, describe one (envs ID), or serve one to OpenEnv clients (envs serve ID)",
  [
    { name: "ID", description: "an environment, or the word serve before one", required: false },
    { name: "SERVED", description: "the environment to serve", required: false },
  ],
  options,
  async (values, [first, second]) => {
    if (first === "serve") return serve(second, values);
    if (second !== undefined)
      throw new UsageError(`"${second}" is not expected here; two words are for: envs serve ID.`);
    if (values.port !== undefined || values.host !== undefined) {
      throw new UsageError("--port and --host are for serving: llamagym envs serve ID.");
    }
    if (first === undefined) list(values.json);
    else await describe(first, values);
    return 0;
  },
);

function list(json: boolean): void {
  const envs = registry.all().map((spec) => {
    const env = make(spec);
    const { what, random, best } = summaryOf(spec.id);
    return {
      id: spec.id,
      what,
      actionSpace: spaceName(env),
      maxEpisodeSteps: spec.maxEpisodeSteps ?? null,
      random,
      best,
    };
  });
  if (json) return print(JSON.stringify({ environments: envs }));
  const rows = envs.map(({ id, what, actionSpace, random, best }) => [
    id,
    what,
    actionSpace,
    number(random),
    number(best),
  ]);
  print(table([["ID", "TASK", "ACTIONS", "RANDOM", "BEST"], ...rows], [3, 4]));
  print("\nRANDOM and BEST are mean returns of random actions and the best known ones. llamagym envs ID tells more,");
  print("llamagym play ID plays one. python:ID, openenv:URL and http://HOST:PORT are environments elsewhere.");
}

async function describe(name: string, values: Values): Promise<void> {
  const env = await openEnv(name, values);
  try {
    const { observation, info } = await env.reset({ seed: 1 });
    const { text, spec } = env;
    const id = spec?.id ?? name;
    const { what, random, best } = summaryOf(id);
    const choices = text === undefined ? undefined : choicesFor(text, observation, info);
    const example = text?.formatObservation(observation, info);
    if (values.json) {
      const spaces = {
        observationSpace: describeSpace(env.observationSpace),
        actionSpace: describeSpace(env.actionSpace),
      };
      const facts = { id, what, random, best, ...spaces, maxEpisodeSteps: spec?.maxEpisodeSteps ?? null };
      return print(JSON.stringify({ ...facts, systemPrompt: text?.systemPrompt, example, choices }));
    }
    const rows = [
      ["id", id],
      ["task", what],
      ["actions", shortened(env.actionSpace.toString())],
      ["observations", shortened(env.observationSpace.toString())],
      ["step limit", String(spec?.maxEpisodeSteps ?? "none")],
      ["solved at", number(spec?.rewardThreshold)],
      ["random return", number(random)],
      ["best return", number(best)],
      ["renders", env.metadata.renderModes.join(", ") || "-"],
    ];
    print(table(rows.filter(([, value]) => value !== "" && value !== "-")));
    if (text === undefined) return print("\nIt has no text form.");
    print(`\nPrompt:\n${text.systemPrompt}\n\nObservation (seed 1):\n${example}`);
    if (choices === undefined || choices.length === 0) return;
    print(`\nReplies: ${choices.length > MOST_CHOICES ? `${choices.length} choices` : choices.join(", ")}`);
  } finally {
    await env.close();
  }
}

async function serve(name: string | undefined, values: Values): Promise<number> {
  if (name === undefined) throw new UsageError("ID is missing: llamagym envs serve ID says which environment.");
  const server = await serveEnv(() => openEnv(name, values), { port: values.port, host: values.host });
  const { url } = server;
  if (values.json) print(JSON.stringify({ id: envId(name), url, port: server.port }));
  else print(`${envId(name)} is served at ${url} (OpenEnv: WebSocket /ws, HTTP /reset, /step). Ctrl-C ends.`);
  await new Promise<void>((resolve) => {
    for (const signal of ["SIGINT", "SIGTERM"] as const) process.once(signal, () => resolve());
  });
  await server.close();
  return 0;
}

function spaceName({ actionSpace }: Env): string {
  const text = actionSpace.toString();
  return text.startsWith("Text(") ? "text" : shortened(text, 32);
}

function describeSpace(space: Env["actionSpace"]): unknown {
  try {
    return spaceToJson(space);
  } catch {
    return space.toString();
  }
}

function shortened(text: string, length = 100): string {
  const line = text.replace(/\s+/g, " ");
  return line.length > length ? `${line.slice(0, length - 3)}...` : line;
}

function number(value: number | undefined): string {
  return value === undefined ? "-" : String(value);
}
