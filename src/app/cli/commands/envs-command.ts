import { EpisodeRunner } from "../../../rl/rollout/index.js";
import { boolean, integer, list, text, type GivenSettings } from "../../../core/settings.js";
import { Console } from "node:console";
import { once } from "node:events";
import { getChoices, make, registry, spaceToJson, type Env } from "../../../envs/index.js";
import { serveEnv, serveMcp } from "../../../envs/bridges/index.js";
import { findRecipes } from "../../runs/recipe.js";
import { envOptions, resolveRunEnv } from "../options/env-options.js";
import { formatCommandLine } from "../command-line.js";
import { formatTable } from "../display/format-table.js";
import { defineCommand } from "../options/define-command.js";
import { UsageError } from "../options/usage-error.js";
import type { Reporter } from "../reporter.js";

/** Longer lists of choices are only counted. */
const MAX_LISTED_CHOICES = 20;

const options = {
  ...envOptions,
  port: integer({ min: 0, max: 65535, default: 8000, description: "With serve: port to listen on." }),
  host: text({ valueName: "address", default: "this machine only", description: "With serve: address to listen on." }),
  allowedHosts: list({
    valueName: "name",
    description: "With serve: names under which clients reach the server, such as that of a container.",
  }),
  mcp: boolean({
    description: "With serve: one client of the Model Context Protocol, over standard input and output.",
  }),
  json: boolean({ description: "Print one JSON object." }),
};

type Args = GivenSettings<typeof options>;

export const envsCommand = defineCommand({
  name: "envs",
  description:
    "Lists the environments, describes one (envs ID), or serves one to OpenEnv and MCP clients (envs serve ID).",
  examples: [
    { description: "Show the prompt, actions and returns of an environment", args: "envs frozen-lake" },
    { description: "Serve an environment over HTTP and WebSocket", args: "envs serve blackjack --port 8000" },
    { description: "The command of an MCP server for other programs", args: "envs serve blackjack --mcp" },
  ],
  positionals: [
    { name: "ID", description: "Environment, or the word serve.", required: false },
    { name: "SERVED", description: "Environment to serve.", required: false },
  ],
  options,
  run: async (args, reporter, [first, second]) => {
    if (first === "serve") return runEnvServer(second, args, reporter);
    if (second !== undefined) throw new UsageError(`Unexpected argument "${second}". Serve with: envs serve ID.`);
    if ([args.port, args.host, args.allowedHosts, args.mcp].some((given) => given !== undefined && given !== false))
      throw new UsageError("--port, --host, --allowed-hosts and --mcp require serve: envs serve ID.");
    if (first === undefined) reporter.print(listEnvs(args.json === true));
    else reporter.print(await describeEnv(first, args));
    return 0;
  },
});

function listEnvs(json: boolean): string {
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
  if (json) return JSON.stringify({ environments: envs });
  const rows = envs.map(({ id, summary, actionSpace, random, best }) => [
    id,
    summary,
    actionSpace,
    formatNumber(random),
    formatNumber(best),
  ]);
  return [
    formatTable([["ID", "TASK", "ACTIONS", "RANDOM", "BEST"], ...rows], [3, 4]),
    "",
    "RANDOM, BEST: mean returns of random actions and of the best known policy.",
    `Describe one: ${formatCommandLine("envs ID")}. Play one: ${formatCommandLine("play ID")}.`,
    "Environments outside this package: python:ID, pettingzoo:MODULE, openenv:URL, mcp:COMMAND, mcp:URL and http://HOST:PORT.",
  ].join("\n");
}

async function describeEnv(name: string, args: Args): Promise<string> {
  const env = await (await resolveRunEnv(name, args)).open();
  try {
    const runner = new EpisodeRunner(env);
    await runner.reset(1);
    const { observation, info } = runner;
    const { text, spec } = env;
    const id = spec?.id ?? name;
    const { summary = "", knownReturns: { random, best } = {} } = spec ?? {};
    const choices = text === undefined ? undefined : getChoices(text, observation, info);
    const example = text?.formatObservation(observation, info);
    if (args.json === true) {
      const spaces = {
        observationSpace: spaceToJsonOrText(env.observationSpace),
        actionSpace: spaceToJsonOrText(env.actionSpace),
      };
      const facts = { id, summary, random, best, ...spaces, maxEpisodeSteps: spec?.maxEpisodeSteps ?? null };
      return JSON.stringify({ ...facts, systemPrompt: text?.systemPrompt, example, choices });
    }
    const recipes = await findRecipes(id);
    const rows = [
      ["id", id],
      ["task", summary],
      ["actions", truncateText(env.actionSpace.toString())],
      ["observations", truncateText(env.observationSpace.toString())],
      ["step limit", String(spec?.maxEpisodeSteps ?? "none")],
      ["solved at", formatNumber(spec?.rewardThreshold)],
      ["random return", formatNumber(random)],
      ["best return", formatNumber(best)],
      ["expert", spec?.expert === undefined ? "" : "for llamagym demos and --sft-warm-start"],
      ["recipes", recipes.map((recipe) => recipe.name).join(", ")],
      ["renders", env.metadata.renderModes.join(", ") || "-"],
    ];
    const table = formatTable(rows.filter(([, value]) => value !== "" && value !== "-"));
    if (text === undefined) return `${table}\n\nIt has no text interface.`;
    const description = `${table}\n\nPrompt:\n${text.systemPrompt}\n\nObservation (seed 1):\n${example}`;
    if (choices === undefined || choices.length === 0) return description;
    const list = choices.length > MAX_LISTED_CHOICES ? `${choices.length} choices` : choices.join(", ");
    return `${description}\n\nActions: ${list}`;
  } finally {
    await env.close();
  }
}

async function runEnvServer(name: string | undefined, args: Args, reporter: Reporter): Promise<number> {
  if (name === undefined) throw new UsageError("ID is missing: envs serve ID.");
  if (args.mcp === true) return runMcpServer(name, args, reporter);
  const { port: requestedPort, host, allowedHosts } = args;
  const env = await resolveRunEnv(name, args);
  const server = await serveEnv(async () => env.open(), { port: requestedPort, host, allowedHosts });
  const { url, port } = server;
  const { id } = env;
  const { signal } = reporter.handleInterrupts();
  reporter.print(
    args.json === true
      ? JSON.stringify({ id, url, port })
      : `Serving ${id} at ${url} (OpenEnv: WebSocket /ws, HTTP /reset and /step; MCP: /mcp). Press Ctrl-C to stop.`,
  );
  await once(signal, "abort");
  await server.close();
  return 0;
}

async function runMcpServer(name: string, args: Args, reporter: Reporter): Promise<number> {
  if (args.port !== undefined || args.host !== undefined || args.allowedHosts !== undefined)
    throw new UsageError("--mcp is over standard input and output; without it, --port serves /mcp over HTTP.");
  // Standard output is for messages of the protocol, so what an environment prints goes to standard
  // error.
  globalThis.console = new Console(process.stderr, process.stderr);
  const env = await resolveRunEnv(name, args);
  await serveMcp(await env.open(), { signal: reporter.handleInterrupts().signal });
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
