import { basename, resolve } from "node:path";
import { invalidArgument } from "../../../core/errors.js";
import { boolean, defineSettings, integer, list, text, type GivenSettings } from "../../../core/settings.js";
import { PeftModel, type LanguageModel } from "../../../generation/index.js";
import { importModule } from "../../runs/import-module.js";
import type { RunningServer } from "../../server/http-server.js";
import type { TinkerServerOptions } from "../../tinker/start-tinker-server.js";
import type { OutputFunctions } from "../../server/score-engine.js";
import { withLocalAdapter } from "../local-adapter.js";
import { openModel } from "../open-model.js";
import { defineCommand } from "../options/define-command.js";
import { generateOptions, modelOptions } from "../options/generation-options.js";
import { readApiKey, serverOptions } from "../../server/server-options.js";
import { UsageError } from "../options/usage-error.js";
import type { Reporter } from "../reporter.js";

const serveOptions = {
  model: generateOptions.model,
  ...modelOptions,
  ...defineSettings(
    {
      modelName: text({ valueName: "name", description: "Name of the model in requests. Default: its id or folder." }),
      adapter: list({
        valueName: "name=path",
        description: "LoRA adapter of the model, served under its own name. May be repeated.",
      }),
    },
    { group: "Model" },
  ),
  ...defineSettings(
    {
      outputs: text({
        valueName: "file",
        description: "JavaScript or TypeScript module whose exported functions are the custom outputs of /v1/score.",
      }),
    },
    { group: "Model" },
  ),
  ...defineSettings(
    {
      tinker: boolean({
        default: false,
        description: "Also serves the Tinker API: clients train adapters of the model and sample from them.",
      }),
      tinkerFolder: text({
        default: "runs/tinker",
        valueName: "folder",
        description: "Folder of the checkpoints that clients of the Tinker API save.",
      }),
      sessionTimeout: integer({
        default: 300,
        min: 10,
        valueName: "seconds",
        description:
          "Time without a sign of life after which a client of the Tinker API is gone and its adapters are freed.",
      }),
    },
    { group: "Tinker API" },
  ),
  ...serverOptions,
  ...defineSettings(
    {
      timeout: integer({ default: 600, min: 1, valueName: "seconds", description: "Maximum time of a request." }),
    },
    { group: "Server" },
  ),
};

export const serveCommand = defineCommand({
  name: "serve",
  description: "Serves a model over the HTTP APIs of OpenAI and Anthropic.",
  examples: [
    { description: "Serve a model on this machine", args: "serve -m HuggingFaceTB/SmolLM2-135M-Instruct" },
    { description: "Serve what a run has trained", args: "serve -m embedded --adapter blackjack=runs/first/adapter" },
    { description: "Train with the Tinker SDK on this machine", args: "serve --tinker -m HuggingFaceTB/SmolLM2-135M" },
  ],
  options: serveOptions,
  run: serve,
});

async function serve(args: GivenSettings<typeof serveOptions>, reporter: Reporter): Promise<number> {
  const adapters = (args.adapter ?? []).map(parseAdapter);
  const { signal } = reporter.handleInterrupts("Stopping after the requests that run; Ctrl-C again stops at once.");
  const base = await openModel(args.model, { ...args, adapter: undefined }, reporter);
  try {
    const { ModelChatEngine } = await import("../../server/model-chat-engine.js");
    const { startHttpServer } = await import("../../server/http-server.js");
    const { serveModels } = await import("../../server/serve-models.js");
    const name = args.modelName ?? (/^[\w.-]+\/[\w.-]+$/.test(args.model) ? args.model : basename(args.model));
    const engines = [new ModelChatEngine(base, name)];
    for (const adapter of adapters)
      await withLocalAdapter(adapter.path, reporter, async ({ folder }) => {
        engines.push(new ModelChatEngine(await PeftModel.fromPretrained(base, folder), adapter.name));
      });
    const { host, port, apiKey = readApiKey(), maxRequests, timeout } = args;
    const outputs = args.outputs === undefined ? {} : await loadOutputs(args.outputs);
    const onError = (error: unknown) => reporter.warn(String(error));
    const addRoutes: Parameters<typeof startHttpServer>[1] = (app, metrics) =>
      serveModels(app, engines, { metrics, onError, outputs, timeoutMs: timeout && timeout * 1000 });
    const address = { host, port, apiKey, maxRequests };
    const server = await (args.tinker === true
      ? serveTinker(base, name, { ...address, addRoutes, onError }, args)
      : startHttpServer(address, addRoutes));
    reporter.print(`Serving ${engines.map(({ modelName }) => modelName).join(", ")} at ${server.url}/v1`);
    if (args.tinker === true)
      reporter.print(
        `Tinker API at ${server.url}: set TINKER_BASE_URL=${server.url} and TINKER_API_KEY=${apiKey === undefined ? "tml-local" : "to the key"}`,
      );
    await new Promise<void>((resolve) => signal.addEventListener("abort", () => resolve()));
    await server.close();
    return 0;
  } finally {
    await base.close();
  }
}

/** Starts a server with the Tinker API and the routes of `options`. */
async function serveTinker(
  base: LanguageModel,
  modelName: string,
  options: Pick<TinkerServerOptions, "host" | "port" | "apiKey" | "maxRequests" | "addRoutes" | "onError">,
  { model, tinkerFolder, sessionTimeout }: GivenSettings<typeof serveOptions>,
): Promise<RunningServer> {
  const { startTinkerServer } = await import("../../tinker/start-tinker-server.js");
  return startTinkerServer(base, {
    ...options,
    modelName,
    // Programs that take the tokenizer from a folder name the model by its path.
    aliases: [model, resolve(model), base.name],
    folder: tinkerFolder ?? serveOptions.tinkerFolder.default,
    sessionTimeoutMs: 1000 * (sessionTimeout ?? serveOptions.sessionTimeout.default),
  });
}

/** Loads custom outputs. @throws INVALID_ARGUMENT for a module that exports no functions. */
async function loadOutputs(file: string): Promise<OutputFunctions> {
  const exports = await importModule(file, "The module of outputs");
  const functions = Object.entries(exports).filter(([, value]) => typeof value === "function");
  if (functions.length > 0) return Object.fromEntries(functions) as OutputFunctions;
  throw invalidArgument(`${file} must export at least one function of a model's nodes, but exports none.`);
}

function parseAdapter(argument: string): { name: string; path: string } {
  const split = argument.indexOf("=");
  if (split > 0 && split < argument.length - 1)
    return { name: argument.slice(0, split), path: argument.slice(split + 1) };
  throw new UsageError(`--adapter must be name=path, got "${argument}".`);
}
