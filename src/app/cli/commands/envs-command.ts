import { getChoices, make, registry, serveEnv, spaceToJson, type Env } from "../../../envs/index.js";
import { resolveEnvId, envOptions, openNamedEnv } from "../options/env-options.js";
import { print, formatTable } from "../display/output.js";
import { UsageError, type OptionTable, type OptionValues } from "../options/parse-args.js";
import { buildPositionalCommand } from "../options/build-positional-command.js";

/** More choices than this are told by their number. */
const MAX_LISTED_CHOICES = 20;

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

type Args = OptionValues<typeof options>;

export const envsCommand = buildPositionalCommand(
  "envs",
  "List the environments, describe one (envs ID), or serve one to OpenEnv clients (envs serve ID)",
  [
    { name: "ID", description: "an environment, or the word serve before one", required: false },
    { name: "SERVED", description: "the environment to serve", required: false },
  ],
  options,
  async (args, [first, second]) => {
    if (first === "serve") return runEnvServer(second, args);
    if (second !== undefined)
      throw new UsageError(`"${second}" is not expected here; two words are for: envs serve ID.`);
    if (args.port !== undefined || args.host !== undefined) {
      throw new UsageError("--port and --host are for serving: llamagym envs serve ID.");
    }
    if (first === undefined) listEnvs(args.json);
    else await describeEnv(first, args);
    return 0;
  },
);

function listEnvs(json: boolean): void {
  const envs = registry.all().map((spec) => {
    const env = make(spec);
    return {
      id: spec.id,
      summary: spec.summary ?? "",
      actionSpace: formatActionSpace(env),
      maxEpisodeSteps: spec.maxEpisodeSteps ?? null,
      random: spec.knownReturns?.random,
      best: spec.knownReturns?.best,
    };
  });
  if (json) return print(JSON.stringify({ environments: envs }));
  const rows = envs.map(({ id, summary, actionSpace, random, best }) => [
    id,
    summary,
    actionSpace,
    formatNumber(random),
    formatNumber(best),
  ]);
  print(formatTable([["ID", "TASK", "ACTIONS", "RANDOM", "BEST"], ...rows], [3, 4]));
  print("\nRANDOM and BEST are mean returns of random actions and the best known ones. llamagym envs ID tells more,");
  print("llamagym play ID plays one. python:ID, openenv:URL and http://HOST:PORT are environments elsewhere.");
}

async function describeEnv(name: string, args: Args): Promise<void> {
  const env = await openNamedEnv(name, args);
  try {
    const { observation, info } = await env.reset({ seed: 1 });
    const { text, spec } = env;
    const id = spec?.id ?? name;
    const { summary = "", knownReturns: { random, best } = {} } = spec ?? {};
    const choices = text === undefined ? undefined : getChoices(text, observation, info);
    const example = text?.formatObservation(observation, info);
    if (args.json) {
      const spaces = {
        observationSpace: spaceToJsonOrText(env.observationSpace),
        actionSpace: spaceToJsonOrText(env.actionSpace),
      };
      const facts = { id, summary, random, best, ...spaces, maxEpisodeSteps: spec?.maxEpisodeSteps ?? null };
      return print(JSON.stringify({ ...facts, systemPrompt: text?.systemPrompt, example, choices }));
    }
    const rows = [
      ["id", id],
      ["task", summary],
      ["actions", truncateText(env.actionSpace.toString())],
      ["observations", truncateText(env.observationSpace.toString())],
      ["step limit", String(spec?.maxEpisodeSteps ?? "none")],
      ["solved at", formatNumber(spec?.rewardThreshold)],
      ["random return", formatNumber(random)],
      ["best return", formatNumber(best)],
      ["renders", env.metadata.renderModes.join(", ") || "-"],
    ];
    print(formatTable(rows.filter(([, value]) => value !== "" && value !== "-")));
    if (text === undefined) return print("\nIt has no text form.");
    print(`\nPrompt:\n${text.systemPrompt}\n\nObservation (seed 1):\n${example}`);
    if (choices === undefined || choices.length === 0) return;
    print(`\nReplies: ${choices.length > MAX_LISTED_CHOICES ? `${choices.length} choices` : choices.join(", ")}`);
  } finally {
    await env.close();
  }
}

async function runEnvServer(name: string | undefined, args: Args): Promise<number> {
  if (name === undefined) throw new UsageError("ID is missing: llamagym envs serve ID says which environment.");
  const server = await serveEnv(() => openNamedEnv(name, args), { port: args.port, host: args.host });
  const { url } = server;
  const id = await resolveEnvId(name, args);
  if (args.json) print(JSON.stringify({ id, url, port: server.port }));
  else print(`${id} is served at ${url} (OpenEnv: WebSocket /ws, HTTP /reset, /step). Ctrl-C ends.`);
  await new Promise<void>((resolve) => {
    for (const signal of ["SIGINT", "SIGTERM"] as const) process.once(signal, () => resolve());
  });
  await server.close();
  return 0;
}

function formatActionSpace({ actionSpace }: Env): string {
  const text = actionSpace.toString();
  return text.startsWith("Text(") ? "text" : truncateText(text, 32);
}

function spaceToJsonOrText(space: Env["actionSpace"]): unknown {
  try {
    return spaceToJson(space);
  } catch {
    return space.toString();
  }
}

function truncateText(text: string, length = 100): string {
  const line = text.replace(/\s+/g, " ");
  return line.length > length ? `${line.slice(0, length - 3)}...` : line;
}

function formatNumber(value: number | undefined): string {
  return value === undefined ? "-" : String(value);
}
