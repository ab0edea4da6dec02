import { boolean, defineSettings } from "../../../core/settings.js";
import { openWorkerQueue, requireWorkers } from "../../distributed/open-transport.js";
import { formatTable } from "../display/format-table.js";
import { defineCommand } from "../options/define-command.js";
import { workersOptions } from "../options/workers-options.js";

export const workersCommand = defineCommand({
  name: "workers",
  description: "Lists the workers of a Redis server or a shared directory with their rates, and the jobs of each run.",
  examples: [
    { description: "All workers and runs of a server", args: "workers --redis redis://HOST:6379" },
    { description: "For a program", args: "workers --redis redis://HOST:6379 --json" },
  ],
  options: defineSettings({
    ...workersOptions,
    json: boolean({ description: "Print JSON." }),
  }),
  run: async ({ redis, workersFolder, json = false }, reporter) => {
    const queue = await openWorkerQueue(requireWorkers({ redis, workersFolder }));
    const [workers, queues] = await Promise.all([queue.listWorkers(), queue.listQueues()]);
    await queue.close("");
    if (json) {
      reporter.print(JSON.stringify({ workers, queues }, null, 2));
      return 0;
    }
    if (workers.length === 0) reporter.print("No worker has shown a sign of life.");
    else
      reporter.print(
        formatTable([
          ["worker", "status", "run", "threads", "jobs", "turns/s", "version"],
          ...workers.map(({ name, status, run = "", threads, jobs, turnsPerSecond, version }) => [
            name,
            status,
            run.slice(0, 8),
            String(threads),
            String(jobs),
            turnsPerSecond.toFixed(1),
            version,
          ]),
        ]),
      );
    for (const { name, lastError } of workers)
      if (lastError !== undefined) reporter.print(`Last error of ${name}: ${lastError}`);
    for (const { run, waiting, active, setAside } of queues)
      reporter.print(`Run ${run}: ${waiting} jobs waiting, ${active} active, ${setAside} set aside.`);
    return 0;
  },
});
