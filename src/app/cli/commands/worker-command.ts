import { hostname } from "node:os";
import { defineSettings, text } from "../../../core/settings.js";
import { loadEnvModule, resolveReference } from "../../../envs/bridges/index.js";
import { modelSettings } from "../../../models/index.js";
import { openWorkerQueue, requireWorkers } from "../../distributed/open-transport.js";
import { defineCommand } from "../options/define-command.js";
import { resolveEnvId } from "../options/env-options.js";
import { workersOptions } from "../options/workers-options.js";
import { UsageError } from "../options/usage-error.js";

export const workerCommand = defineCommand({
  name: "worker",
  description:
    "Collects rollouts for runs of `train --redis` or `train --workers-folder` on other machines, until Ctrl-C or SIGTERM, after which it completes its jobs.",
  examples: [
    { description: "Work for all runs of a Redis server", args: "worker --redis redis://HOST:6379" },
    { description: "With a limit on processor cores", args: "worker --redis redis://HOST:6379 --threads 4" },
    {
      description: "For runs with an environment of your own",
      args: "worker --redis redis://HOST:6379 --env ./my-env.js",
    },
  ],
  options: defineSettings({
    ...workersOptions,
    name: text({ valueName: "name", description: "Name in lists and messages. Default: host and process id." }),
    threads: modelSettings.threads,
    device: { ...modelSettings.device, default: undefined },
    model: text({
      valueName: "path",
      description: "Model of this machine for runs whose model is not from the hub. It must be the same one.",
    }),
    env: text({ valueName: "name", description: "Environment outside the package that runs may name." }),
    envModule: text({
      valueName: "file",
      description: "JavaScript or TypeScript file or package to import, which registers environments.",
    }),
  }),
  run: async (args, reporter) => {
    const { redis, workersFolder, threads, device, model, env, envModule } = args;
    const { name = `${hostname()}-${process.pid}` } = args;
    if (!/^[\w.-]{1,100}$/.test(name))
      throw new UsageError("--name must have at most 100 letters, digits, dots or dashes.");
    const address = requireWorkers({ redis, workersFolder });
    if (envModule !== undefined) await loadEnvModule(resolveReference(envModule));
    const envId = env === undefined ? undefined : await resolveEnvId(env, { envModule });
    const { signal } = reporter.handleInterrupts(
      "Completing the jobs that are running. Press Ctrl-C again to quit now.",
    );
    const { runWorker } = await import("../../distributed/rollout-worker.js");
    const queue = await openWorkerQueue(address);
    reporter.print(`Worker ${name} is ready.`);
    await runWorker({
      queue,
      name,
      files: { model, env: envId, device, threads },
      times: address.times,
      signal,
      onInfo: reporter.info,
      onWarning: reporter.warn,
    });
    return 0;
  },
});
